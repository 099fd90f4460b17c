//! SwiGLU's gate on a device.

use crate::cuda::{Cuda, DeviceBuffer, Grid, launch};

/// Writes `silu(gate[i]) * up[i]` to `out[i]`.
///
/// # Panics
/// If the three lengths differ.
pub fn silu_mul(
    cuda: &Cuda,
    gate: &DeviceBuffer<f32>,
    up: &DeviceBuffer<f32>,
    out: &mut DeviceBuffer<f32>,
) {
    assert_eq!(gate.len(), up.len(), "gate and up differ in length");
    assert_eq!(gate.len(), out.len(), "gate and out differ in length");
    let (len, kernel) = (out.len(), &cuda.kernels.silu_mul);
    // SAFETY: the three buffers hold `len` elements, which the kernel is told.
    unsafe {
        launch!(
            cuda, kernel, Grid::elements(len);
            gate.ptr(cuda), up.ptr(cuda), out.ptr(cuda), len,
        );
    }
}
