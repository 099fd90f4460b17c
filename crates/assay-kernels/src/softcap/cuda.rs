//! Soft-cap on a device.

use crate::cuda::{Cuda, DeviceBuffer, Grid, launch};

/// Replaces each `x[i]` by its soft-capped value; `cap` is positive.
pub fn softcap(cuda: &Cuda, x: &mut DeviceBuffer<f32>, cap: f32) {
    let (len, kernel) = (x.len(), &cuda.kernels.softcap);
    // SAFETY: the buffer holds `len` elements, which the kernel is told.
    unsafe { launch!(cuda, kernel, Grid::elements(len); x.ptr(cuda), cap, len) };
}
