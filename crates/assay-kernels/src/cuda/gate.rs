//! The launch of a gated activation.

use cudarc::driver::CudaFunction;

use super::{Cuda, DeviceBuffer, Grid, launch};
use crate::quantize::cuda::{DeviceActivations, Integers};

/// Runs `kernel` on rows of `n`.
///
/// # Panics
/// As the activation's own function says.
pub(crate) fn run(
    cuda: &Cuda,
    kernel: &CudaFunction,
    [gate, up]: [&DeviceBuffer<f32>; 2],
    n: usize,
    out: &mut DeviceBuffer<f32>,
    integers: Option<&mut DeviceActivations>,
) {
    assert_eq!(gate.len(), up.len(), "gate and up differ in length");
    assert_eq!(gate.len(), out.len(), "gate and out differ in length");
    assert!(
        n > 0 && out.len().is_multiple_of(n),
        "{} elements in rows of {n}",
        out.len()
    );
    let num_rows = out.len() / n;
    let integers = integers.map_or(Integers::NONE, |integers| integers.place(cuda, num_rows, n));
    let warps = if num_rows < 64 { 1 } else { 4 };
    let grid = Grid {
        blocks: [n.div_ceil(256).div_ceil(warps), num_rows, 1],
        ..Grid::new(0, 32 * warps)
    };
    // SAFETY: the three buffers hold `num_rows` rows of `n`, and the integers have room for them.
    unsafe {
        launch!(
            cuda, kernel, grid;
            gate.ptr(cuda), up.ptr(cuda), out.ptr(cuda), n as i32, integers,
        );
    }
}
