//! RMSNorm (Zhang & Sennrich 2019): each row divided by its root mean square, times a weight.
//!
//! Class: exact. Per row of n elements: `ss = SUM32(fma x·x)`, `r = 1 / sqrt(ss / n + eps)`,
//! `y = (x * r) * weight`. Head norms are the same op with rows of `head_dim`.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub mod cuda;
pub(crate) mod golden;
mod reference;

use crate::Compute;
use crate::isa::{Isa, IsaKind};

/// Elements below which rows are not worth another thread.
const TASK_ELEMENTS: usize = 8192;

/// Writes the normalised rows of `x` to `out`.
///
/// Shapes: `x` and `out` `[num_rows, n]`, `weight` `[n]`.
///
/// # Panics
/// If the shapes do not fit.
pub fn rms_norm(cx: &Compute, x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let n = weight.len();
    assert_eq!(
        x.len(),
        out.len(),
        "rms_norm: input and output differ in length"
    );
    let Some(chunk_len) = chunk_len(x.len(), n) else {
        return;
    };
    cx.pool.for_each_chunk(out, chunk_len, |index, rows| {
        let x = &x[index * chunk_len..][..rows.len()];
        for (x, out) in x.chunks_exact(n).zip(rows.chunks_exact_mut(n)) {
            row(cx.isa, x, weight, eps, out);
        }
    });
}

/// Normalises the rows of `x` where they stand.
///
/// Shapes: `x` `[num_rows, n]`, `weight` `[n]`; for head norms `[num_tokens * num_heads, head_dim]`.
///
/// # Panics
/// If `x` is no whole number of rows.
pub fn rms_norm_in_place(cx: &Compute, x: &mut [f32], weight: &[f32], eps: f32) {
    let n = weight.len();
    let Some(chunk_len) = chunk_len(x.len(), n) else {
        return;
    };
    cx.pool.for_each_chunk(x, chunk_len, |_, rows| {
        for x in rows.chunks_exact_mut(n) {
            row_in_place(cx.isa, x, weight, eps);
        }
    });
}

/// Elements of one task, a whole number of rows; `None` if there is nothing to do.
fn chunk_len(len: usize, n: usize) -> Option<usize> {
    if len == 0 {
        return None;
    }
    assert!(
        n > 0 && len.is_multiple_of(n),
        "rms_norm: {len} elements in rows of {n}"
    );
    Some(TASK_ELEMENTS.div_ceil(n) * n)
}

fn row(isa: Isa, x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    match isa.0 {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the `Isa` value proves AVX2 and FMA.
        IsaKind::Avx2 => unsafe { avx2::row(x, weight, eps, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the `Isa` value proves AVX-512 F, DQ and FMA.
        IsaKind::Avx512 | IsaKind::Amx => unsafe { avx512::row(x, weight, eps, out) },
        _ => reference::row(x, weight, eps, out),
    }
}

fn row_in_place(isa: Isa, x: &mut [f32], weight: &[f32], eps: f32) {
    match isa.0 {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the `Isa` value proves AVX2 and FMA.
        IsaKind::Avx2 => unsafe { avx2::row_in_place(x, weight, eps) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the `Isa` value proves AVX-512 F, DQ and FMA.
        IsaKind::Avx512 | IsaKind::Amx => unsafe { avx512::row_in_place(x, weight, eps) },
        _ => reference::row_in_place(x, weight, eps),
    }
}
