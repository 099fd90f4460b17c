//! Product with an unquantised matrix: routers, small heads, F32/F16/BF16 models.
//!
//! Class: exact. `y[t, n] = Σ_k w[n, k]·x[t, k]`: one fma chain over k inside each 256-block, ascending from +0,
//! then `y = y + acc` over blocks ascending, then `y + bias`. Lanes are rows, so no order ever changes.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod golden;
mod matrix;
mod reference;

pub use matrix::{FloatMatrix, FloatMatrixError, FloatType};

use crate::Compute;
use crate::disjoint::DisjointSlice;
use crate::isa::IsaKind;
use std::ops::Range;

/// Row groups of one task: 64 rows, the tallest tile of any ISA.
const TASK_GROUPS: usize = 4;

/// Multiplications below which another thread costs more than it saves.
const PARALLEL_WORK: usize = 1 << 16;

/// Writes `x · wᵀ + bias` to `out`.
///
/// Shapes: `x` `[T, K]`, matrix `[N, K]`, `bias` `[N]`, `out` `[T, N]`; T follows from `out` (from `x` if N is 0).
///
/// # Panics
/// If the shapes do not fit.
pub fn float_matmul(
    cx: &Compute,
    matrix: &FloatMatrix,
    x: &[f32],
    bias: Option<&[f32]>,
    out: &mut [f32],
) {
    let (n, k) = (matrix.num_rows(), matrix.num_cols());
    if out.is_empty() {
        return;
    }
    assert!(
        n > 0 && out.len().is_multiple_of(n),
        "float_matmul: {} outputs in rows of {n}",
        out.len()
    );
    let num_tokens = out.len() / n;
    assert_eq!(
        x.len(),
        num_tokens * k,
        "float_matmul: x for {num_tokens} tokens of {k}"
    );
    if let Some(bias) = bias {
        assert_eq!(bias.len(), n, "float_matmul: bias of {n}");
    }
    let num_groups = matrix.num_groups();
    let groups_per_task = if num_tokens * n * k < PARALLEL_WORK {
        num_groups
    } else {
        TASK_GROUPS
    };
    let product = Product {
        x,
        num_tokens,
        num_rows: n,
        num_cols: k,
        bias,
        out: DisjointSlice::new(out),
    };
    cx.pool.run(num_groups.div_ceil(groups_per_task), &|task| {
        let start = task * groups_per_task;
        let groups = start..num_groups.min(start + groups_per_task);
        match cx.isa.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the `Isa` value proves AVX2, FMA and F16C.
            IsaKind::Avx2 => unsafe { avx2::multiply(matrix, &product, groups) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the `Isa` value proves AVX-512 F, FMA and F16C.
            IsaKind::Avx512 | IsaKind::Amx => unsafe { avx512::multiply(matrix, &product, groups) },
            _ => reference::multiply(matrix, &product, groups),
        }
    });
}

/// One call's operands, with shapes already checked against each other.
struct Product<'a> {
    /// `[num_tokens, num_cols]`
    x: &'a [f32],
    num_tokens: usize,
    num_rows: usize,
    num_cols: usize,
    /// `[num_rows]`
    bias: Option<&'a [f32]>,
    /// `[num_tokens, num_rows]`
    out: DisjointSlice<'a, f32>,
}

impl Product<'_> {
    /// Row `token` of x, `[num_cols]`.
    fn x_row(&self, token: usize) -> &[f32] {
        &self.x[token * self.num_cols..][..self.num_cols]
    }

    /// The rows of the matrix that `group` holds, without its padding.
    fn rows_of(&self, group: usize) -> Range<usize> {
        let start = group * matrix::GROUP_ROWS;
        start..self.num_rows.min(start + matrix::GROUP_ROWS)
    }

    /// Writes one group's sums of one token, `y + bias`; `sums` may hold padding after the group's rows.
    fn finish(&self, token: usize, group: usize, sums: &[f32; matrix::GROUP_ROWS]) {
        let rows = self.rows_of(group);
        // SAFETY: each (token, group) belongs to one task, which finishes it once; groups do not share rows.
        let out = unsafe {
            self.out
                .part(token * self.num_rows + rows.start, rows.len())
        };
        match self.bias {
            None => out.copy_from_slice(&sums[..out.len()]),
            Some(bias) => {
                for ((out, sum), bias) in out.iter_mut().zip(sums).zip(&bias[rows]) {
                    *out = sum + bias;
                }
            }
        }
    }
}
