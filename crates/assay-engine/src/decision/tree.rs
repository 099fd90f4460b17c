//! Token paths of one request, each shared stretch once: a radix tree.
//!
//! A segment is named by where it ends, and keeps its name when another path parts inside it: what is split off is the
//! stretch before the parting.

use std::collections::BTreeMap;

use assay_models::TokenId;

/// Tokens between two places where paths part or a caller's path ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TreeSegment {
    /// The segment before; the root is its own.
    pub(crate) parent: usize,
    /// Empty for the root only.
    pub(crate) token_ids: Vec<TokenId>,
    /// Segments that follow, by first token.
    pub(crate) children: BTreeMap<TokenId, usize>,
}

/// A token of the tree: its segment, and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) segment: usize,
    pub(crate) offset: usize,
}

/// The tree; segment 0 is the root, in front of every token.
#[derive(Clone, Debug)]
pub(crate) struct TokenTree {
    pub(crate) segments: Vec<TreeSegment>,
}

impl TokenTree {
    pub(crate) fn new() -> Self {
        Self {
            segments: vec![TreeSegment::default()],
        }
    }

    /// Adds `path` behind the end of segment `from`; the segment that ends where it ends.
    pub(crate) fn insert(&mut self, from: usize, path: &[TokenId]) -> usize {
        let mut at = from;
        let mut rest = path;
        while let Some(first) = rest.first() {
            let Some(&child) = self.segments[at].children.get(first) else {
                return self.add(at, rest.to_vec());
            };
            let tokens = &self.segments[child].token_ids;
            let num_common = tokens.iter().zip(rest).take_while(|(a, b)| a == b).count();
            at = if num_common < tokens.len() {
                self.split(child, num_common)
            } else {
                child
            };
            rest = &rest[num_common..];
        }
        at
    }

    /// The last token of a segment.
    ///
    /// # Panics
    /// For the root, which has none.
    pub(crate) fn end(&self, segment: usize) -> Place {
        let num_tokens = self.segments[segment].token_ids.len();
        Place {
            segment,
            offset: num_tokens
                .checked_sub(1)
                .expect("only the root has no token"),
        }
    }

    /// The place of `token_id` behind `place`.
    ///
    /// # Panics
    /// If no path goes on with it there.
    pub(crate) fn step(&self, place: Place, token_id: TokenId) -> Place {
        let segment = &self.segments[place.segment];
        let offset = place.offset + 1;
        if let Some(&next) = segment.token_ids.get(offset) {
            assert_eq!(next, token_id, "{place:?} goes on otherwise");
            return Place { offset, ..place };
        }
        Place {
            segment: segment.children[&token_id],
            offset: 0,
        }
    }

    fn add(&mut self, parent: usize, token_ids: Vec<TokenId>) -> usize {
        let segment = self.segments.len();
        self.segments[parent].children.insert(token_ids[0], segment);
        self.segments.push(TreeSegment {
            parent,
            token_ids,
            children: BTreeMap::new(),
        });
        segment
    }

    /// Parts a segment behind its first `num_tokens`, which become one of their own; that one.
    fn split(&mut self, segment: usize, num_tokens: usize) -> usize {
        let lower = &mut self.segments[segment];
        let token_ids = lower.token_ids.split_off(num_tokens);
        let token_ids = std::mem::replace(&mut lower.token_ids, token_ids);
        let parent = lower.parent;
        let upper = self.add(parent, token_ids);
        let first = self.segments[segment].token_ids[0];
        self.segments[segment].parent = upper;
        self.segments[upper].children.insert(first, segment);
        upper
    }
}

#[cfg(test)]
mod tests {
    use super::{Place, TokenTree};

    #[test]
    fn paths_share_what_they_begin_with_and_keep_their_names() {
        let mut tree = TokenTree::new();
        let long = tree.insert(0, &[1, 2, 3, 4, 5]);
        let short = tree.insert(0, &[1, 2, 3]);
        let other = tree.insert(0, &[1, 2, 9]);
        let again = tree.insert(0, &[1, 2, 3, 4, 5]);
        assert_eq!(again, long);
        let tokens = |segment: usize| tree.segments[segment].token_ids.clone();
        assert_eq!(
            [tokens(long), tokens(short), tokens(other)],
            [vec![4, 5], vec![3], vec![9]]
        );
        assert_eq!(tree.segments[long].parent, short);
        let trunk = tree.segments[short].parent;
        assert_eq!(
            (tokens(trunk), tree.segments[trunk].parent),
            (vec![1, 2], 0)
        );
        let end = tree.end(trunk);
        let at = tree.step(tree.step(tree.step(end, 3), 4), 5);
        assert_eq!(
            at,
            Place {
                segment: long,
                offset: 1
            }
        );

        let behind = tree.insert(short, &[4, 7]);
        assert_eq!(tree.segments[behind].token_ids, [7]);
        assert_eq!(tree.segments[long].token_ids, [5]);
        let num_tokens: usize = tree.segments.iter().map(|s| s.token_ids.len()).sum();
        assert_eq!(num_tokens, 7, "1 2 3 4 5 9 7");
    }
}
