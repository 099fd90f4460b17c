//! Residual addition, scaling, bias and row gathering on a device.

use crate::cuda::{Cuda, DeviceBuffer, Grid, launch};

/// `out += x`.
///
/// # Panics
/// If the lengths differ.
pub fn add(cuda: &Cuda, out: &mut DeviceBuffer<f32>, x: &DeviceBuffer<f32>) {
    assert_eq!(out.len(), x.len(), "residual add: lengths differ");
    let (len, kernel) = (out.len(), &cuda.kernels.residual_add);
    // SAFETY: both buffers hold `len` elements, which the kernel is told.
    unsafe { launch!(cuda, kernel, Grid::elements(len); out.ptr(cuda), x.ptr(cuda), len) };
}

/// `x *= factor`.
pub fn scale(cuda: &Cuda, x: &mut DeviceBuffer<f32>, factor: f32) {
    let (len, kernel) = (x.len(), &cuda.kernels.residual_scale);
    // SAFETY: the buffer holds `len` elements, which the kernel is told.
    unsafe { launch!(cuda, kernel, Grid::elements(len); x.ptr(cuda), factor, len) };
}

/// `x[t] += bias` for every row.
///
/// # Panics
/// If `x` is not whole rows.
pub fn add_bias(cuda: &Cuda, x: &mut DeviceBuffer<f32>, bias: &DeviceBuffer<f32>) {
    let (len, n, kernel) = (x.len(), bias.len(), &cuda.kernels.residual_bias);
    assert!(
        n > 0 && len.is_multiple_of(n),
        "{len} elements in rows of {n}"
    );
    // SAFETY: `x` holds `len` elements and `bias` `n`, which the kernel is told.
    unsafe {
        launch!(cuda, kernel, Grid::elements(len); x.ptr(cuda), bias.ptr(cuda), n as i32, len);
    }
}

/// Copies row `rows[r]` of `x` to row r of `out`, rows of `n`; `rows` are rows of `x`, which the caller vouches for.
pub(crate) fn gather(
    cuda: &Cuda,
    x: &DeviceBuffer<f32>,
    rows: &DeviceBuffer<u32>,
    n: usize,
    out: &mut DeviceBuffer<f32>,
) {
    assert_eq!(out.len(), rows.len() * n, "gathered rows of {n}");
    let kernel = &cuda.kernels.residual_gather;
    let grid = Grid::new(rows.len(), 256);
    // SAFETY: `rows` are rows of `x` by the caller's word, and `out` has a row of `n` for each.
    unsafe {
        launch!(cuda, kernel, grid; x.ptr(cuda), rows.ptr(cuda), n as i32, out.ptr(cuda));
    }
}
