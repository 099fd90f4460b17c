//! One decision while it is computed: what has been read of it, and where its outcome goes.

use super::assemble::{PromptCounts, label_reading};
use super::plan::{NodeName, Plan};
use super::read::NodeReading;
use super::reading::DecisionReading;
use super::request::DecisionSink;
use crate::output::RequestError;
use crate::scheduler::Branch;
use crate::sequence::{SeqId, Sequence};

/// A decision that has not told its outcome.
pub(crate) struct ActiveDecision {
    pub(crate) plan: Box<Plan>,
    pub(crate) sink: Box<dyn DecisionSink>,
    /// `[num_questions][num_nodes]`.
    nodes: Vec<Vec<Option<NodeReading>>>,
    num_unread: usize,
    /// Set once; told when the step is booked.
    pub(crate) outcome: Option<Result<DecisionReading, RequestError>>,
}

impl ActiveDecision {
    pub(crate) fn new(plan: Box<Plan>, sink: Box<dyn DecisionSink>) -> Self {
        let nodes: Vec<Vec<Option<NodeReading>>> = plan
            .questions
            .iter()
            .map(|question| vec![None; question.trie.nodes.len()])
            .collect();
        Self {
            num_unread: nodes.iter().map(Vec::len).sum(),
            nodes,
            plan,
            sink,
            outcome: None,
        }
    }

    /// What the scheduler runs of it.
    pub(crate) fn family(&self, trunk_id: SeqId) -> (Sequence, Vec<Branch>) {
        let [trunk, rest @ ..] = self.plan.segments.as_slice() else {
            unreachable!("every question has a prompt, and the first token is everyone's");
        };
        let salt = self.plan.cache_salt.clone();
        let mut sequence = Sequence::new(trunk_id, trunk.token_ids.clone(), salt)
            .with_scores_from(trunk.read_from);
        sequence.wants_last_row = trunk.read_from.is_some();
        let mut branches: Vec<Branch> = Vec::with_capacity(rest.len());
        for segment in rest {
            let parent = segment.parent.checked_sub(1);
            let parent_is_cached = parent.is_none_or(|parent| branches[parent].is_cached);
            branches.push(Branch {
                parent,
                token_ids: segment.token_ids.clone(),
                read_from: segment.read_from,
                is_cached: parent_is_cached && segment.num_prompt_tokens > 0,
            });
        }
        (sequence, branches)
    }

    /// The nodes that a row is read for; `choice_index` names its segment.
    pub(crate) fn nodes_of_row(&self, choice_index: u32, position: u32) -> &[NodeName] {
        let row = (choice_index as usize, position);
        self.plan.reads.get(&row).map_or(&[], Vec::as_slice)
    }

    /// Takes what a row told; whether all rows have now told theirs.
    pub(crate) fn take(&mut self, readings: Vec<NodeReading>) -> bool {
        for reading in readings {
            let NodeName { question, node } = reading.name;
            let slot = &mut self.nodes[question][node];
            // A row that was computed again after a preemption has the same bits.
            self.num_unread -= usize::from(slot.is_none());
            *slot = Some(reading);
        }
        self.num_unread == 0
    }

    /// The outcome. `cached_tokens` are those of each segment that came from the prefix cache.
    ///
    /// # Panics
    /// If a row is not read yet.
    pub(crate) fn reading(&self, cached_tokens: &[usize]) -> DecisionReading {
        let cached = |segment: usize| {
            let num_cached = cached_tokens.get(segment).copied().unwrap_or_default();
            num_cached.min(self.plan.segments[segment].num_prompt_tokens)
        };
        let questions = self.plan.questions.iter().zip(&self.nodes);
        let questions = questions.map(|(question, nodes)| {
            let nodes: Vec<&NodeReading> = nodes
                .iter()
                .map(|node| node.as_ref().expect("every row was read"))
                .collect();
            let num_cached: usize = question
                .segments
                .iter()
                .map(|&segment| cached(segment))
                .sum();
            let counts = PromptCounts {
                prompt_tokens: count_u32(question.num_prompt_tokens),
                cached_tokens: count_u32(num_cached.min(question.num_prompt_tokens)),
            };
            label_reading(&question.trie, &nodes, counts)
        });
        DecisionReading {
            questions: questions.collect(),
            prompt_tokens: count_u32(self.plan.num_prompt_tokens),
            cached_tokens: count_u32((0..self.plan.segments.len()).map(cached).sum()),
            trie_edges: count_u32(self.plan.num_edges),
        }
    }
}

fn count_u32(count: usize) -> u32 {
    u32::try_from(count).expect("contexts and edges are limited far below 2^32")
}
