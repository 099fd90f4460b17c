//! What the engine thread owns, and what it does to requests between the stages of a step.
//!
//! `step.rs` has the order of the stages; `engine.rs` the thread around it.

use std::collections::BTreeMap;
use std::sync::Arc;

use assay_models::ForwardModel;

use crate::batch::LogitRow;
use crate::block_manager::{BlockManager, PrefixCache};
use crate::choice::{Choice, Finish};
use crate::decision::active::ActiveDecision;
use crate::handle::Progress;
use crate::kept_rows::RowAsk;
use crate::observer::StepObserver;
use crate::output::{OutputEvent, OutputSink, PromptToken, RequestError, TokenOutput, Usage};
use crate::request::Request;
use crate::row_cache::RowCache;
use crate::rows::{ChoiceRow, RowOwner};
use crate::scheduler::{ScheduledSequence, Scheduler, SchedulerConfig, SchedulerOutput};
use crate::sequence::{SeqId, Sequence};
use crate::speculation::Drafter;
use crate::stats::EngineStats;
use crate::token_bytes::TokenBytes;

/// A request with at least one choice unfinished.
struct ActiveRequest {
    request: Request,
    sink: Box<dyn OutputSink>,
    /// By choice index; `None` once finished.
    choices: Vec<Option<Choice>>,
    prompt: Prompt,
}

/// How far a request's prompt is, for the choice that is furthest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prompt {
    /// No row of it was scheduled yet.
    Waiting,
    Unfinished,
    Through,
}

impl Prompt {
    /// Counts the prompt once, when it is through: at the first draw, or with its last score.
    fn end(&mut self, request: &Request, stats: &mut EngineStats) {
        if *self != Self::Through {
            *self = Self::Through;
            stats.num_prompt_tokens += request.prompt_token_ids.len() as u64;
        }
    }
}

/// An event and whose it is.
pub(crate) struct AddressedEvent {
    /// The request's arrival number.
    pub(crate) arrival: u64,
    pub(crate) event: OutputEvent,
}

/// The engine's state, used by one thread.
pub(crate) struct EngineCore {
    pub(crate) model: Box<dyn ForwardModel>,
    pub(crate) scheduler: Scheduler,
    pub(crate) drafter: Drafter,
    pub(crate) observer: Option<Box<dyn StepObserver>>,
    token_bytes: Arc<TokenBytes>,
    /// By arrival number.
    requests: BTreeMap<u64, ActiveRequest>,
    /// By arrival number too: each is of one kind.
    pub(crate) decisions: BTreeMap<u64, ActiveDecision>,
    next_arrival: u64,
    pub(crate) row_cache: RowCache,
    /// Of requests that may not have run yet, in order of arrival.
    pub(crate) row_asks: Vec<RowAsk>,
    pub(crate) stats: EngineStats,
    progress: Arc<Progress>,
}

impl EngineCore {
    pub(crate) fn new(
        model: Box<dyn ForwardModel>,
        token_bytes: Arc<TokenBytes>,
        config: SchedulerConfig,
        drafter: Drafter,
        prefix_cache: PrefixCache,
        progress: Arc<Progress>,
    ) -> Self {
        let info = model.info();
        let blocks = BlockManager::new(info.num_kv_blocks, info.kv_block_tokens, prefix_cache);
        let core = Self {
            scheduler: Scheduler::new(config, blocks),
            drafter,
            observer: None,
            model,
            token_bytes,
            requests: BTreeMap::new(),
            decisions: BTreeMap::new(),
            next_arrival: 0,
            row_cache: match prefix_cache {
                PrefixCache::On => RowCache::new(),
                PrefixCache::Off => RowCache::off(),
            },
            row_asks: Vec::new(),
            stats: EngineStats::default(),
            progress,
        };
        core.progress.publish(core.snapshot(), 0);
        core
    }

