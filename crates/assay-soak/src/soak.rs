//! The soak: epochs of mixed traffic, each through an engine of its own, every reply against its reference.

use std::collections::VecDeque;
use std::ops::AddAssign;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use serde_json::{Value, json};

use crate::client::{Client, Outcome, first_difference};
use crate::decisions::{Asker, DecisionVisit};
use crate::reference::References;
use crate::rig::{Remains, Rig};
use crate::subject::Subject;
use crate::traffic::{Traffic, Visit};

/// Requests of one epoch.
pub const EPOCH_REQUESTS: u64 = 200;

/// What came of a soak so far.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Requests sent.
    pub num_requests: u64,
    /// Replies that were compared; the others' clients left.
    pub num_compared: u64,
    /// Tokens and scored prompt tokens that were compared.
    pub num_tokens: u64,
    /// Decisions that were compared.
    pub num_decisions: u64,
    /// Prompt tokens that came from the cache.
    pub num_cached_tokens: u64,
    /// Draft tokens that were accepted, and those that were not.
    pub num_draft_tokens: (u64, u64),
    /// Times a sequence gave its blocks back.
    pub num_preemptions: u64,
    /// Cached blocks given up.
    pub num_evictions: u64,
    /// Steps held against the naive model.
    pub num_steps: u64,
    /// Most sequences that decoded in one step.
    pub most_decoding: usize,
    /// Replies with a token, a bit, a text or an end that differs.
    pub num_differing: u64,
    /// Entries that a reply lacks.
    pub num_lost_entries: u64,
    /// Blocks that an engine left behind.
    pub num_leaked_blocks: u64,
    /// Rules of the naive model that a step broke, and other faults.
    pub num_faults: u64,
}

impl AddAssign<&Counts> for Counts {
    fn add_assign(&mut self, other: &Counts) {
        self.num_requests += other.num_requests;
        self.num_compared += other.num_compared;
        self.num_tokens += other.num_tokens;
        self.num_decisions += other.num_decisions;
        self.num_cached_tokens += other.num_cached_tokens;
        self.num_draft_tokens.0 += other.num_draft_tokens.0;
        self.num_draft_tokens.1 += other.num_draft_tokens.1;
        self.num_preemptions += other.num_preemptions;
        self.num_evictions += other.num_evictions;
        self.num_steps += other.num_steps;
        self.most_decoding = self.most_decoding.max(other.most_decoding);
        self.num_differing += other.num_differing;
        self.num_lost_entries += other.num_lost_entries;
        self.num_leaked_blocks += other.num_leaked_blocks;
        self.num_faults += other.num_faults;
    }
}

impl Counts {
    /// Whether nothing went wrong.
    pub fn is_clean(&self) -> bool {
        let wrong = [
            self.num_differing,
            self.num_lost_entries,
            self.num_leaked_blocks,
            self.num_faults,
        ];
        wrong == [0; 4]
    }

    /// For `--json`.
    pub fn to_json(&self) -> Value {
        json!({
            "requests": self.num_requests,
            "replies_compared": self.num_compared,
            "tokens_compared": self.num_tokens,
            "decisions_compared": self.num_decisions,
            "cached_prompt_tokens": self.num_cached_tokens,
            "draft_tokens_accepted": self.num_draft_tokens.0,
            "draft_tokens_rejected": self.num_draft_tokens.1,
            "preemptions": self.num_preemptions,
            "evictions": self.num_evictions,
            "steps_checked": self.num_steps,
            "most_decoding": self.most_decoding,
            "differing_replies": self.num_differing,
            "lost_entries": self.num_lost_entries,
            "leaked_blocks": self.num_leaked_blocks,
            "faults": self.num_faults,
        })
    }

    pub(crate) fn add_remains(&mut self, remains: &Remains) {
        let stats = &remains.stats;
        self.num_draft_tokens.0 += stats.num_accepted_tokens;
        self.num_draft_tokens.1 += stats.num_draft_tokens - stats.num_accepted_tokens;
        self.num_cached_tokens += stats.num_prefix_cache_hits;
        self.num_preemptions += stats.num_preemptions;
        self.num_evictions += stats.num_prefix_cache_evictions;
        self.num_steps += remains.totals.num_steps;
        self.most_decoding = self.most_decoding.max(remains.totals.most_decoding);
        self.num_leaked_blocks += remains.num_leaked_blocks as u64;
        self.num_faults += remains.totals.num_faults;
    }
}

/// An epoch's counts, and each thing that went wrong with what repeats it.
#[derive(Debug, Default)]
pub struct EpochReport {
    /// Counts.
    pub counts: Counts,
    /// For people.
    pub failures: Vec<String>,
}

