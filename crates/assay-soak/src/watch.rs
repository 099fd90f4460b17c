//! A naive model of what the engine may do, held against it at every step.
//!
//! It knows the tokens of every sequence, and for each KV slot the history that stands there as one number. So it sees
//! a block that is neither free, cached nor held, a slot that is read before it was written or after it was written
//! for other tokens, a block that leaves its salt, and progress that does not add up. It also keeps what happened to
//! each sequence, so that a test can tell that its condition came about.

mod blocks;
mod history;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use assay_engine::StepObserver;
use assay_engine::scheduler::{ScheduledSequence, Scheduler, SchedulerOutput};
use assay_engine::sequence::SeqId;
use assay_models::TokenId;

use history::Histories;

/// Faults that are kept word by word; more only count.
const MAX_FAULTS: usize = 10;

/// What happened to one sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Rows of its prompt in each step that computed some.
    pub prefill_chunks: Vec<usize>,
    /// Draft tokens that went through the model.
    pub num_drafted: usize,
    /// Those that were drawn just so, of replies that went on.
    pub num_accepted: usize,
    /// Steps that drew another token than the draft's.
    pub num_rejected: usize,
    /// Most sequences that decoded in one step with it.
    pub most_decoding: usize,
}

/// Sums over all sequences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Steps seen.
    pub num_steps: u64,
    /// Most sequences that decoded in one step.
    pub most_decoding: usize,
    /// Faults of all kinds.
    pub num_faults: u64,
}

#[derive(Default)]
struct State {
    histories: Histories,
    /// Computed tokens of each scheduled sequence before the present step.
    begins: BTreeMap<SeqId, usize>,
    records: BTreeMap<SeqId, Record>,
    totals: Totals,
    faults: Vec<String>,
    is_held: bool,
    num_standing: usize,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// The test's side: holds steps, and reads what was seen.
#[derive(Clone, Default)]
pub struct Watch(Arc<Shared>);

struct Watcher(Arc<Shared>);

impl Watch {
    /// The engine's side.
    pub fn observer(&self) -> Box<dyn StepObserver> {
        Box::new(Watcher(Arc::clone(&self.0)))
    }

    /// Holds the next step before its pass.
    pub fn hold(&self) {
        self.0.state().is_held = true;
    }

    /// Lets steps go.
    pub fn release(&self) {
        self.0.state().is_held = false;
        self.0.changed.notify_all();
    }

    /// Waits until a step is held; whether one is.
    pub fn wait_held(&self, patience: Duration) -> bool {
        let state = self.0.state();
        let nobody = |state: &mut State| state.num_standing == 0;
        let waited = self.0.changed.wait_timeout_while(state, patience, nobody);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// What happened to a sequence.
    pub fn record(&self, seq_id: SeqId) -> Record {
        let state = self.0.state();
        state.records.get(&seq_id).cloned().unwrap_or_default()
    }

    /// Sums so far.
    pub fn totals(&self) -> Totals {
        self.0.state().totals
    }

    /// The first faults.
    pub fn faults(&self) -> Vec<String> {
        self.0.state().faults.clone()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StepObserver for Watcher {
    fn scheduled(&mut self, scheduler: &Scheduler, output: &SchedulerOutput) {
        let mut state = self.0.state();
        state.num_standing += 1;
        self.0.changed.notify_all();
        while state.is_held {
            let woken = self.0.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        state.num_standing -= 1;
        state.totals.num_steps += 1;
        state.note_step(scheduler, output);
        let faults = state.histories.run(scheduler, output);
        state.add_faults(faults);
        let faults = blocks::check(scheduler, &state.histories);
        state.add_faults(faults);
    }

    fn booked(
        &mut self,
        scheduler: &Scheduler,
        output: &SchedulerOutput,
        drawn: &[(SeqId, TokenId)],
    ) {
        let mut state = self.0.state();
        for entry in &output.scheduled {
            let drawn: Vec<TokenId> = drawn
                .iter()
                .filter(|(seq_id, _)| *seq_id == entry.seq_id)
                .map(|&(_, token_id)| token_id)
                .collect();
            let fault = state.check_progress(scheduler, entry, &drawn);
            state.add_faults(fault);
        }
        state.histories.follow(scheduler);
        let faults = blocks::check(scheduler, &state.histories);
        state.add_faults(faults);
        let faults = blocks::misplaced(scheduler, &state.histories);
        state.add_faults(faults);
    }
}

impl State {
    fn add_faults(&mut self, faults: impl IntoIterator<Item = String>) {
        for fault in faults {
            self.totals.num_faults += 1;
            if self.faults.len() < MAX_FAULTS {
                let step = self.totals.num_steps;
                self.faults.push(format!("step {step}: {fault}"));
            }
        }
    }

    /// Takes down where everyone stands before the pass.
    fn note_step(&mut self, scheduler: &Scheduler, output: &SchedulerOutput) {
        let decoding = output.scheduled.iter().filter(|entry| entry.is_decode());
        let num_decoding = decoding.count();
        self.totals.most_decoding = self.totals.most_decoding.max(num_decoding);
        self.begins.clear();
        for entry in &output.scheduled {
            let Some(sequence) = scheduler.sequence(entry.seq_id) else {
                continue;
            };
            let begin = sequence.num_computed_tokens;
            self.begins.insert(entry.seq_id, begin);
            let record = self.records.entry(entry.seq_id).or_default();
            record.num_drafted += entry.draft_token_ids.len();
            if begin < sequence.num_prompt_tokens {
                record.prefill_chunks.push(entry.num_scheduled_tokens);
            }
            if entry.is_decode() {
                record.most_decoding = record.most_decoding.max(num_decoding);
            }
        }
    }

    /// A sequence has computed what was scheduled and the accepted part of its draft, and no more.
    fn check_progress(
        &mut self,
        scheduler: &Scheduler,
        entry: &ScheduledSequence,
        drawn: &[TokenId],
    ) -> Option<String> {
        let draft = &entry.draft_token_ids;
        let pairs = draft.iter().zip(drawn);
        let num_accepted = pairs.take_while(|(draft, drawn)| draft == drawn).count();
        let record = self.records.entry(entry.seq_id).or_default();
        record.num_accepted += num_accepted;
        let is_rejected = num_accepted < draft.len() && num_accepted < drawn.len();
        record.num_rejected += usize::from(is_rejected);
        // A failed or cancelled request's sequences are gone.
        let sequence = scheduler.sequence(entry.seq_id)?;
        let begin = *self.begins.get(&entry.seq_id)?;
        let expected = begin + entry.num_scheduled_tokens + num_accepted;
        let num_known = self.histories.num_tokens(entry.seq_id) + drawn.len();
        let got = (sequence.num_computed_tokens, sequence.token_ids.len());
        let holds = got == (expected, num_known) && sequence.token_ids.ends_with(drawn);
        (!holds).then(|| {
            format!(
                "{:?}: {got:?} computed and known tokens, not {expected} and {num_known}",
                entry.seq_id
            )
        })
    }
}
