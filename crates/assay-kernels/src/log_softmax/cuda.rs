//! The normaliser on a device.

use crate::cuda::{Cuda, CudaError, DeviceBuffer, Grid, launch};
use crate::numerics::SUM_CHUNK;

use super::{LogSumExp, NonFiniteRow};

/// Logits behind one partial maximum (`MAX_LOGITS` of the kernel).
const MAX_LOGITS: usize = 8192;

/// The normaliser of each row of `logits`, `[num_rows, vocab_size]`.
///
/// # Errors
/// The device's first fault; of a row, [`NonFiniteRow`].
///
/// # Panics
/// If `logits` is not whole rows.
pub fn log_sum_exp(
    cuda: &Cuda,
    logits: &DeviceBuffer<f32>,
    vocab_size: usize,
) -> Result<Vec<Result<LogSumExp, NonFiniteRow>>, CudaError> {
    assert!(
        vocab_size > 0 && logits.len().is_multiple_of(vocab_size),
        "logits are not whole rows"
    );
    let num_rows = logits.len() / vocab_size;
    let (num_slices, num_chunks) = (
        vocab_size.div_ceil(MAX_LOGITS),
        vocab_size.div_ceil(SUM_CHUNK),
    );
    let mut maxima = DeviceBuffer::<f32>::default();
    let mut max = DeviceBuffer::<f32>::default();
    let mut sums = DeviceBuffer::<f64>::default();
    let mut ln_z = DeviceBuffer::<f64>::default();
    maxima.sized(cuda, num_rows * num_slices);
    max.sized(cuda, num_rows);
    sums.sized(cuda, num_rows * num_chunks);
    ln_z.sized(cuda, num_rows);
    let kernels = &cuda.kernels;
    let grid = |blocks: usize| Grid {
        blocks: [blocks, num_rows, 1],
        ..Grid::new(blocks, 256)
    };
    let (from, vocab) = (logits.ptr(cuda), vocab_size as i32);
    // SAFETY: `logits` is `num_rows` rows of `vocab_size`, and each output was sized for as many blocks as run.
    unsafe {
        launch!(cuda, &kernels.log_softmax_max, grid(num_slices); from, vocab, maxima.ptr(cuda));
        launch!(
            cuda, &kernels.log_softmax_sums, grid(num_chunks.div_ceil(8));
            from, vocab, maxima.ptr(cuda), num_slices as i32, max.ptr(cuda), sums.ptr(cuda),
        );
        launch!(
            cuda, &kernels.log_softmax_finish, Grid::new(num_rows.div_ceil(32), 32);
            sums.ptr(cuda), num_chunks as i32, num_rows as i32, ln_z.ptr(cuda),
        );
    }
    let max: Vec<f32> = max.read(cuda, 0, num_rows)?;
    let ln_z: Vec<f64> = ln_z.read(cuda, 0, num_rows)?;
    let row = |(max, ln_z): (f32, f64)| match max.is_finite() {
        true => Ok(LogSumExp { max, ln_z }),
        false => Err(NonFiniteRow),
    };
    Ok(max.into_iter().zip(ln_z).map(row).collect())
}
