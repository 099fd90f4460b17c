//! Residual addition and scaling of the hidden states by a constant: one rounding per element.
//!
//! Class: exact. Elementwise and without a sum, so one body serves every ISA; the wide ISAs get it compiled
//! for eight lanes.

pub mod cuda;
pub(crate) mod golden;

use crate::Compute;
use crate::isa::{Isa, IsaKind};

/// Elements below which another thread costs more than it saves.
const TASK_ELEMENTS: usize = 16_384;

/// `out += x`, elementwise: the sublayer's output joins the residual stream.
///
/// Shapes: both `[num_tokens, hidden_size]` (any equal length).
///
/// # Panics
/// If the lengths differ.
pub fn add(cx: &Compute, out: &mut [f32], x: &[f32]) {
    assert_eq!(out.len(), x.len(), "residual add: lengths differ");
    cx.pool.for_each_chunk(out, TASK_ELEMENTS, |index, out| {
        let x = &x[index * TASK_ELEMENTS..][..out.len()];
        on_isa(cx.isa, out, x);
    });
}

/// `x *= factor`, elementwise: Gemma's √hidden_size on embeddings, rounded to f32 once by the caller.
pub fn scale(cx: &Compute, x: &mut [f32], factor: f32) {
    cx.pool.for_each_chunk(x, TASK_ELEMENTS, |_, x| {
        for x in x {
            *x *= factor;
        }
    });
}

fn on_isa(isa: Isa, out: &mut [f32], x: &[f32]) {
    match isa.0 {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the `Isa` value proves AVX2.
        IsaKind::Avx2 | IsaKind::Avx512 | IsaKind::Amx => unsafe { add_avx2(out, x) },
        _ => add_body(out, x),
    }
}

#[inline(always)]
fn add_body(out: &mut [f32], x: &[f32]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out += x;
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn add_avx2(out: &mut [f32], x: &[f32]) {
    add_body(out, x);
}
