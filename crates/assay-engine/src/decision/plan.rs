//! What a decision computes and reads: its token tree in the order of computing, and whose each row is.

use std::collections::{BTreeMap, BTreeSet};

use assay_models::{ModelInfo, TokenId};

use super::healing::Healing;
use super::request::{DecisionRequest, InvalidDecision, LabelQuestion};
use super::tree::{Place, TokenTree};
use super::trie::{LabelTrie, TrieFault};
use crate::prefix_tree::CacheSalt;
use crate::token_bytes::TokenBytes;

/// A request as the engine runs it.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) cache_salt: CacheSalt,
    /// Depth first: parents before children, and a segment's descendants right behind it. The first is the trunk,
    /// which all others follow.
    pub(crate) segments: Vec<Segment>,
    /// Rows that are read: segment and position of the row's token.
    pub(crate) reads: BTreeMap<(usize, u32), Vec<NodeName>>,
    /// By question.
    pub(crate) questions: Vec<PlannedQuestion>,
    /// Distinct prompt tokens.
    pub(crate) num_prompt_tokens: usize,
    /// Distinct label edges.
    pub(crate) num_edges: usize,
}

/// Tokens that are computed one behind the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The segment whose last token these follow; the trunk's is itself.
    pub(crate) parent: usize,
    /// Position of the first token.
    pub(crate) begin: usize,
    pub(crate) token_ids: Vec<TokenId>,
    /// First position whose row is read; `None` if no row is.
    pub(crate) read_from: Option<usize>,
    /// Its tokens that belong to prompts, and are worth keeping in the prefix cache.
    pub(crate) num_prompt_tokens: usize,
}

/// A question's node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeName {
    pub(crate) question: usize,
    pub(crate) node: usize,
}

/// A question's trie, and where its prompt stands.
#[derive(Debug)]
pub(crate) struct PlannedQuestion {
    pub(crate) trie: LabelTrie,
    pub(crate) num_prompt_tokens: usize,
    /// Segments that the prompt's tokens are in, the trunk first.
    pub(crate) segments: Vec<usize>,
}

impl Plan {
    /// Checks the request and lays it out.
    ///
    /// # Errors
    /// The first value outside its documented range.
    pub(crate) fn new(
        request: &DecisionRequest,
        model: &ModelInfo,
        token_bytes: &TokenBytes,
    ) -> Result<Self, InvalidDecision> {
        let tries = label_tries(request, model, token_bytes)?;
        let mut tree = TokenTree::new();
        let ends: Vec<usize> = request
            .questions
            .iter()
            .map(|question| tree.insert(0, &question.prompt_token_ids))
            .collect();
        if let Some(&second) = tree.segments[0].children.values().nth(1) {
            let is_apart = |end: &usize| ancestors(&tree, *end).last() == Some(second);
            return Err(InvalidDecision::NothingShared {
                question: ends.iter().position(is_apart).unwrap_or_default(),
            });
        }
        for (trie, &end) in tries.iter().zip(&ends) {
            let leaves = (0..trie.nodes.len()).filter(|&node| trie.nodes[node].children.is_empty());
            for leaf in leaves {
                tree.insert(end, &trie.path(leaf));
            }
        }
        let places: Vec<Vec<Place>> = tries
            .iter()
            .zip(&ends)
            .map(|(trie, &end)| node_places(&tree, trie, end))
            .collect();
        let edges: BTreeSet<Place> = places
            .iter()
            .flat_map(|of_nodes| &of_nodes[1..])
            .copied()
            .collect();
        let limit = request.max_trie_edges;
        if edges.len() > limit {
            let edges = edges.len();
            return Err(InvalidDecision::TooManyEdges { edges, limit });
        }
        let prompt_segments: BTreeSet<usize> =
            ends.iter().flat_map(|&end| ancestors(&tree, end)).collect();
        let layout = Layout::new(&tree, &prompt_segments, places.iter().flatten());
        let mut reads: BTreeMap<(usize, u32), Vec<NodeName>> = BTreeMap::new();
        for (question, of_nodes) in places.iter().enumerate() {
            for (node, &place) in of_nodes.iter().enumerate() {
                let name = NodeName { question, node };
                reads.entry(layout.row(place)).or_default().push(name);
            }
        }
        let questions = tries
            .into_iter()
            .zip(&request.questions)
            .zip(&ends)
            .map(|((trie, question), &end)| {
                let mut segments: Vec<usize> = ancestors(&tree, end)
                    .map(|segment| layout.row(tree.end(segment)).0)
                    .collect();
                segments.reverse();
                segments.dedup();
                PlannedQuestion {
                    trie,
                    num_prompt_tokens: question.prompt_token_ids.len(),
                    segments,
                }
            })
            .collect();
        Ok(Self {
            cache_salt: request.cache_salt.clone(),
            segments: layout.segments,
            reads,
            questions,
            num_prompt_tokens: prompt_segments
                .iter()
                .map(|&segment| tree.segments[segment].token_ids.len())
                .sum(),
            num_edges: edges.len(),
        })
    }

    /// KV blocks that the dearest path through the tree takes with all that it forks from, `block_tokens` to a block:
    /// where two stretches part inside a block, each has its own copy of it.
    pub(crate) fn blocks_of_dearest_path(&self, block_tokens: usize) -> usize {
        let mut forked: Vec<usize> = Vec::with_capacity(self.segments.len());
        let mut most = 0;
        for (index, segment) in self.segments.iter().enumerate() {
            let before = if index == 0 {
                0
            } else {
                forked[segment.parent]
            };
            let is_inside_block = !segment.begin.is_multiple_of(block_tokens);
            let num_forked = before + usize::from(is_inside_block);
            forked.push(num_forked);
            let end = segment.begin + segment.token_ids.len();
            most = most.max(end.div_ceil(block_tokens) + num_forked);
        }
        most
    }

