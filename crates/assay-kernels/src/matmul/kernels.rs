//! Picks the path of the CPU for one task. All give the same bits.

use super::job::{Job, Task};
use super::quants::QuantLayout;
use super::reference;
use super::scales::ScaleLayout;
use crate::isa::IsaKind;

/// Runs one task of `job` on the job's instruction set.
pub(super) fn run<Q: QuantLayout, S: ScaleLayout>(job: &Job<'_>, task: Task, zero_point: u8) {
    match job.isa.0 {
        IsaKind::Scalar => reference::run::<Q, S>(job, task, zero_point),
        #[cfg(target_arch = "x86_64")]
        IsaKind::Avx2 => super::avx2::run::<Q, S>(job, task),
        #[cfg(target_arch = "x86_64")]
        IsaKind::Avx512 => super::avx512::run::<Q, S>(job, task),
        #[cfg(target_arch = "x86_64")]
        IsaKind::Amx if job.activations.in_tile_rows() => {
            super::amx::run::<Q, S>(job, task, zero_point);
        }
        #[cfg(target_arch = "x86_64")]
        IsaKind::Amx if job.activations.in_byte_rows() => {
            super::amx::run_few::<Q, S>(job, task, zero_point);
        }
        #[cfg(target_arch = "x86_64")]
        IsaKind::Amx => super::avx512::run::<Q, S>(job, task),
        #[cfg(not(target_arch = "x86_64"))]
        IsaKind::Avx2 | IsaKind::Avx512 | IsaKind::Amx => {
            reference::run::<Q, S>(job, task, zero_point)
        }
    }
}
