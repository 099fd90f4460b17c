//! Where the end of a token sequence occurred before: the longest match, and what followed it.
//!
//! An index that grows with the sequence: a new token costs two hash entries, a look-up compares a few earlier
//! places. So a step costs the same at 100 tokens and at 100,000.
//!
//! Knows token ids only. The hash maps are read by key, never in their own order.

use std::collections::HashMap;

use assay_models::TokenId;

/// Tokens of a match that are looked at: a longer one says no more.
pub(crate) const MAX_MATCH: usize = 16;
/// Earlier places that a look-up compares, the latest first.
const MAX_CANDIDATES: usize = 16;

/// An earlier place whose last tokens are those of the sequence's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Match {
    /// Equal tokens, `1..=MAX_MATCH`.
    pub(crate) length: usize,
    /// Index of the token that followed there; below the sequence's length.
    pub(crate) next: usize,
}

/// Which tokens stood where in one sequence. The sequence itself stays with its owner, who shows the same
/// tokens each time, only more of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct NgramIndex {
    /// Asked first: the places of three tokens are few enough to find a long match among the latest.
    trigrams: Places<3>,
    /// One token is enough to find the way back behind a changed word.
    unigrams: Places<1>,
    num_indexed: usize,
}

impl NgramIndex {
    /// Tokens taken in so far.
    pub(crate) fn num_indexed(&self) -> usize {
        self.num_indexed
    }

    /// Takes in the next token: `token_ids` is all of the sequence up to it.
    ///
    /// # Panics
    /// If that is not one token more than before.
    pub(crate) fn push(&mut self, token_ids: &[TokenId]) {
        assert_eq!(token_ids.len(), self.num_indexed + 1, "one token at a time");
        // What now has a successor are the runs that ended before this token.
        let before = &token_ids[..self.num_indexed];
        self.trigrams.push(before);
        self.unigrams.push(before);
        self.num_indexed += 1;
    }

    /// The longest earlier match of the end of `token_ids`, all of which were pushed; the latest of equals.
    /// Where a run of tokens came very often, only its latest places count.
    pub(crate) fn longest_match(&self, token_ids: &[TokenId]) -> Option<Match> {
        assert_eq!(token_ids.len(), self.num_indexed, "all tokens are pushed");
        let found = self.trigrams.longest_match(token_ids);
        found.or_else(|| self.unigrams.longest_match(token_ids))
    }
}

/// The places behind each run of `N` tokens.
#[derive(Clone, Debug, Default)]
struct Places<const N: usize> {
    latest: HashMap<[TokenId; N], u32>,
    /// By place: the one before it behind the same run; 0 is none.
    before: Vec<u32>,
}

impl<const N: usize> Places<N> {
    /// Adds the place behind `token_ids`.
    fn push(&mut self, token_ids: &[TokenId]) {
        let place = u32::try_from(token_ids.len()).expect("positions are far below 2^32");
        let run = token_ids.last_chunk::<N>();
        let before = run.and_then(|run| self.latest.insert(*run, place));
        self.before.push(before.unwrap_or(0));
    }

    fn longest_match(&self, token_ids: &[TokenId]) -> Option<Match> {
        let mut place = *self.latest.get(token_ids.last_chunk::<N>()?)?;
        let mut best: Option<Match> = None;
        for _ in 0..MAX_CANDIDATES {
            let next = place as usize;
            let length = common_suffix(&token_ids[..next], token_ids);
            if best.is_none_or(|best| length > best.length) {
                best = Some(Match { length, next });
            }
            place = self.before[next];
            if length == MAX_MATCH || place == 0 {
                break;
            }
        }
        best
    }
}

/// Token `offset` behind a match; where the sequence ends, what followed there repeats itself.
pub(crate) fn continuation(token_ids: &[TokenId], found: Match, offset: usize) -> TokenId {
    let period = token_ids.len() - found.next;
    token_ids[found.next + offset % period]
}

/// Equal tokens at the ends of both, up to `MAX_MATCH`.
fn common_suffix(a: &[TokenId], b: &[TokenId]) -> usize {
    let pairs = a.iter().rev().zip(b.iter().rev());
    pairs.take(MAX_MATCH).take_while(|(x, y)| x == y).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{MAX_CANDIDATES, MAX_MATCH, Match, NgramIndex, continuation};

    fn index(token_ids: &[u32]) -> NgramIndex {
        let mut index = NgramIndex::default();
        for end in 1..=token_ids.len() {
            index.push(&token_ids[..end]);
        }
        index
    }

    /// By comparing every earlier place behind the last three tokens, as many of the latest as a look-up
    /// follows; without any, behind the last one.
    fn naive(token_ids: &[u32]) -> Option<Match> {
        let end = token_ids.len();
        let matches = |least: usize| {
            let all = (1..end).rev().map(|next| {
                let length = (1..=MAX_MATCH.min(next))
                    .take_while(|&back| token_ids[next - back] == token_ids[end - back])
                    .count();
                Match { length, next }
            });
            all.filter(move |found| found.length >= least)
                .take(MAX_CANDIDATES)
                .reduce(|best, found| {
                    if found.length > best.length {
                        found
                    } else {
                        best
                    }
                })
        };
        matches(3).or_else(|| matches(1))
    }

    #[test]
    fn the_longest_match_wins_then_the_latest() {
        //                 0  1  2  3  4  5  6  7  8  9 10 11
        let token_ids = [1, 2, 3, 7, 2, 3, 8, 2, 3, 9, 2, 3];
        let found = index(&token_ids).longest_match(&token_ids);
        assert_eq!(found, Some(Match { length: 2, next: 9 }));
        let longer = [&token_ids[..], &[1, 2, 3]].concat();
        let found = index(&longer).longest_match(&longer);
        assert_eq!(found, Some(Match { length: 3, next: 3 }));
        let token_ids = [1, 2, 3];
        assert_eq!(index(&token_ids).longest_match(&token_ids), None);
    }

    #[test]
    fn a_continuation_repeats_itself_past_the_end() {
        let token_ids = [5, 6, 7, 5, 6];
        let found = index(&token_ids)
            .longest_match(&token_ids)
            .expect("5 6 came before");
        let ahead: Vec<u32> = (0..7)
            .map(|offset| continuation(&token_ids, found, offset))
            .collect();
        assert_eq!(ahead, [7, 5, 6, 7, 5, 6, 7]);
    }

    proptest! {
        #[test]
        fn any_sequence_matches_as_by_comparing_all(
            token_ids in prop::collection::vec(0_u32..4, 1..120),
        ) {
            let mut index = NgramIndex::default();
            for end in 1..=token_ids.len() {
                index.push(&token_ids[..end]);
                prop_assert_eq!(index.longest_match(&token_ids[..end]), naive(&token_ids[..end]));
            }
        }
    }
}