/// Runs epochs of one subject's traffic in process.
pub struct Soak {
    subject: Arc<Subject>,
    traffic: Traffic,
    references: References,
}

impl Soak {
    /// Nothing run yet.
    pub fn new(subject: &Arc<Subject>, traffic: Traffic) -> Self {
        Self {
            subject: Arc::clone(subject),
            traffic,
            references: References::new(subject),
        }
    }

    /// References that were run.
    pub fn num_references(&self) -> usize {
        self.references.num_known()
    }

    /// Runs the first `num_requests` requests of epoch `index`, up to [`EPOCH_REQUESTS`].
    ///
    /// # Errors
    /// The rig failed.
    pub fn run(&mut self, index: u64, num_requests: u64) -> Result<EpochReport> {
        let epoch = self.traffic.epoch(index);
        let mut report = EpochReport::default();
        let mut rig = Rig::start(&self.subject, &epoch.setup)?;
        let mut present: VecDeque<Present> = VecDeque::new();
        for number in 0..num_requests.min(EPOCH_REQUESTS) {
            let visit = self.traffic.visit(index * EPOCH_REQUESTS + number);
            let (_, client) = rig
                .submit(visit.request.clone())
                .map_err(|refused| anyhow!("{refused}: {:?}", visit.request))?;
            report.counts.num_requests += 1;
            present.push_back(Present::Client(Box::new(visit), client));
            if let Some(visit) = self.traffic.decision(index * EPOCH_REQUESTS + number) {
                let asker = rig
                    .decide(visit.request.clone())
                    .map_err(|refused| anyhow!("{refused}: {:?}", visit.request))?;
                present.push_back(Present::Asker(visit, asker));
            }
            while present.len() >= epoch.num_clients {
                self.end_oldest(&mut present, &mut report)?;
            }
        }
        while !present.is_empty() {
            self.end_oldest(&mut present, &mut report)?;
        }
        let remains = rig.stop()?;
        report.counts.add_remains(&remains);
        report.failures.extend(remains.faults);
        Ok(report)
    }

    /// Reads the reply of whoever came first and compares it, or leaves.
    fn end_oldest(
        &mut self,
        present: &mut VecDeque<Present>,
        report: &mut EpochReport,
    ) -> Result<()> {
        let (visit, client) = match present.pop_front() {
            Some(Present::Client(visit, client)) => (visit, client),
            Some(Present::Asker(visit, asker)) => return self.end_decision(&visit, asker, report),
            None => return Ok(()),
        };
        if let Some(num_events) = visit.leaves_after {
            client.leave_after(num_events);
            return Ok(());
        }
        let collected = match client.collect() {
            Ok(collected) => collected,
            Err(fault) => {
                report.counts.num_faults += 1;
                report.failures.push(format!("{fault}: {visit:?}"));
                return Ok(());
            }
        };
        let expected = self.references.of(&visit.request, visit.schema)?;
        report.counts.num_compared += 1;
        report.counts.num_tokens += num_entries(&expected);
        if collected.outcome != *expected {
            report.counts.num_differing += 1;
            let num_lost = num_entries(&expected).saturating_sub(num_entries(&collected.outcome));
            report.counts.num_lost_entries += num_lost;
            let difference = first_difference(&collected.outcome, &expected);
            report.failures.push(format!("{difference}: {visit:?}"));
        }
        Ok(())
    }

    fn end_decision(
        &mut self,
        visit: &DecisionVisit,
        asker: Asker,
        report: &mut EpochReport,
    ) -> Result<()> {
        if visit.leaves {
            asker.leave();
            return Ok(());
        }
        let outcome = match asker.outcome() {
            Ok(outcome) => outcome,
            Err(fault) => {
                report.counts.num_faults += 1;
                report.failures.push(format!("{fault}: {visit:?}"));
                return Ok(());
            }
        };
        let expected = self.references.of_decision(&visit.request)?;
        report.counts.num_decisions += 1;
        if outcome != *expected {
            report.counts.num_differing += 1;
            report
                .failures
                .push(format!("got {outcome:?}, alone {expected:?}: {visit:?}"));
        }
        Ok(())
    }
}

/// Who waits.
enum Present {
    Client(Box<Visit>, Client),
    Asker(DecisionVisit, Asker),
}

fn num_entries(outcome: &Outcome) -> u64 {
    let choices = outcome.as_ref().map_or(&[][..], Vec::as_slice);
    let entries = choices.iter().map(|choice| {
        choice.tokens.len() + choice.prompt.len() + usize::from(choice.end.is_some())
    });
    entries.sum::<usize>() as u64
}
