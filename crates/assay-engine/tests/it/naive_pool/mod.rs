//! Block manager and prefix tree against a naive model: plain lists, searched from end to end.

mod pool;

use std::collections::BTreeMap;

use assay_engine::block_manager::{BlockManager, PrefixCache};
use assay_engine::sequence::{SeqId, Sequence};
use assay_models::TokenId;
use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};

const BLOCK_TOKENS: usize = 4;
type Salt = Option<&'static str>;

#[derive(Clone, Debug)]
enum Operation {
    /// A sequence begins: it takes what is cached and blocks for the rest, if there is room.
    Begin { token_ids: Vec<TokenId>, salt: Salt },
    /// Up to so many of its tokens are computed.
    Compute { nth: usize, num_tokens: usize },
    /// It takes what was cached since.
    TakeHit { nth: usize },
    /// It gets a further token, if there is room.
    Append { nth: usize, token_id: TokenId },
    /// Its last block is offered for copying.
    CacheTail { nth: usize },
    /// Another begins with all of its tokens, if they are computed, and goes on with its own.
    Fork {
        nth: usize,
        token_ids: Vec<TokenId>,
        is_cached: bool,
    },
    /// It gives its blocks back.
    End { nth: usize },
}

#[derive(Clone, Debug)]
struct NaiveSequence {
    token_ids: Vec<TokenId>,
    salt: Salt,
    num_computed: usize,
    /// Leading tokens whose whole blocks the tree keeps: all, or those before a fork.
    num_kept: usize,
}

/// Tokens of a cached block, with all before them.
#[derive(Clone, Debug, PartialEq)]
struct NaiveNode {
    salt: Salt,
    path: Vec<TokenId>,
    /// For a block that is not whole: the sequence that still writes behind the tokens.
    writer: Option<u64>,
}

#[derive(Clone, Debug)]
struct NaivePool {
    num_blocks: usize,
    num_begun: u64,
    sequences: BTreeMap<u64, NaiveSequence>,
    /// Those that nobody holds stand in the order of their last use.
    nodes: Vec<NaiveNode>,
    num_evictions: u64,
}

/// What a sequence could take: computed tokens then, and the node that some of them are copied from.
struct NaiveHit {
    num_tokens: usize,
    copied_from: Option<NaiveNode>,
}

impl NaiveNode {
    fn is_whole(&self) -> bool {
        self.path.len().is_multiple_of(BLOCK_TOKENS)
    }

    /// Index of its block in a sequence.
    fn index(&self) -> usize {
        (self.path.len() - 1) / BLOCK_TOKENS
    }

    fn is_before(&self, other: &Self) -> bool {
        self.salt == other.salt
            && self.path.len() < other.path.len()
            && other.path.starts_with(&self.path)
    }
}

impl NaiveSequence {
    fn num_blocks(&self) -> usize {
        self.token_ids.len().div_ceil(BLOCK_TOKENS)
    }

    fn num_whole(&self) -> usize {
        self.num_computed / BLOCK_TOKENS
    }

    fn is_cached(&self) -> bool {
        self.num_kept == usize::MAX
    }

    /// Computed whole blocks that the tree keeps.
    fn num_nodes(&self) -> usize {
        self.num_computed.min(self.num_kept) / BLOCK_TOKENS
    }

    fn holds(&self, node: &NaiveNode) -> bool {
        node.is_whole()
            && self.salt == node.salt
            && self.num_computed.min(self.num_kept) >= node.path.len()
            && self.token_ids.starts_with(&node.path)
    }
}

impl NaivePool {
    fn is_held(&self, node: &NaiveNode) -> bool {
        node.writer.is_some() || self.sequences.values().any(|sequence| sequence.holds(node))
    }

    fn num_cached(&self) -> usize {
        self.nodes.iter().filter(|node| !self.is_held(node)).count()
    }

    /// Whole computed blocks once however many hold them, and each sequence's others.
    fn num_used(&self) -> usize {
        let shared = self
            .nodes
            .iter()
            .filter(|node| node.is_whole() && self.is_held(node));
        let own = self
            .sequences
            .values()
            .map(|s| s.num_blocks() - s.num_nodes());
        shared.count() + own.sum::<usize>()
    }

    fn num_free(&self) -> usize {
        self.num_blocks - self.num_used() - self.num_cached()
    }

