//! NVIDIA devices: the driver, found at run time; one stream of work a device; the kernels, which lie beside their CPU
//! twins in each op's folder (`*.cu`, launched by `cuda.rs`) and give the same bits.
//!
//! The kernels are compiled by `cargo xtask cuda` into `kernels.fatbin`, which is committed so that a build needs no
//! CUDA compiler; `kernels.lock` holds the hash of every source, and a test compares them.

mod buffer;
mod device;
mod error;
pub(crate) mod gate;
mod golden;
mod graph;
mod kernels;

pub use buffer::DeviceBuffer;
pub use device::Cuda;
pub(crate) use device::{Grid, ROOMY_SHARED_BYTES, argument, launch};
pub use error::CudaError;
pub use golden::{CaseReport, Verdict};
pub use graph::Recordings;
pub(crate) use kernels::MatrixKernels;

#[cfg(test)]
mod tests;
