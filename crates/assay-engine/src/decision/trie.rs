//! One question's labels as a trie: a node for each place where the model is asked what comes next.

use std::collections::BTreeMap;

use assay_models::TokenId;

use super::healing::Healing;
use super::request::{LabelFault, LabelQuestion, MAX_LABEL_TOKENS};

/// A place in a question's labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrieNode {
    /// The node before; the root is its own.
    pub(crate) parent: usize,
    /// The token that leads here from there; the prompt's last one for the root.
    pub(crate) token_id: TokenId,
    /// Nodes that follow, by their tokens.
    pub(crate) children: BTreeMap<TokenId, usize>,
    /// The label that is whole here.
    pub(crate) label: Option<usize>,
    /// Healed bytes that the path to here has spelled.
    pub(crate) num_spelled: usize,
}

/// The trie of one question. Node 0 is the prompt's end; parents come before their children.
#[derive(Clone, Debug)]
pub(crate) struct LabelTrie {
    pub(crate) nodes: Vec<TrieNode>,
    /// `[num_labels]` where each label is whole.
    pub(crate) label_nodes: Vec<usize>,
    /// Ascending.
    pub(crate) end_token_ids: Vec<TokenId>,
    pub(crate) healing: Healing,
}

/// Why there is no trie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TrieFault {
    /// A label, by index, cannot be read.
    Label(usize, LabelFault),
    /// It has more edges than it may.
    TooManyEdges(usize),
}

impl LabelTrie {
    /// The trie of `question`, whose prompt is not empty, with `max_edges` at most. `healing` is made of its
    /// `healed_bytes`.
    pub(crate) fn new(
        question: &LabelQuestion,
        healing: Healing,
        vocab_size: usize,
        max_edges: usize,
    ) -> Result<Self, TrieFault> {
        let root = TrieNode {
            parent: 0,
            token_id: question
                .prompt_token_ids
                .last()
                .copied()
                .unwrap_or_default(),
            children: BTreeMap::new(),
            label: None,
            num_spelled: 0,
        };
        let mut trie = Self {
            nodes: vec![root],
            label_nodes: Vec::with_capacity(question.labels.len()),
            end_token_ids: question.end_token_ids.clone(),
            healing,
        };
        for (index, label) in question.labels.iter().enumerate() {
            let fault = |fault| TrieFault::Label(index, fault);
            match label.len() {
                0 => return Err(fault(LabelFault::Empty)),
                1..=MAX_LABEL_TOKENS => {}
                num_tokens => return Err(fault(LabelFault::TooManyTokens { num_tokens })),
            }
            if let Some(&id) = label.iter().find(|&&id| id as usize >= vocab_size) {
                return Err(fault(LabelFault::UnknownToken(id)));
            }
            trie.add_label(index, label).map_err(fault)?;
            trie.check_edges(max_edges)?;
        }
        trie.add_healing_paths(max_edges)?;
        Ok(trie)
    }

    /// Edges: the tokens that are computed for this question's labels.
    pub(crate) fn num_edges(&self) -> usize {
        self.nodes.len() - 1
    }

    /// Whether the path to `node` has spelled all healed bytes.
    pub(crate) fn is_healed(&self, node: usize) -> bool {
        self.nodes[node].num_spelled >= self.healing.num_bytes()
    }

    /// Tokens from the root to `node`.
    pub(crate) fn path(&self, mut node: usize) -> Vec<TokenId> {
        let mut path = Vec::new();
        while node != 0 {
            path.push(self.nodes[node].token_id);
            node = self.nodes[node].parent;
        }
        path.reverse();
        path
    }

    fn add_label(&mut self, index: usize, label: &[TokenId]) -> Result<(), LabelFault> {
        let mut node = 0;
        for &token_id in label {
            // Before all healed bytes are spelled nothing can end: the end set is asked for behind labels only.
            if self.is_healed(node) && self.end_token_ids.binary_search(&token_id).is_ok() {
                return Err(LabelFault::HoldsEnd(token_id));
            }
            let spells = self.healing.spells(self.nodes[node].num_spelled, token_id);
            node = self.child(node, token_id, spells.ok_or(LabelFault::NotHealed)?);
        }
        if !self.is_healed(node) {
            return Err(LabelFault::NotHealed);
        }
        if let Some(first) = self.nodes[node].label {
            return Err(LabelFault::SameAs(first));
        }
        self.nodes[node].label = Some(index);
        self.label_nodes.push(node);
        Ok(())
    }

    /// Adds every other way to cut the healed bytes into tokens, up to the token that reaches their end.
    fn add_healing_paths(&mut self, max_edges: usize) -> Result<(), TrieFault> {
        let mut node = 0;
        while node < self.nodes.len() {
            let num_spelled = self.nodes[node].num_spelled;
            for token_id in self.healing.inside(num_spelled).to_vec() {
                if let Some(num_spelled) = self.healing.spells(num_spelled, token_id) {
                    self.child(node, token_id, num_spelled);
                    self.check_edges(max_edges)?;
                }
            }
            node += 1;
        }
        Ok(())
    }

    fn child(&mut self, parent: usize, token_id: TokenId, num_spelled: usize) -> usize {
        if let Some(&child) = self.nodes[parent].children.get(&token_id) {
            return child;
        }
        let child = self.nodes.len();
        self.nodes[parent].children.insert(token_id, child);
        self.nodes.push(TrieNode {
            parent,
            token_id,
            children: BTreeMap::new(),
            label: None,
            num_spelled,
        });
        child
    }

    fn check_edges(&self, max_edges: usize) -> Result<(), TrieFault> {
        match self.num_edges() {
            num_edges if num_edges > max_edges => Err(TrieFault::TooManyEdges(num_edges)),
            _ => Ok(()),
        }
    }
}