    fn hit(&self, sequence: &NaiveSequence) -> NaiveHit {
        let tokens = &sequence.token_ids[..sequence.token_ids.len() - 1];
        let node = |path: &[TokenId]| {
            let mut nodes = self.nodes.iter();
            nodes.find(|node| node.salt == sequence.salt && node.path == path)
        };
        let mut num_whole = sequence.num_whole();
        while let Some(path) = tokens.get(..(num_whole + 1) * BLOCK_TOKENS)
            && node(path).is_some()
        {
            num_whole += 1;
        }
        let begin = num_whole * BLOCK_TOKENS;
        let rest = tokens.get(begin..).unwrap_or(&[]);
        let num_common = |node: &NaiveNode| {
            let pairs = node.path[begin..].iter().zip(rest);
            pairs.take_while(|(a, b)| a == b).count()
        };
        let next_blocks: Vec<&NaiveNode> = self
            .nodes
            .iter()
            .filter(|node| node.salt == sequence.salt && node.index() == num_whole)
            .filter(|node| tokens.get(..begin) == node.path.get(..begin))
            .collect();
        let most = next_blocks
            .iter()
            .map(|node| num_common(node))
            .max()
            .unwrap_or(0);
        let mut best: Vec<&NaiveNode> = next_blocks;
        best.retain(|node| most > 0 && num_common(node) == most);
        best.sort_by(|a, b| a.path.cmp(&b.path));
        // Of equally good ones, the first behind the tokens in order, else the last before them.
        let copied_from = best
            .iter()
            .find(|node| &node.path[begin..] > rest)
            .or(best.last())
            .map(|&node| node.clone());
        NaiveHit {
            num_tokens: begin + most,
            copied_from,
        }
    }

    fn use_node(&mut self, node: &NaiveNode) {
        let index = self.nodes.iter().position(|other| other == node);
        let node = self.nodes.remove(index.expect("it is a node"));
        self.nodes.push(node);
    }

    fn evict(&mut self) {
        let is_free_leaf = |node: &NaiveNode| {
            !self.is_held(node) && !self.nodes.iter().any(|other| node.is_before(other))
        };
        let index = self.nodes.iter().position(is_free_leaf);
        self.nodes
            .remove(index.expect("cached blocks end in leaves"));
        self.num_evictions += 1;
    }

    fn insert(&mut self, id: u64, path: &[TokenId]) {
        if !self.sequences[&id].is_cached() {
            return;
        }
        let is_whole = path.len().is_multiple_of(BLOCK_TOKENS);
        let new = NaiveNode {
            salt: self.sequences[&id].salt,
            path: path.to_vec(),
            writer: (!is_whole).then_some(id),
        };
        let is_beside = |node: &NaiveNode| node.salt == new.salt && node.index() == new.index();
        if self
            .nodes
            .iter()
            .any(|node| is_beside(node) && node.path.starts_with(&new.path))
        {
            return;
        }
        self.nodes
            .retain(|node| !(is_beside(node) && node.is_before(&new)));
        self.nodes.push(new);
    }

    fn nth(&self, nth: usize) -> Option<u64> {
        let num_sequences = self.sequences.len().max(1);
        self.sequences.keys().nth(nth % num_sequences).copied()
    }

    fn begin(&mut self, token_ids: Vec<TokenId>, salt: Salt) {
        let mut sequence = NaiveSequence {
            token_ids,
            salt,
            num_computed: 0,
            num_kept: usize::MAX,
        };
        let hit = self.hit(&sequence);
        sequence.num_computed = hit.num_tokens;
        self.start(sequence, hit.copied_from);
    }

    fn fork(&mut self, nth: usize, own: &[TokenId], is_cached: bool) {
        let Some(trunk) = self.nth(nth).map(|id| self.sequences[&id].clone()) else {
            return;
        };
        let num_forked = trunk.token_ids.len();
        if trunk.num_computed < num_forked || !trunk.is_cached() {
            return;
        }
        let mut branch = NaiveSequence {
            token_ids: [trunk.token_ids.as_slice(), own].concat(),
            num_computed: trunk.num_whole() * BLOCK_TOKENS,
            num_kept: if is_cached { usize::MAX } else { num_forked },
            ..trunk
        };
        let hit = self.hit(&branch);
        let takes_hit = is_cached && hit.num_tokens >= num_forked;
        branch.num_computed = if takes_hit {
            hit.num_tokens
        } else {
            num_forked
        };
        self.start(branch, hit.copied_from.filter(|_| takes_hit));
    }

    /// Takes the sequence in, if there is room for what it has not computed.
    fn start(&mut self, sequence: NaiveSequence, copied_from: Option<NaiveNode>) {
        let id = self.num_begun;
        self.num_begun += 1;
        let num_free = self.num_free();
        let num_new = sequence.num_blocks() - sequence.num_whole();
        let mut with_it = self.clone();
        with_it.sequences.insert(id, sequence);
        if num_new > num_free + with_it.num_cached() {
            return;
        }
        if let Some(node) = &copied_from {
            with_it.use_node(node);
        }
        for _ in num_free..num_new {
            with_it.evict();
        }
        *self = with_it;
    }

