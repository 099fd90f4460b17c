//! Which machine a figure is from.

use serde::Serialize;

use crate::system;

/// What a reader must know to compare figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Machine {
    /// The CPU's own name.
    pub(super) cpu: String,
    pub(super) cores: usize,
    pub(super) memory_gib: Option<u64>,
    pub(super) os: &'static str,
    pub(super) assay: &'static str,
}

impl Machine {
    pub(super) fn read() -> Self {
        Self {
            cpu: system::cpu_name().unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get()),
            // Rounded up: the system keeps a little for itself.
            memory_gib: system::memory_bytes().map(|bytes| bytes.div_ceil(1 << 30)),
            os: std::env::consts::OS,
            assay: env!("CARGO_PKG_VERSION"),
        }
    }
}