    /// Queues a request that submit has accepted: one sequence for each choice.
    pub(crate) fn add(&mut self, request: Request, sink: Box<dyn OutputSink>) {
        let arrival = self.take_arrival();
        for choice_index in 0..request.num_choices {
            let seq_id = SeqId {
                arrival,
                choice_index,
            };
            // The prompt is the same for all choices: the first one's rows score it.
            let scored_from = request
                .prompt_logprobs
                .filter(|_| choice_index == 0)
                .map(|params| params.first_position as usize - 1);
            let prompt_token_ids = request.tokens_to_prefill().to_vec();
            let sequence = Sequence::new(seq_id, prompt_token_ids, request.cache_salt.clone());
            self.scheduler.add(sequence.with_scores_from(scored_from));
        }
        let choices = (0..request.num_choices)
            .map(|_| Some(Choice::new(&request)))
            .collect();
        let active = ActiveRequest {
            request,
            sink,
            choices,
            prompt: Prompt::Waiting,
        };
        self.requests.insert(arrival, active);
        self.note_row_ask(arrival);
    }

    pub(crate) fn take_arrival(&mut self) -> u64 {
        let arrival = self.next_arrival;
        self.next_arrival += 1;
        arrival
    }

    pub(crate) fn has_work(&self) -> bool {
        !(self.requests.is_empty() && self.decisions.is_empty())
    }

    /// Ends every request whose client no longer listens, queued ones included.
    pub(crate) fn drop_gone_clients(&mut self) {
        let gone: Vec<u64> = self
            .requests
            .iter()
            .filter(|(_, active)| active.sink.is_gone())
            .map(|(&arrival, _)| arrival)
            .collect();
        for arrival in gone {
            self.cancel(arrival);
        }
        self.drop_gone_decisions();
    }

    /// Picks the step's tokens, and lets `submit` and the statistics see it before the long pass.
    pub(crate) fn schedule(&mut self) -> SchedulerOutput {
        let output = self.scheduler.schedule();
        self.stats.num_preemptions += output.preempted.len() as u64;
        if !output.scheduled.is_empty() {
            self.stats.num_steps += 1;
            self.stats.num_computed_tokens += output.num_tokens() as u64;
        }
        self.publish_stats();
        output
    }

    /// Tells the requests that run for the first time.
    pub(crate) fn announce(&mut self, scheduled: &SchedulerOutput) {
        for entry in &scheduled.scheduled {
            self.start(entry.seq_id.arrival);
        }
    }

    /// Tells a request that it runs, the first time.
    pub(crate) fn start(&mut self, arrival: u64) {
        if let Some(active) = self.requests.get_mut(&arrival)
            && active.prompt == Prompt::Waiting
        {
            active.prompt = Prompt::Unfinished;
            active.sink.scheduled();
        }
    }

    /// Whether nothing of the sequence's request has run yet.
    pub(crate) fn is_prompt_waiting(&self, seq_id: SeqId) -> bool {
        let active = self.requests.get(&seq_id.arrival);
        active.is_some_and(|active| active.prompt == Prompt::Waiting)
    }

