//! Which computed KV blocks hold which tokens: a radix tree whose edges are blocks of token ids.
//!
//! A node is one KV block; the path to it spells every token that its keys and values depend on. Ids
//! are compared one by one, never by a hash, and each cache salt has a tree of its own, so a lookup
//! cannot find another prompt's block. One tree serves one model: it lives and dies with its engine.
//!
//! A node of a whole block may be shared as it is and may have children. A node of fewer tokens is the
//! end of a prompt or reply: a leaf, good for copying from, whose owner may still write behind them. No
//! node's tokens begin a sibling's.
//!
//! Knows neither who holds a block nor when one was used: that is `block_manager.rs`.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use assay_models::{BlockId, TokenId};

/// Requests of different salts never share a block; `None` is a salt of its own.
pub type CacheSalt = Option<Arc<str>>;

/// Nodes by the tokens of their block.
type Children = BTreeMap<Arc<[TokenId]>, BlockId>;

/// The block before a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parent {
    /// None: the block begins a sequence of this salt.
    Root(CacheSalt),
    /// This node's.
    Block(BlockId),
}

/// What the tree holds of a sequence's tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Whole blocks, in order.
    pub(crate) blocks: Vec<BlockId>,
    /// After them, the block that begins with the most of the further tokens, and how many.
    pub(crate) partial: Option<(BlockId, usize)>,
}

/// What became of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// The block is a node now; `replaced` was one, of fewer of the same tokens (perhaps the block itself).
    Node { replaced: Option<BlockId> },
    /// The tokens were there: in this block, which may have more of them.
    Present(BlockId),
}

#[derive(Debug)]
struct Node {
    parent: Parent,
    token_ids: Arc<[TokenId]>,
    children: Children,
}

/// The trees of all salts. At most one node a block, so nodes are named by their blocks.
#[derive(Debug)]
pub(crate) struct PrefixTree {
    block_tokens: usize,
    roots: BTreeMap<CacheSalt, Children>,
    /// `[num_blocks]`.
    nodes: Vec<Option<Node>>,
}

impl PrefixTree {
    pub(crate) fn new(num_blocks: usize, block_tokens: usize) -> Self {
        Self {
            block_tokens,
            roots: BTreeMap::new(),
            nodes: (0..num_blocks).map(|_| None).collect(),
        }
    }

    /// Follows `token_ids`, which come after `parent`'s, as far as the tree knows them.
    pub(crate) fn find(&self, parent: &Parent, token_ids: &[TokenId]) -> Found {
        let mut found = Found::default();
        let mut children = self.children(parent);
        let mut rest = token_ids;
        while let Some((tokens, behind)) = rest.split_at_checked(self.block_tokens)
            && let Some(&block) = children.and_then(|children| children.get(tokens))
        {
            found.blocks.push(block);
            children = self.node(block).map(|node| &node.children);
            rest = behind;
        }
        found.partial = children.and_then(|children| longest_start(children, rest));
        found
    }

    /// Makes `block`, which holds `token_ids` (1 to a whole block of them) after `parent`'s, a node.
    ///
    /// # Panics
    /// If `parent` is a block outside the tree.
    pub(crate) fn insert(
        &mut self,
        parent: &Parent,
        token_ids: &[TokenId],
        block: BlockId,
    ) -> Inserted {
        let siblings = self.children(parent);
        if let Some(present) = siblings.and_then(|siblings| beginning_with(siblings, token_ids)) {
            return Inserted::Present(present);
        }
        let replaced = siblings.and_then(|siblings| start_of(siblings, token_ids));
        if let Some(replaced) = replaced {
            self.remove(replaced);
        }
        let token_ids: Arc<[TokenId]> = token_ids.into();
        self.children_mut(parent)
            .insert(Arc::clone(&token_ids), block);
        let before = self.nodes[block.0 as usize].replace(Node {
            parent: parent.clone(),
            token_ids,
            children: Children::new(),
        });
        assert!(before.is_none(), "{block:?} is in the tree twice");
        Inserted::Node { replaced }
    }

    /// Takes a leaf out; its parent.
    ///
    /// # Panics
    /// If `block` is not in the tree or has children.
    pub(crate) fn remove(&mut self, block: BlockId) -> Parent {
        let node = self.nodes[block.0 as usize]
            .take()
            .expect("only nodes are removed");
        assert!(node.children.is_empty(), "{block:?} has children");
        let siblings = self.children_mut(&node.parent);
        siblings.remove(&node.token_ids);
        let is_last = siblings.is_empty();
        // Salts come from requests: an empty tree must not stay.
        if let Parent::Root(salt) = &node.parent
            && is_last
        {
            self.roots.remove(salt);
        }
        node.parent
    }

    /// Whether `block` is a node.
    pub(crate) fn contains(&self, block: BlockId) -> bool {
        self.node(block).is_some()
    }

    /// Whether `block` is a node without children.
    pub(crate) fn is_leaf(&self, block: BlockId) -> bool {
        self.node(block)
            .is_some_and(|node| node.children.is_empty())
    }

    fn node(&self, block: BlockId) -> Option<&Node> {
        self.nodes[block.0 as usize].as_ref()
    }

    fn children(&self, parent: &Parent) -> Option<&Children> {
        match parent {
            Parent::Root(salt) => self.roots.get(salt),
            Parent::Block(block) => self.node(*block).map(|node| &node.children),
        }
    }

    fn children_mut(&mut self, parent: &Parent) -> &mut Children {
        match parent {
            Parent::Root(salt) => self.roots.entry(salt.clone()).or_default(),
            Parent::Block(block) => {
                let node = self.nodes[block.0 as usize].as_mut();
                &mut node.expect("blocks join the tree front to back").children
            }
        }
    }
}

/// The child that shares most first tokens with `token_ids`, at least one. In the order of the keys it
/// is a neighbour of theirs.
fn longest_start(children: &Children, token_ids: &[TokenId]) -> Option<(BlockId, usize)> {
    let mut below = children.range::<[TokenId], _>((Bound::Unbounded, Bound::Included(token_ids)));
    let mut above = children.range::<[TokenId], _>((Bound::Excluded(token_ids), Bound::Unbounded));
    let neighbours = [below.next_back(), above.next()];
    neighbours
        .into_iter()
        .flatten()
        .map(|(key, &block)| (block, num_shared(key, token_ids)))
        .filter(|&(_, num_tokens)| num_tokens > 0)
        .max_by_key(|&(_, num_tokens)| num_tokens)
}

/// The child whose tokens begin with `token_ids`.
fn beginning_with(children: &Children, token_ids: &[TokenId]) -> Option<BlockId> {
    let mut from = children.range::<[TokenId], _>((Bound::Included(token_ids), Bound::Unbounded));
    let (key, &block) = from.next()?;
    key.starts_with(token_ids).then_some(block)
}

/// The child whose tokens begin `token_ids`: the last key before it, as none begins another.
fn start_of(children: &Children, token_ids: &[TokenId]) -> Option<BlockId> {
    let mut before = children.range::<[TokenId], _>((Bound::Unbounded, Bound::Excluded(token_ids)));
    let (key, &block) = before.next_back()?;
    token_ids.starts_with(key).then_some(block)
}

fn num_shared(a: &[TokenId], b: &[TokenId]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
