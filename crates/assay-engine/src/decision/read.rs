//! What a node's row says: the raw scores of the tokens that labels go on with, and the mass of all others.

use std::collections::BTreeSet;

use assay_kernels::Compute;
use assay_kernels::exp64::exp64;
use assay_kernels::log_softmax::{LogSumExp, NonFiniteRow, log_sum_exp};
use assay_models::{Logits, TokenId};

use super::plan::{NodeName, Plan};
use super::trie::LabelTrie;
use crate::logprobs::logprob_of_set;

/// One node, read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NodeReading {
    pub(crate) name: NodeName,
    /// Raw log-probabilities of the node's children, by their tokens.
    pub(crate) children: Vec<f64>,
    /// Of the terminators together; `None` where no label is whole.
    pub(crate) end: Option<f64>,
    /// Probability of all ids that no label goes on with. While healed bytes are not all spelled, only of those that
    /// spell the rest of them.
    pub(crate) leaving: f64,
    /// Probability of all ids that spell the rest of the healed bytes; 0 once all are spelled.
    pub(crate) covering: f64,
    /// The most likely id, ties by lower id; `None` if no label goes on with it or ends with it.
    pub(crate) argmax: Option<TokenId>,
}

/// Reads a row for all nodes that it is the row of.
///
/// # Errors
/// [`NonFiniteRow`] if a logit is not finite, as for a row that is scored or drawn from.
pub(crate) fn read_nodes(
    compute: &Compute,
    logits: &Logits,
    row_index: usize,
    plan: &Plan,
    names: &[NodeName],
) -> Result<Vec<NodeReading>, NonFiniteRow> {
    if !logits.is_finite(row_index) {
        return Err(NonFiniteRow);
    }
    let row = Row {
        compute,
        logits: logits.row(row_index),
        normaliser: logits.log_sum_exp(compute, row_index)?,
    };
    let read = |&name: &NodeName| row.read(name, &plan.questions[name.question].trie);
    Ok(names.iter().map(read).collect())
}

struct Row<'a> {
    compute: &'a Compute,
    /// `[vocab_size]`, all finite.
    logits: &'a [f32],
    normaliser: LogSumExp,
}

impl Row<'_> {
    fn read(&self, name: NodeName, trie: &LabelTrie) -> NodeReading {
        let node = &trie.nodes[name.node];
        let ends = match node.label {
            Some(_) => trie.end_token_ids.as_slice(),
            None => &[],
        };
        let children = node.children.keys().map(|&id| self.logprob(id)).collect();
        // A child is never a terminator where one is asked for, so each id is named once.
        let named: BTreeSet<TokenId> = node.children.keys().chain(ends).copied().collect();
        let covering = trie.healing.covering(node.num_spelled);
        let (leaving, rivals) = if trie.is_healed(name.node) {
            (self.mass_between(&named), None)
        } else {
            let others = covering.iter().copied().filter(|id| !named.contains(id));
            // Ids that spell something else than the healed bytes are no rivals: they are given not to come.
            let inside = trie.healing.inside(node.num_spelled);
            (self.mass_of(others), Some([covering, inside].concat()))
        };
        NodeReading {
            name,
            children,
            end: (!ends.is_empty())
                .then(|| logprob_of_set(ends.iter().map(|&id| self.logprob(id)))),
            leaving,
            covering: self.mass_of(covering.iter().copied()),
            argmax: match rivals {
                None => self.argmax_if_named(&named),
                Some(rivals) => self
                    .best(rivals.into_iter())
                    .filter(|id| named.contains(id)),
            },
        }
    }

    /// The bits that scoring the token as part of a prompt gives.
    fn logprob(&self, token_id: TokenId) -> f64 {
        self.normaliser.logprob(self.logits[token_id as usize])
    }

    /// Probability of all ids but `named`: each stretch between two of them is summed by itself, so the named ids'
    /// own values have no part in it.
    fn mass_between(&self, named: &BTreeSet<TokenId>) -> f64 {
        let mut begin = 0;
        let mut mass = 0.0;
        for end in named
            .iter()
            .map(|&id| id as usize)
            .chain([self.logits.len()])
        {
            mass += self.mass(&self.logits[begin..end]);
            begin = end + 1;
        }
        mass
    }

    fn mass_of(&self, ids: impl Iterator<Item = TokenId>) -> f64 {
        let logits: Vec<f32> = ids.map(|id| self.logits[id as usize]).collect();
        self.mass(&logits)
    }

    /// Probability of the ids that have these logits.
    fn mass(&self, logits: &[f32]) -> f64 {
        // All are finite, so only a sum over nothing has no normaliser.
        log_sum_exp(self.compute, logits).map_or(0.0, |sum| {
            exp64(
                f64::from(sum.max) - f64::from(self.normaliser.max) + sum.ln_z
                    - self.normaliser.ln_z,
            )
        })
    }

    fn argmax_if_named(&self, named: &BTreeSet<TokenId>) -> Option<TokenId> {
        let best = self.best(named.iter().copied())?;
        let most = self.logits[best as usize];
        // Looking for the most likely id of all is dear; it is needed only where a named one may be it.
        let is_most = most >= self.normaliser.max;
        let is_first = || !self.logits[..best as usize].contains(&most);
        (is_most && is_first()).then_some(best)
    }

    /// The likeliest of `ids`, ties by lower id.
    fn best(&self, ids: impl Iterator<Item = TokenId>) -> Option<TokenId> {
        ids.reduce(|best, id| {
            let (a, b) = (self.logits[id as usize], self.logits[best as usize]);
            if a > b || (a == b && id < best) {
                id
            } else {
                best
            }
        })
    }
}
