//! Decisions on the engine's thread: from arrival to outcome.

use super::active::ActiveDecision;
use super::plan::Plan;
use super::read::NodeReading;
use super::request::DecisionSink;
use crate::block_manager::PrefixCache;
use crate::engine_core::EngineCore;
use crate::output::RequestError;
use crate::sequence::{SeqId, Sequence};

impl EngineCore {
    /// Queues a decision that `decide` has accepted: a trunk and its branches.
    pub(crate) fn add_decision(&mut self, plan: Box<Plan>, sink: Box<dyn DecisionSink>) {
        let arrival = self.take_arrival();
        let decision = ActiveDecision::new(plan, sink);
        let (trunk, branches) = decision.family(trunk_id(arrival));
        let blocks = self.scheduler.blocks();
        let num_path_blocks = decision
            .plan
            .blocks_of_dearest_path(blocks.block_size_tokens())
            .saturating_sub(blocks.blocks_for(trunk.token_ids.len()));
        self.scheduler.add_family(trunk, branches, num_path_blocks);
        self.decisions.insert(arrival, decision);
    }

    /// Ends every decision whose client no longer listens, queued ones included.
    pub(crate) fn drop_gone_decisions(&mut self) {
        let gone: Vec<u64> = self
            .decisions
            .iter()
            .filter(|(_, decision)| decision.sink.is_gone())
            .map(|(&arrival, _)| arrival)
            .collect();
        for arrival in gone {
            self.decisions.remove(&arrival);
            self.scheduler.finish(trunk_id(arrival));
            self.stats.num_cancelled += 1;
        }
    }

    /// A decision that still reads rows.
    pub(crate) fn unsettled_decision(&self, arrival: u64) -> Option<&ActiveDecision> {
        let decision = self.decisions.get(&arrival)?;
        decision.outcome.is_none().then_some(decision)
    }

    /// Takes what a row told to its decision; with the last row it is settled.
    pub(crate) fn advance_decision(&mut self, arrival: u64, readings: Vec<NodeReading>) {
        let decision = self.decisions.get_mut(&arrival);
        let Some(decision) = decision.filter(|decision| decision.outcome.is_none()) else {
            // Another row of it was not finite in this step.
            return;
        };
        if !decision.take(readings) {
            return;
        }
        let trunk = trunk_id(arrival);
        let of_trunk = self.scheduler.sequence(trunk);
        let mut cached_tokens =
            vec![of_trunk.map_or(0, |trunk: &Sequence| trunk.num_cached_tokens)];
        cached_tokens.extend_from_slice(self.scheduler.branch_cached_tokens(trunk));
        let reading = decision.reading(&cached_tokens);
        let stats = &mut self.stats;
        stats.num_prompt_tokens += u64::from(reading.prompt_tokens);
        if self.scheduler.blocks().prefix_cache() == PrefixCache::On {
            stats.num_prefix_cache_queries += u64::from(reading.prompt_tokens);
            stats.num_prefix_cache_hits += u64::from(reading.cached_tokens);
        }
        stats.num_decisions += 1;
        stats.num_trie_edges += u64::from(reading.trie_edges);
        decision.outcome = Some(Ok(reading));
    }

    /// Fails a decision; nothing else is touched.
    pub(crate) fn fail_decision(&mut self, arrival: u64, error: RequestError) {
        let decision = self.decisions.get_mut(&arrival);
        if let Some(decision) = decision.filter(|decision| decision.outcome.is_none()) {
            self.stats.count_failure(&error, 1);
            decision.outcome = Some(Err(error));
            self.scheduler.finish(trunk_id(arrival));
        }
    }

    /// Gives the place and blocks of a decision free that is settled, now that the cache has what the step computed
    /// for it.
    pub(crate) fn finish_settled(&mut self, arrival: u64) {
        if self.decisions.contains_key(&arrival) && self.unsettled_decision(arrival).is_none() {
            self.scheduler.finish(trunk_id(arrival));
        }
    }

    /// Tells outcomes.
    pub(crate) fn emit_outcomes(&mut self) {
        self.decisions
            .retain(|_, decision| match decision.outcome.take() {
                Some(outcome) => {
                    decision.sink.send(outcome);
                    false
                }
                None => true,
            });
    }

    /// Tells every client that the engine stopped.
    pub(crate) fn fail_all_decisions(&mut self) {
        for mut decision in std::mem::take(&mut self.decisions).into_values() {
            self.stats.num_failed += 1;
            decision.sink.send(Err(RequestError::EngineStopped));
        }
    }
}

fn trunk_id(arrival: u64) -> SeqId {
    SeqId {
        arrival,
        choice_index: 0,
    }
}
