//! A tensor's dimensions, held in place: up to four, innermost first.

use std::fmt;
use std::ops::Deref;

/// Most dimensions that the format allows.
pub(super) const DIMENSIONS_MAX: usize = 4;

/// 1 to 4 dimensions, innermost (the contiguous row) first; dereferences to a slice of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Dimensions that do not exist are 0.
    sizes: [u64; DIMENSIONS_MAX],
    len: usize,
}

impl Shape {
    /// A shape of the first `len` of `sizes`.
    pub(super) fn new(sizes: [u64; DIMENSIONS_MAX], len: usize) -> Shape {
        Shape { sizes, len }
    }
}

impl Deref for Shape {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        self.sizes.get(..self.len).unwrap_or(&self.sizes)
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
