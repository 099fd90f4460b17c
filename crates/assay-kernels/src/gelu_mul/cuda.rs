//! GeGLU's gate on a device.

use crate::cuda::{Cuda, DeviceBuffer, gate};
use crate::quantize::cuda::DeviceActivations;

/// Writes `gelu(gate[i]) * up[i]` to `out[i]`, rows of `n`, and their integers to `integers` if they are wanted.
///
/// # Panics
/// If the three lengths differ or are no rows of `n`, or integers of rows are wanted that are no multiple of 32.
pub fn gelu_mul(
    cuda: &Cuda,
    gate: &DeviceBuffer<f32>,
    up: &DeviceBuffer<f32>,
    n: usize,
    out: &mut DeviceBuffer<f32>,
    integers: Option<&mut DeviceActivations>,
) {
    gate::run(cuda, &cuda.kernels.gelu_mul, [gate, up], n, out, integers);
}
