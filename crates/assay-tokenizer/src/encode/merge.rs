//! Greedy pair merging, shared by byte-pair encoding and SentencePiece.
//!
//! Symbols are a linked list over the text; candidates wait in a heap, so a text of n symbols costs
//! O(n log n) whatever it looks like. The lowest order merges first, the leftmost pair on a tie.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// No neighbour.
const NONE: u32 = u32::MAX;

/// A stretch of the text that is, so far, one unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Symbol {
    /// The token it is, if its text is one.
    pub(super) id: Option<u32>,
    /// First byte in the text.
    pub(super) start: u32,
    /// Bytes; 0 once it is part of its left neighbour.
    pub(super) len: u32,
    prev: u32,
    next: u32,
}

impl Symbol {
    /// Its bytes in the `text` that was merged.
    pub(super) fn bytes<'a>(&self, text: &'a str) -> &'a [u8] {
        let start = self.start as usize;
        text.as_bytes()
            .get(start..start + self.len as usize)
            .unwrap_or_default()
    }
}

/// The outcome of joining two neighbours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Merge {
    /// Lower merges earlier.
    pub(super) order: u32,
    /// The token they become.
    pub(super) id: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    order: u32,
    left: u32,
    right: u32,
    len: u32,
    id: u32,
}

/// Symbols and candidates, kept between words so that their memory is reused.
#[derive(Debug, Default)]
pub(super) struct Merger {
    symbols: Vec<Symbol>,
    candidates: BinaryHeap<Reverse<Candidate>>,
}

impl Merger {
    /// Starts over with no symbols.
    pub(super) fn clear(&mut self) {
        self.symbols.clear();
        self.candidates.clear();
    }

    /// Appends the next stretch of the text.
    pub(super) fn push(&mut self, start: u32, len: u32, id: Option<u32>) {
        // Texts are shorter than `u32::MAX` bytes, so symbol counts fit.
        let index = self.symbols.len() as u32;
        if let Some(last) = self.symbols.last_mut() {
            last.next = index;
        }
        let prev = index.checked_sub(1).unwrap_or(NONE);
        self.symbols.push(Symbol {
            id,
            start,
            len,
            prev,
            next: NONE,
        });
    }

    /// Merges until `find` knows no pair, then returns what is left in order.
    pub(super) fn run(
        &mut self,
        find: impl Fn(&Symbol, &Symbol) -> Option<Merge>,
    ) -> impl Iterator<Item = &Symbol> {
        for right in 1..self.symbols.len() as u32 {
            self.add(right - 1, right, &find);
        }
        while let Some(Reverse(candidate)) = self.candidates.pop() {
            let Some(next) = self.join(&candidate) else {
                continue;
            };
            let prev = self
                .symbols
                .get(candidate.left as usize)
                .map_or(NONE, |symbol| symbol.prev);
            self.add(prev, candidate.left, &find);
            self.add(candidate.left, next, &find);
        }
        self.symbols.iter().filter(|symbol| symbol.len > 0)
    }

    /// Joins the pair unless one of the two has changed since; gives the new right neighbour.
    fn join(&mut self, candidate: &Candidate) -> Option<u32> {
        let right = *self.symbols.get(candidate.right as usize)?;
        let left = self.symbols.get_mut(candidate.left as usize)?;
        // A symbol only grows or vanishes, so an unchanged sum means two unchanged symbols.
        if left.len == 0 || right.len == 0 || left.len + right.len != candidate.len {
            return None;
        }
        left.len = candidate.len;
        left.id = Some(candidate.id);
        left.next = right.next;
        if let Some(gone) = self.symbols.get_mut(candidate.right as usize) {
            gone.len = 0;
        }
        if let Some(after) = self.symbols.get_mut(right.next as usize) {
            after.prev = candidate.left;
        }
        Some(right.next)
    }

    fn add(&mut self, left: u32, right: u32, find: impl Fn(&Symbol, &Symbol) -> Option<Merge>) {
        let (Some(l), Some(r)) = (
            self.symbols.get(left as usize),
            self.symbols.get(right as usize),
        ) else {
            return;
        };
        if let Some(Merge { order, id }) = find(l, r) {
            let len = l.len + r.len;
            self.candidates.push(Reverse(Candidate {
                order,
                left,
                right,
                len,
                id,
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Merges `num_symbols` equal symbols while `find` allows; returns symbols left and look-ups made.
    fn check_lookups(num_symbols: u32, len_max: u32) -> usize {
        let lookups = Cell::new(0);
        let mut merger = Merger::default();
        for start in 0..num_symbols {
            merger.push(start, 1, Some(0));
        }
        let left = merger
            .run(|left, right| {
                lookups.set(lookups.get() + 1);
                let len = left.len + right.len;
                (len <= len_max).then_some(Merge {
                    order: len,
                    id: len,
                })
            })
            .count();
        let bound = 3 * num_symbols as usize;
        assert!(
            lookups.get() <= bound,
            "{num_symbols} symbols: {} look-ups",
            lookups.get()
        );
        left
    }

    #[test]
    fn look_ups_grow_with_the_text() {
        for num_symbols in [0, 1, 2, 3, 1000, 100_000] {
            assert_eq!(
                check_lookups(num_symbols, u32::MAX),
                usize::from(num_symbols > 0)
            );
            assert_eq!(check_lookups(num_symbols, 1), num_symbols as usize);
            check_lookups(num_symbols, 7);
        }
    }

    #[test]
    fn the_leftmost_of_equal_pairs_merges_first() {
        let mut merger = Merger::default();
        (0..5).for_each(|start| merger.push(start, 1, None));
        let pairs = |left: &Symbol, right: &Symbol| {
            (left.len == 1 && right.len == 1).then_some(Merge { order: 0, id: 1 })
        };
        let lens: Vec<u32> = merger.run(pairs).map(|symbol| symbol.len).collect();
        assert_eq!(lens, [2, 2, 1]);
    }
}
