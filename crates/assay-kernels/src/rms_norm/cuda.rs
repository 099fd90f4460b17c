//! RMSNorm on a device.

use crate::cuda::{Cuda, DeviceBuffer, Grid, launch};
use crate::numerics::SUM_CHUNK;

/// Writes the normalised rows of `x` to `out`; shapes as on the CPU.
///
/// # Panics
/// If the shapes do not fit.
pub fn rms_norm(
    cuda: &Cuda,
    x: &DeviceBuffer<f32>,
    weight: &DeviceBuffer<f32>,
    eps: f32,
    out: &mut DeviceBuffer<f32>,
) {
    assert_eq!(x.len(), out.len(), "rms_norm: input and output differ");
    run(cuda, x.len(), x.ptr(cuda), weight, eps, out.ptr(cuda));
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
    run(cuda, x.len(), x.ptr(cuda), weight, eps, x.ptr(cuda));
}

/// Runs `len` elements from one place to another, which may be the same.
fn run(cuda: &Cuda, len: usize, x: u64, weight: &DeviceBuffer<f32>, eps: f32, out: u64) {
    let n = weight.len();
    assert!(
        n > 0 && len.is_multiple_of(n),
        "rms_norm: {len} elements in rows of {n}"
    );
    let num_chunks = n.div_ceil(SUM_CHUNK);
    let grid = Grid {
        blocks: [len / n, 1, 1],
        // A warp a chunk for the sum, then all of them for the row.
        threads: match n {
            ..=256 => 64,
            ..=1024 => 128,
            _ => 256,
        },
        shared_bytes: (num_chunks + 1) * size_of::<f32>(),
    };
    let kernel = &cuda.kernels.rms_norm;
    // SAFETY: `x` and `out` hold `len` elements, whole rows of `n`, and `weight` holds `n`.
    unsafe { launch!(cuda, kernel, grid; x, weight.ptr(cuda), n as i32, eps, out) };
}