    /// The longest path in tokens.
    pub(crate) fn longest_path(&self) -> usize {
        let ends = self
            .segments
            .iter()
            .map(|segment| segment.begin + segment.token_ids.len());
        ends.max().unwrap_or_default()
    }
}

fn label_tries(
    request: &DecisionRequest,
    model: &ModelInfo,
    token_bytes: &TokenBytes,
) -> Result<Vec<LabelTrie>, InvalidDecision> {
    if request.questions.is_empty() {
        return Err(InvalidDecision::NoQuestions);
    }
    let limit = request.max_trie_edges;
    let mut healings: BTreeMap<&[u8], Healing> = BTreeMap::new();
    let mut tries = Vec::with_capacity(request.questions.len());
    for (index, question) in request.questions.iter().enumerate() {
        check_question(index, question, model)?;
        let bytes = question.healed_bytes.as_slice();
        let healing = healings
            .entry(bytes)
            .or_insert_with(|| Healing::new(bytes, token_bytes));
        // Edges that questions share count once, so this is a first look: one trie that passes the limit never fits.
        let trie = LabelTrie::new(question, healing.clone(), model.vocab_size, limit).map_err(
            |fault| match fault {
                TrieFault::Label(label, fault) => InvalidDecision::Label {
                    question: index,
                    label,
                    fault,
                },
                TrieFault::TooManyEdges(edges) => InvalidDecision::TooManyEdges { edges, limit },
            },
        )?;
        tries.push(trie);
    }
    Ok(tries)
}

fn check_question(
    question: usize,
    asked: &LabelQuestion,
    model: &ModelInfo,
) -> Result<(), InvalidDecision> {
    let vocab_size = model.vocab_size;
    if asked.prompt_token_ids.is_empty() {
        return Err(InvalidDecision::EmptyPrompt { question });
    }
    let ends = &asked.end_token_ids;
    if asked.labels.is_empty() || ends.is_empty() || !ends.is_sorted_by(|a, b| a < b) {
        return Err(InvalidDecision::NoLabels { question });
    }
    let ids = asked.prompt_token_ids.iter().chain(ends);
    match ids.copied().find(|&id| id as usize >= vocab_size) {
        Some(token_id) => Err(InvalidDecision::UnknownToken {
            question,
            token_id,
            vocab_size,
        }),
        None => Ok(()),
    }
}

/// The segment and those before it, the root aside, the last first.
fn ancestors(tree: &TokenTree, segment: usize) -> impl Iterator<Item = usize> {
    let before =
        |&segment: &usize| Some(tree.segments[segment].parent).filter(|&parent| parent != 0);
    std::iter::successors(Some(segment).filter(|&segment| segment != 0), before)
}

fn node_places(tree: &TokenTree, trie: &LabelTrie, prompt_end: usize) -> Vec<Place> {
    let mut places = vec![tree.end(prompt_end)];
    for node in &trie.nodes[1..] {
        places.push(tree.step(places[node.parent], node.token_id));
    }
    places
}

/// The tree in the order of computing.
struct Layout {
    segments: Vec<Segment>,
    /// By the tree's segment: the segment here, and the position of its first token.
    of_tree: Vec<(usize, usize)>,
}

impl Layout {
    fn new<'a>(
        tree: &TokenTree,
        prompt_segments: &BTreeSet<usize>,
        read: impl Iterator<Item = &'a Place>,
    ) -> Self {
        let mut read_from: Vec<Option<usize>> = vec![None; tree.segments.len()];
        for place in read {
            let first = &mut read_from[place.segment];
            *first = Some(first.map_or(place.offset, |first| first.min(place.offset)));
        }
        let mut layout = Self {
            segments: Vec::new(),
            of_tree: vec![(0, 0); tree.segments.len()],
        };
        let mut stack: Vec<usize> = tree.segments[0].children.values().copied().collect();
        while let Some(index) = stack.pop() {
            let found = &tree.segments[index];
            let begin = match found.parent {
                0 => 0,
                parent => layout.of_tree[parent].1 + tree.segments[parent].token_ids.len(),
            };
            let first_read = read_from[index].map(|offset| begin + offset);
            let num_prompt_tokens = match prompt_segments.contains(&index) {
                true => found.token_ids.len(),
                false => 0,
            };
            let parent = layout.of_tree[found.parent].0;
            let is_only_child =
                found.parent != 0 && tree.segments[found.parent].children.len() == 1;
            // A stretch without a parting is one segment, unless rows would be read that nobody wants.
            if is_only_child && read_from[index] == Some(0) {
                let merged = &mut layout.segments[parent];
                merged.token_ids.extend_from_slice(&found.token_ids);
                merged.read_from = merged.read_from.or(first_read);
                merged.num_prompt_tokens += num_prompt_tokens;
                layout.of_tree[index] = (parent, begin);
            } else {
                layout.of_tree[index] = (layout.segments.len(), begin);
                layout.segments.push(Segment {
                    parent,
                    begin,
                    token_ids: found.token_ids.clone(),
                    read_from: first_read,
                    num_prompt_tokens,
                });
            }
            stack.extend(found.children.values().rev());
        }
        layout
    }

    /// Segment and position of a place's row.
    fn row(&self, place: Place) -> (usize, u32) {
        let (segment, begin) = self.of_tree[place.segment];
        let position = u32::try_from(begin + place.offset);
        (
            segment,
            position.expect("positions are far below 2^32: the context bounds them"),
        )
    }
}
