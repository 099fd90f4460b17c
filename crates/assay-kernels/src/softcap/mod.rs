//! Soft-cap: `cap * tanh(x / cap)`, for the models that bound their scores or logits.
//!
//! Class: Exact. In this order, each step rounded: `u = x / cap`, `e = EXP(clamp(2·u, ±87))`,
//! `t = 1 - 2 / (1 + e)`, `cap·t`.

pub mod cuda;
pub(crate) mod golden;

use crate::Compute;
use crate::exp::{exp, exp_clamped};
use crate::simd::{Simd, VectorOp, dispatch};

/// Elements that are worth a task of their own.
const TASK_ELEMENTS: usize = 8_192;

/// Replaces each `x[i]` by its soft-capped value; `cap` is positive.
pub fn softcap(cx: &Compute, x: &mut [f32], cap: f32) {
    cx.pool.for_each_chunk(x, TASK_ELEMENTS, |_, x| {
        dispatch(cx.isa, SoftcapAll { x, cap })
    });
}

/// Soft-cap of one number: the meaning.
pub(crate) fn softcap_one(x: f32, cap: f32) -> f32 {
    let e = exp((2.0 * (x / cap)).clamp(-87.0, 87.0));
    cap * (1.0 - 2.0 / (1.0 + e))
}

/// Soft-cap of each lane, all of `cap` equal.
#[inline(always)]
pub(crate) fn softcap_lanes<S: Simd>(simd: S, x: S::F32, cap: S::F32) -> S::F32 {
    let e = exp_clamped(simd, simd.mul(simd.splat(2.0), simd.div(x, cap)));
    let one = simd.splat(1.0);
    let tanh = simd.sub(one, simd.div(simd.splat(2.0), simd.add(one, e)));
    simd.mul(cap, tanh)
}

struct SoftcapAll<'a> {
    x: &'a mut [f32],
    cap: f32,
}

impl VectorOp for SoftcapAll<'_> {
    type Output = ();

    fn reference(self) {
        for x in self.x {
            *x = softcap_one(*x, self.cap);
        }
    }

    #[inline(always)]
    fn vector<S: Simd>(self, simd: S) {
        let cap = simd.splat(self.cap);
        let mut chunks = self.x.chunks_exact_mut(S::F32_LANES);
        for x in &mut chunks {
            // SAFETY: the chunk is exactly one vector long.
            unsafe {
                simd.store(
                    x.as_mut_ptr(),
                    softcap_lanes(simd, simd.load(x.as_ptr()), cap),
                )
            };
        }
        for x in chunks.into_remainder() {
            *x = softcap_one(*x, self.cap);
        }
    }
}
