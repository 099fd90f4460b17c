//! RMSNorm on a device.

use crate::cuda::{Cuda, CudaError, DeviceBuffer, Grid, launch};
use crate::numerics::SUM_CHUNK;
use crate::quantize::cuda::{DeviceActivations, Integers};

/// Writes the normalised rows of `x` to `out`, and their integers to `integers` if they are wanted; shapes as on the CPU.
///
/// # Panics
/// If the shapes do not fit, or integers of rows are wanted that are no multiple of 32.
pub fn rms_norm(
    cuda: &Cuda,
    x: &DeviceBuffer<f32>,
    weight: &DeviceBuffer<f32>,
    eps: f32,
    out: &mut DeviceBuffer<f32>,
    integers: Option<&mut DeviceActivations>,
) {
    assert_eq!(x.len(), out.len(), "rms_norm: input and output differ");
    let n = weight.len();
    let integers = integers.map(|integers| integers.place(cuda, x.len() / n.max(1), n));
    let places = [x.ptr(cuda), out.ptr(cuda)];
    run(cuda, x.len(), places, weight, eps, integers);
}

/// Normalises the rows of `x` where they stand.
///
/// # Panics
/// If `x` is no whole number of rows.
pub fn rms_norm_in_place(
    cuda: &Cuda,
    x: &mut DeviceBuffer<f32>,
    weight: &DeviceBuffer<f32>,
    eps: f32,
) {
    run(cuda, x.len(), [x.ptr(cuda); 2], weight, eps, None);
}

/// Longest row: what a block of threads keeps in the shared memory that every card has.
pub const MAX_ROW: usize = 24_000;
/// Shared memory of a row that long, with its chunks' sums.
pub(crate) const ROW_BYTES: usize = (MAX_ROW + MAX_ROW.div_ceil(SUM_CHUNK)) * size_of::<f32>();

/// Runs `len` elements from one place to another, which may be the same.
fn run(
    cuda: &Cuda,
    len: usize,
    [x, out]: [u64; 2],
    weight: &DeviceBuffer<f32>,
    eps: f32,
    integers: Option<Integers>,
) {
    let n = weight.len();
    assert!(
        n > 0 && len.is_multiple_of(n),
        "rms_norm: {len} elements in rows of {n}"
    );
    if n > MAX_ROW {
        cuda.note::<()>(Err(CudaError::Unsupported(format!(
            "rows of {n} elements are longer than the norm's kernel keeps ({MAX_ROW}); use --device cpu"
        ))));
        return;
    }
    let num_chunks = n.div_ceil(SUM_CHUNK);
    let grid = Grid {
        blocks: [len / n, 1, 1],
        // A warp for every 256 elements.
        threads: 32 * n.div_ceil(256).min(32),
        shared_bytes: (n + num_chunks) * size_of::<f32>(),
    };
    let kernel = &cuda.kernels.rms_norm;
    let integers = integers.unwrap_or(Integers::NONE);
    // SAFETY: `x` and `out` hold `len` elements, whole rows of `n`, `weight` holds `n`, and integers have room for the
    // rows.
    unsafe { launch!(cuda, kernel, grid; x, weight.ptr(cuda), n as i32, eps, out, integers) };
}