    /// All that a row of a scheduled sequence is read by.
    pub(crate) fn row_owner(&self, row: LogitRow) -> RowOwner<'_> {
        let seq_id = row.seq_id;
        if let Some(decision) = self.unsettled_decision(seq_id.arrival) {
            return RowOwner::Nodes {
                row,
                plan: &decision.plan,
                names: decision.nodes_of_row(seq_id.choice_index, row.position),
            };
        }
        let (request, choice) = self
            .request_and_choice(seq_id)
            .expect("a scheduled sequence's choice is unfinished");
        RowOwner::Choice(ChoiceRow {
            row,
            request,
            seen: &choice.seen,
            mask: choice.mask(),
        })
    }

    /// Computes what a sequence may draw next.
    pub(crate) fn prepare_mask(&mut self, seq_id: SeqId) {
        let Some(active) = self.requests.get_mut(&seq_id.arrival) else {
            return;
        };
        let choice = active.choices.get_mut(seq_id.choice_index as usize);
        if let Some(Some(choice)) = choice {
            choice.prepare_mask(&active.request, &self.token_bytes);
        }
    }

    /// A choice that is unfinished, and its request.
    pub(crate) fn request_and_choice(&self, seq_id: SeqId) -> Option<(&Request, &Choice)> {
        let active = self.requests.get(&seq_id.arrival)?;
        let choice = active.choices.get(seq_id.choice_index as usize)?.as_ref()?;
        Some((&active.request, choice))
    }

    /// Counts the drafts that are about to be computed.
    pub(crate) fn count_drafts(&mut self, scheduled: &SchedulerOutput) {
        let has_draft = |entry: &&ScheduledSequence| !entry.draft_token_ids.is_empty();
        let num_drafts = scheduled.scheduled.iter().filter(has_draft).count();
        let num_draft_tokens = scheduled.num_draft_tokens() as u64;
        self.stats.num_drafts += num_drafts as u64;
        self.stats.num_draft_tokens += num_draft_tokens;
        self.stats.num_computed_tokens += num_draft_tokens;
    }

    /// Counts draft tokens that turned out right.
    pub(crate) fn count_accepted(&mut self, num_tokens: usize) {
        self.stats.num_accepted_tokens += num_tokens as u64;
    }

    /// Takes a drawn token through its choice; whether the choice goes on.
    pub(crate) fn advance_choice(
        &mut self,
        seq_id: SeqId,
        output: TokenOutput,
        events: &mut Vec<AddressedEvent>,
    ) -> bool {
        let SeqId {
            arrival,
            choice_index,
        } = seq_id;
        let active = self
            .requests
            .get_mut(&arrival)
            .expect("a scheduled sequence belongs to an active request");
        let slot = &mut active.choices[choice_index as usize];
        // Another choice of the same request may have failed in this step, and all with it.
        let Some(choice) = slot.as_mut() else {
            return false;
        };
        active.prompt.end(&active.request, &mut self.stats);
        if choice.num_output_tokens() == 0 {
            self.stats.count_cache_use(&self.scheduler, seq_id);
        }
        self.stats.num_generation_tokens += 1;

        active.sink.drawn(choice_index, &output);
        if let Err(error) = choice.accept(output.token_id, &active.request, &self.token_bytes) {
            self.fail_request(arrival, error.into(), events);
            return false;
        }
        let advance = choice.advance(&active.request, output, &self.token_bytes);
        if !advance.entries.is_empty() {
            let event = OutputEvent::Delta {
                choice_index,
                entries: advance.entries,
            };
            events.push(AddressedEvent { arrival, event });
        }
        let Some(finish) = advance.finish else {
            return true;
        };
        self.finish_choice(seq_id, finish, events);
        false
    }

    /// Hands a scored prompt token to its request; a request that only scores ends with its last one.
    pub(crate) fn advance_prompt(
        &mut self,
        seq_id: SeqId,
        token: PromptToken,
        events: &mut Vec<AddressedEvent>,
    ) {
        let arrival = seq_id.arrival;
        let active = self
            .requests
            .get_mut(&arrival)
            .expect("a scheduled sequence belongs to an active request");
        // Another row of the same request may have failed in this step, and all with it.
        let Some(choice) = &active.choices[seq_id.choice_index as usize] else {
            return;
        };
        let is_last = token.position as usize + 1 == active.request.prompt_token_ids.len();
        let finish = (is_last && active.request.max_tokens == 0).then(|| choice.finish_scored());
        match events.last_mut() {
            Some(AddressedEvent {
                arrival: last,
                event: OutputEvent::Prompt { tokens },
            }) if *last == arrival => tokens.push(token),
            _ => events.push(AddressedEvent {
                arrival,
                event: OutputEvent::Prompt {
                    tokens: vec![token],
                },
            }),
        }
        if let Some(finish) = finish {
            active.prompt.end(&active.request, &mut self.stats);
            self.stats.count_cache_use(&self.scheduler, seq_id);
            self.finish_choice(seq_id, finish, events);
        }
    }

    /// Ends a choice and tells its client. Its place and blocks are free once the step is booked, so that
    /// the cache keeps what the step computed for it.
    fn finish_choice(&mut self, seq_id: SeqId, finish: Finish, events: &mut Vec<AddressedEvent>) {
        let SeqId {
            arrival,
            choice_index,
        } = seq_id;
        let active = self
            .requests
            .get_mut(&arrival)
            .expect("a choice that ends belongs to an active request");
        active.choices[choice_index as usize] = None;
        let cached_tokens = self
            .scheduler
            .sequence(seq_id)
            .map_or(0, |sequence| sequence.num_cached_tokens);
        self.stats.count_finish(&finish.reason);
        let event = OutputEvent::Finished {
            choice_index,
            reason: finish.reason,
            end: finish.end,
            usage: Usage {
                prompt_tokens: count_u32(active.request.prompt_token_ids.len()),
                cached_tokens: count_u32(cached_tokens),
                completion_tokens: finish.completion_tokens,
                reasoning_tokens: finish.reasoning_tokens,
            },
        };
        events.push(AddressedEvent { arrival, event });
    }

    /// Gives places and blocks of choices that ended in this step free.
    pub(crate) fn finish_ended(&mut self, step: &SchedulerOutput) {
        for SeqId {
            arrival,
            choice_index,
        } in step.scheduled.iter().map(|entry| entry.seq_id)
        {
            if self.decisions.contains_key(&arrival) {
                self.finish_settled(arrival);
                continue;
            }
            let choices = self.requests.get(&arrival).map(|active| &active.choices);
            let choice = choices.and_then(|choices| choices.get(choice_index as usize));
            if !matches!(choice, Some(Some(_))) {
                self.end_sequence(SeqId {
                    arrival,
                    choice_index,
                });
            }
        }
    }

    /// Frees what an ended choice held.
    pub(crate) fn end_sequence(&mut self, seq_id: SeqId) {
        self.scheduler.finish(seq_id);
        self.drafter.forget(seq_id);
    }

    /// Fails a request, all its choices with it; nothing else is touched.
    pub(crate) fn fail_request(
        &mut self,
        arrival: u64,
        error: RequestError,
        events: &mut Vec<AddressedEvent>,
    ) {
        let Some(num_choices) = self.release_sequences(arrival) else {
            return;
        };
        self.stats.count_failure(&error, num_choices);
        events.push(AddressedEvent {
            arrival,
            event: OutputEvent::Failed(error),
        });
    }

    /// Hands events to their sinks. A client that has gone frees its places at once.
    pub(crate) fn emit(&mut self, events: Vec<AddressedEvent>) {
        for AddressedEvent { arrival, event } in events {
            let Some(active) = self.requests.get_mut(&arrival) else {
                continue;
            };
            let is_failure = matches!(event, OutputEvent::Failed(_));
            if active.sink.send(event).is_err() {
                self.cancel(arrival);
            } else if is_failure {
                self.requests.remove(&arrival);
            }
        }
        self.requests
            .retain(|_, active| active.choices.iter().any(Option::is_some));
        self.emit_outcomes();
        self.publish_stats();
    }

    /// Tells every client that the engine stopped.
    pub(crate) fn fail_all(&mut self) {
        let requests = std::mem::take(&mut self.requests);
        for (_, mut active) in requests {
            self.stats.num_failed += active.choices.iter().flatten().count() as u64;
            // A client that has gone as well needs no word.
            let _ = active
                .sink
                .send(OutputEvent::Failed(RequestError::EngineStopped));
        }
        self.fail_all_decisions();
    }

    pub(crate) fn publish_stats(&self) {
        let num_queued = self.scheduler.num_never_started();
        self.progress.publish(self.snapshot(), num_queued);
    }

    fn cancel(&mut self, arrival: u64) {
        if let Some(num_choices) = self.release_sequences(arrival) {
            self.stats.num_cancelled += num_choices;
        }
        self.requests.remove(&arrival);
    }

    /// Frees places and blocks of a request's unfinished choices; how many there were.
    fn release_sequences(&mut self, arrival: u64) -> Option<u64> {
        let active = self.requests.get_mut(&arrival)?;
        let mut num_choices = 0;
        for (choice_index, slot) in (0..).zip(&mut active.choices) {
            if slot.take().is_some() {
                num_choices += 1;
                let seq_id = SeqId {
                    arrival,
                    choice_index,
                };
                self.scheduler.finish(seq_id);
                self.drafter.forget(seq_id);
            }
        }
        (num_choices > 0).then_some(num_choices)
    }

    fn snapshot(&self) -> EngineStats {
        let blocks = self.scheduler.blocks();
        EngineStats {
            num_running: self.scheduler.num_running(),
            num_waiting: self.scheduler.num_waiting(),
            num_kv_blocks_used: blocks.num_used(),
            num_kv_blocks_cached: blocks.num_cached(),
            num_kv_blocks: blocks.num_blocks(),
            num_prefix_cache_evictions: blocks.num_evictions(),
            ..self.stats
        }
    }
}

fn count_u32(num_tokens: usize) -> u32 {
    u32::try_from(num_tokens).expect("submit refused prompts past the context")
}
