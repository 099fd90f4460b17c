//! EXP64 of a whole slice, for the weights of a distribution.

use super::{exp64, exp64_lanes};
use crate::Compute;
use crate::simd::{Simd, VectorOp, dispatch};

/// Elements that are worth a task of their own.
const TASK_ELEMENTS: usize = 8_192;

/// Replaces each `x[i]` by EXP64 of it; no `x[i]` is above 709.
pub fn exp64_slice(cx: &Compute, x: &mut [f64]) {
    cx.pool
        .for_each_chunk(x, TASK_ELEMENTS, |_, x| dispatch(cx.isa, ExpSlice { x }));
}

struct ExpSlice<'a> {
    x: &'a mut [f64],
}

impl VectorOp for ExpSlice<'_> {
    type Output = ();

    fn reference(self) {
        for x in self.x {
            *x = exp64(*x);
        }
    }

    #[inline(always)]
    fn vector<S: Simd>(self, simd: S) {
        let mut chunks = self.x.chunks_exact_mut(S::F64_LANES);
        for x in &mut chunks {
            // SAFETY: the chunk is exactly one vector long.
            unsafe {
                simd.store64(x.as_mut_ptr(), exp64_lanes(simd, simd.load64(x.as_ptr())));
            }
        }
        for x in chunks.into_remainder() {
            *x = exp64(*x);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::{Isa, ThreadPool};

    #[test]
    fn every_width_equals_the_scalar_bits_tails_included() {
        for len in [0, 1, 3, 4, 7, 8, 9, 31, 8_191, 8_193, 20_000] {
            let x: Vec<f64> = (0..len)
                .map(|i| 709.0 - f64::from(i) * 0.37 - f64::from(i % 11) * 1e-9)
                .chain([f64::NEG_INFINITY, -708.0, -708.000_000_1, -0.0])
                .collect();
            let expected: Vec<u64> = x.iter().map(|&x| exp64(x).to_bits()).collect();
            for isa in Isa::available() {
                for num_threads in [1, 2] {
                    let num_threads = NonZeroUsize::new(num_threads).expect("1 or 2");
                    let cx = Compute::new(isa, ThreadPool::new(num_threads));
                    let mut got = x.clone();
                    exp64_slice(&cx, &mut got);
                    for (i, (got, &expected)) in got.iter().zip(&expected).enumerate() {
                        let at = x[i];
                        assert_eq!(got.to_bits(), expected, "{} [{i}] {at:e}", isa.name());
                    }
                }
            }
        }
    }
}
