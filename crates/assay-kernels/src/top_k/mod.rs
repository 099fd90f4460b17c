//! The k largest values of a row, and the largest one.
//!
//! Class: exact. Order: larger value, then smaller index (−0 and +0 are equal values). One pass: a block that
//! has nothing above the current k-th value costs one compare. NaN has no place in an order, so it is an error.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod candidates;
pub mod cuda;
pub(crate) mod golden;
mod reference;

use crate::isa::{Isa, IsaKind};
use candidates::Candidates;

/// A row has a NaN, so it has no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("value {index} of the row is not a number")]
pub struct NanInRow {
    /// Where the first NaN stands.
    pub index: usize,
}

/// The `k` largest values of `row` with their indices, best first; the whole row, sorted, if `k` is larger.
///
/// Shape: `row` `[vocab_size]`. −inf and +inf are values like others.
///
/// # Errors
/// [`NanInRow`] if any value of the row is NaN, whether or not it would have been near the top.
///
/// # Panics
/// If the row has more than `u32::MAX` values.
pub fn top_k(isa: Isa, row: &[f32], k: usize) -> Result<Vec<(u32, f32)>, NanInRow> {
    assert!(
        u32::try_from(row.len()).is_ok(),
        "top_k: row of {}",
        row.len()
    );
    let mut candidates = Candidates::new(k.min(row.len()));
    let result = match isa.0 {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the `Isa` value proves AVX2.
        IsaKind::Avx2 => unsafe { avx2::scan(row, &mut candidates) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the `Isa` value proves AVX-512 F.
        IsaKind::Avx512 | IsaKind::Amx => unsafe { avx512::scan(row, &mut candidates) },
        _ => reference::scan(row, &mut candidates),
    };
    match result {
        Ok(()) => Ok(candidates.into_best(row)),
        // The scan knows only that there is one; the first is found here, where time no longer matters.
        Err(NanSeen) => Err(NanInRow {
            index: row.iter().position(|v| v.is_nan()).unwrap_or(row.len()),
        }),
    }
}

/// The largest value of `row` with its index, the smallest index among equals; `None` for an empty row.
///
/// # Errors
/// [`NanInRow`] if any value of the row is NaN.
///
/// # Panics
/// If the row has more than `u32::MAX` values.
pub fn argmax(isa: Isa, row: &[f32]) -> Result<Option<(u32, f32)>, NanInRow> {
    Ok(top_k(isa, row, 1)?.first().copied())
}

/// A scan met a NaN.
struct NanSeen;