    fn apply(mut self, operation: &Operation) -> Self {
        match operation {
            Operation::Begin { token_ids, salt } => self.begin(token_ids.clone(), *salt),
            Operation::Compute { nth, num_tokens } => {
                let Some(id) = self.nth(*nth) else {
                    return self;
                };
                let sequence = self.sequences.get_mut(&id).expect("it is live");
                let begin = sequence.num_whole();
                let num_left = sequence.token_ids.len() - sequence.num_computed;
                sequence.num_computed += num_left.min(*num_tokens);
                let sequence = sequence.clone();
                for index in begin..sequence.num_whole() {
                    self.insert(id, &sequence.token_ids[..(index + 1) * BLOCK_TOKENS]);
                }
            }
            Operation::TakeHit { nth } => {
                let Some(id) = self.nth(*nth) else {
                    return self;
                };
                if !self.sequences[&id].is_cached() {
                    return self;
                }
                let hit = self.hit(&self.sequences[&id]);
                let sequence = self.sequences.get_mut(&id).expect("it is live");
                if hit.num_tokens > sequence.num_computed {
                    sequence.num_computed = hit.num_tokens;
                    if let Some(node) = &hit.copied_from {
                        self.use_node(node);
                    }
                }
            }
            Operation::Append { nth, token_id } => {
                let Some(id) = self.nth(*nth) else {
                    return self;
                };
                let is_full = self.sequences[&id]
                    .token_ids
                    .len()
                    .is_multiple_of(BLOCK_TOKENS);
                if is_full && self.num_free() == 0 {
                    if self.num_cached() == 0 {
                        return self;
                    }
                    self.evict();
                }
                let sequence = self.sequences.get_mut(&id).expect("it is live");
                sequence.token_ids.push(*token_id);
            }
            Operation::CacheTail { nth } => {
                let Some(id) = self.nth(*nth) else {
                    return self;
                };
                self.cache_tail(id);
            }
            Operation::Fork {
                nth,
                token_ids,
                is_cached,
            } => self.fork(*nth, token_ids, *is_cached),
            Operation::End { nth } => {
                let Some(id) = self.nth(*nth) else {
                    return self;
                };
                self.cache_tail(id);
                let sequence = self.sequences.remove(&id).expect("it is live");
                let mut released: Vec<NaiveNode> = self
                    .nodes
                    .iter()
                    .filter(|node| node.writer == Some(id) || sequence.holds(node))
                    .cloned()
                    .collect();
                released.sort_by_key(|node| std::cmp::Reverse(node.path.len()));
                for node in released {
                    self.use_node(&node);
                    let last = self.nodes.last_mut().expect("just put there");
                    if last.writer == Some(id) {
                        last.writer = None;
                    }
                }
            }
        }
        self
    }

    fn cache_tail(&mut self, id: u64) {
        let sequence = &self.sequences[&id];
        if !sequence.num_computed.is_multiple_of(BLOCK_TOKENS) {
            let path = sequence.token_ids[..sequence.num_computed].to_vec();
            self.insert(id, &path);
        }
    }
}

impl ReferenceStateMachine for NaivePool {
    type State = Self;
    type Transition = Operation;

    fn init_state() -> BoxedStrategy<Self> {
        (3_usize..24)
            .prop_map(|num_blocks| Self {
                num_blocks,
                num_begun: 0,
                sequences: BTreeMap::new(),
                nodes: Vec::new(),
                num_evictions: 0,
            })
            .boxed()
    }

    fn transitions(_: &Self) -> BoxedStrategy<Operation> {
        let nth = any::<usize>;
        let salts = prop::sample::select(vec![None, None, None, Some("a")]);
        prop_oneof![
            3 => (prop::collection::vec(0_u32..2, 1..20), salts)
                .prop_map(|(token_ids, salt)| Operation::Begin { token_ids, salt }),
            5 => (nth(), 1_usize..9)
                .prop_map(|(nth, num_tokens)| Operation::Compute { nth, num_tokens }),
            2 => nth().prop_map(|nth| Operation::TakeHit { nth }),
            2 => (nth(), 0_u32..2).prop_map(|(nth, token_id)| Operation::Append { nth, token_id }),
            1 => nth().prop_map(|nth| Operation::CacheTail { nth }),
            3 => (nth(), prop::collection::vec(0_u32..2, 1..9), any::<bool>()).prop_map(
                |(nth, token_ids, is_cached)| Operation::Fork { nth, token_ids, is_cached }
            ),
            3 => nth().prop_map(|nth| Operation::End { nth }),
        ]
        .boxed()
    }

    fn apply(state: Self, operation: &Operation) -> Self {
        state.apply(operation)
    }
}
