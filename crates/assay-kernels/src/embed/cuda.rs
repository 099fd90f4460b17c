//! Embedding rows on a device.

use crate::cuda::{Cuda, DeviceBuffer};
use crate::matmul::cuda::DeviceMatrix;

/// Token ids on a device, each below the rows of a table.
#[derive(Debug, Default)]
pub struct DeviceTokenIds {
    ids: DeviceBuffer<u32>,
    /// One past the largest.
    end: usize,
}

impl DeviceTokenIds {
    /// Takes `token_ids`.
    pub fn set(&mut self, cuda: &Cuda, token_ids: &[u32]) {
        self.end = token_ids.iter().max().map_or(0, |&last| last as usize + 1);
        self.ids.fill(cuda, token_ids);
    }

    /// Ids.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

/// Writes the rows of `token_ids` to `out`, `[num_tokens, k]`.
///
/// # Panics
/// If an id has no row, or `out` is not `num_tokens` rows.
pub fn embed(
    cuda: &Cuda,
    table: &DeviceMatrix,
    token_ids: &DeviceTokenIds,
    out: &mut DeviceBuffer<f32>,
) {
    assert!(token_ids.end <= table.n(), "ids are rows of the table");
    table.embed(cuda, &token_ids.ids, out);
}

/// Copies row `rows[r]` of `x` to row r of `out`, rows of `n`.
///
/// # Panics
/// If there is no such row.
pub fn gather_rows(
    cuda: &Cuda,
    x: &DeviceBuffer<f32>,
    rows: &DeviceTokenIds,
    n: usize,
    out: &mut DeviceBuffer<f32>,
) {
    assert!(rows.end * n <= x.len(), "rows of x");
    crate::residual::cuda::gather(cuda, x, &rows.ids, n, out);
}
