//! Which formats' sub-block sums are exact in f32, so that BF16 products can make them.
//!
//! Every partial sum of products of integers is an integer, and f32 holds each below 2^24.

use super::quants::QuantLayout;
use super::scales::ScaleLayout;

/// Largest 16-bit activation.
const LARGEST_WIDE: u32 = 32_512;

/// Whether sums of `elements` products of 16-bit activations with quants up to `largest` are all exact.
const fn is_exact(largest: u32, elements: usize) -> bool {
    largest * LARGEST_WIDE * (elements as u32) < 1 << 24
}

/// Whether the sums of a sub-block are exact, its quants being half of their range either side of zero.
pub(super) const fn has_exact_sums<Q: QuantLayout, S: ScaleLayout>() -> bool {
    is_exact(1 << (Q::BITS - 1), S::SUB_BLOCK)
}

/// The same of unsigned quants as they are stored.
pub(super) const fn has_exact_sums_unsigned<Q: QuantLayout, S: ScaleLayout>() -> bool {
    is_exact((1 << Q::BITS) - 1, S::SUB_BLOCK)
}
