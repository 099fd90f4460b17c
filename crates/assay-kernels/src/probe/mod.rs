//! What this machine can do at most: the rates that a kernel's own rate is held against.
//!
//! Measures, computes nothing that anyone uses. Rates depend on clock and neighbours, so they are to be taken in the
//! same minute as the figure beside them.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod read;

pub use read::ReadProbe;

use std::time::Instant;

use crate::Compute;
use crate::isa::IsaKind;

/// Repeats of a measurement; the best counts, since nothing but a disturbance makes one worse.
const REPEATS: usize = 5;
/// Loop passes of one measurement a thread: some milliseconds.
const PASSES: u64 = 1 << 20;

/// The fastest integer products of an instruction set, from registers alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IntegerPeak {
    /// What was run, such as `VPDPBUSD zmm`.
    pub instruction: &'static str,
    /// 8-bit (16-bit on AVX2) operations a second over all threads; a multiply-add counts two.
    pub ops_per_second: f64,
}

/// What one thread runs, and what it amounts to.
struct Loop {
    instruction: &'static str,
    ops_per_pass: u64,
    /// Runs so many passes.
    run: fn(u64),
}

/// Measures the integer peak of `cx`, all threads at once; `None` for the scalar reference, which nobody runs for speed.
pub fn integer_peak(cx: &Compute) -> Option<IntegerPeak> {
    let kernel = integer_loop(cx)?;
    let num_threads = cx.pool.num_threads();
    let seconds = best(|| {
        cx.pool.run(num_threads, &|_| (kernel.run)(PASSES));
    });
    let num_ops = (num_threads as u64 * PASSES * kernel.ops_per_pass) as f64;
    Some(IntegerPeak {
        instruction: kernel.instruction,
        ops_per_second: num_ops / seconds,
    })
}

fn integer_loop(cx: &Compute) -> Option<Loop> {
    match cx.isa.0 {
        #[cfg(target_arch = "x86_64")]
        IsaKind::Avx512 => Some(avx512::integer_loop()),
        #[cfg(target_arch = "x86_64")]
        IsaKind::Avx2 => Some(avx2::integer_loop()),
        _ => None,
    }
}

/// Seconds of the fastest of some runs, after one to warm up.
fn best(run: impl Fn()) -> f64 {
    run();
    (0..REPEATS)
        .map(|_| {
            let started = Instant::now();
            run();
            started.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::{Isa, ThreadPool};

    /// Rates are those of this machine; that they are rates at all can be tested anywhere.
    #[test]
    fn every_instruction_set_but_the_reference_has_a_peak() {
        for isa in Isa::available() {
            let cx = Compute::new(isa, ThreadPool::new(NonZeroUsize::MIN));
            let peak = integer_peak(&cx);
            assert_eq!(peak.is_none(), isa == Isa::SCALAR, "{}", isa.name());
            if let Some(peak) = peak {
                // Below any CPU that has the instruction, above any that could exist.
                assert!(
                    (1e9..1e15).contains(&peak.ops_per_second),
                    "{}: {peak:?}",
                    isa.name()
                );
            }
        }
    }
}
