//! The k largest values of rows on a device.

use crate::cuda::{Cuda, CudaError, DeviceBuffer, Grid, launch};

/// Indices with their values, best first.
pub type BestOfRow = Vec<(u32, f32)>;

/// Values that one block of threads sorts.
const SLICE: usize = 1024;
/// Keys that the last block can sort: 32 KiB of its shared memory.
const MAX_MERGED: usize = 4096;

/// The `k` best of each row of `values`, `[num_rows, len]`; `None` where so many do not fit a device's merge, and the
/// row itself must be read. No value is NaN: the row's normaliser tells.
///
/// # Errors
/// The device's first fault.
///
/// # Panics
/// If `values` is not whole rows, or longer than `u32::MAX`.
pub fn top_k(
    cuda: &Cuda,
    values: &DeviceBuffer<f32>,
    len: usize,
    k: usize,
) -> Result<Option<Vec<BestOfRow>>, CudaError> {
    assert!(
        len > 0 && values.len().is_multiple_of(len) && u32::try_from(len).is_ok(),
        "values are not whole rows"
    );
    let (num_rows, num_slices, k) = (values.len() / len, len.div_ceil(SLICE), k.min(len));
    let keep = k.min(SLICE);
    let num_keys = num_slices * keep;
    let padded = num_keys.next_power_of_two().max(2);
    if k == 0 || padded > MAX_MERGED {
        return Ok(None);
    }
    let (mut best, mut out) = (
        DeviceBuffer::<u64>::default(),
        DeviceBuffer::<u32>::default(),
    );
    best.sized(cuda, num_rows * num_keys);
    out.sized(cuda, num_rows * k * 2);
    let slices = Grid {
        blocks: [num_slices, num_rows, 1],
        ..Grid::new(0, 512)
    };
    let merge = Grid {
        shared_bytes: padded * size_of::<u64>(),
        ..Grid::new(num_rows, 512)
    };
    let kernels = &cuda.kernels;
    // SAFETY: `values` is `num_rows` rows of `len`; `best` has `keep` keys a slice and `out` `k` pairs a row. A row has
    // at least `k` keys that stand for values, so every pair written is one.
    unsafe {
        launch!(
            cuda, &kernels.top_k_slices, slices;
            values.ptr(cuda), len as i32, keep as i32, best.ptr(cuda),
        );
        launch!(
            cuda, &kernels.top_k_merge, merge;
            best.ptr(cuda), num_keys as i32, padded as i32, values.ptr(cuda), len as i32, k as i32, out.ptr(cuda),
        );
    }
    let pairs = out.read(cuda, 0, num_rows * k * 2)?;
    let row = |pairs: &[u32]| {
        let pair = |pair: &[u32]| (pair[0], f32::from_bits(pair[1]));
        pairs.chunks_exact(2).map(pair).collect()
    };
    Ok(Some(pairs.chunks_exact(2 * k).map(row).collect()))
}
