//! Why a device cannot be used, or stopped.

use cudarc::driver::DriverError;

use crate::SelfTestError;

/// A device that is not there, or that failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CudaError {
    /// The machine has no driver library.
    #[error(
        "no NVIDIA driver on this machine (libcuda is not to be found); install one, or compute on the CPU with --device cpu"
    )]
    NoDriver,
    /// The driver is there and lists no such device.
    #[error("there is no CUDA device {ordinal}: the driver lists {count}")]
    NoDevice {
        /// The number asked for.
        ordinal: usize,
        /// Devices of this machine.
        count: usize,
    },
    /// The device is older than the kernels.
    #[error(
        "CUDA device {ordinal} ({name}) has compute capability {major}.{minor}; the kernels need 8.0 or later"
    )]
    TooOld {
        /// The device.
        ordinal: usize,
        /// Its name.
        name: String,
        /// Its compute capability.
        major: i32,
        /// Its compute capability.
        minor: i32,
    },
    /// A call of the driver failed.
    #[error("CUDA: {what}: {source}")]
    Driver {
        /// What was asked of it.
        what: &'static str,
        /// Its answer.
        source: DriverError,
    },
    /// The device has not enough memory.
    #[error("CUDA: no memory for {bytes} bytes on the device")]
    OutOfMemory {
        /// Bytes asked for.
        bytes: usize,
    },
    /// The device does not compute what the contract says.
    #[error("this device does not compute what the contract says: {0}")]
    SelfTest(#[from] SelfTestError),
    /// The kernels do not have what was asked of them.
    #[error("CUDA: {0}")]
    Unsupported(String),
}

impl CudaError {
    /// Wraps the driver's answer to `what`.
    pub(crate) fn driver(what: &'static str) -> impl FnOnce(DriverError) -> Self {
        move |source| Self::Driver { what, source }
    }
}
