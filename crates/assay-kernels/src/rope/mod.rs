//! Rotary position embedding (Su et al. 2021): pairs of elements turned by an angle that grows with position.
//!
//! Class: exact. `x0' = fma(x0, c, −(x1·s))`, `x1' = fma(x1, c, x0·s)` with c, s from a [`RopeTable`]. Only the
//! first `rotary_dims` of each head turn. Knows nothing of models; scaling schemes arrive as numbers.

mod angle;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub mod cuda;
pub(crate) mod golden;
mod reference;
mod table;

pub use table::{RopeParameters, RopeTable, RopeTableError};

use crate::Compute;
use crate::isa::{Isa, IsaKind};

/// Elements below which tokens are not worth another thread.
const TASK_ELEMENTS: usize = 8192;

/// Which two elements of a head form pair `i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RopeStyle {
    /// `2i` and `2i + 1` (GGUF's "norm": llama files, whose rows the converter permuted).
    Interleaved,
    /// `i` and `i + rotary_dims / 2` (GGUF's "neox": Qwen, Gemma, Phi).
    HalfSplit,
}

/// Turns every head of every token to its position, where it stands.
///
/// Shapes: `x` `[num_tokens, num_heads, head_dim]`, `positions` `[num_tokens]`.
///
/// # Panics
/// If the shapes do not fit, if `head_dim` is below the table's `rotary_dims`, or if a position is past the
/// table (built for the context length, which whoever assigns positions keeps).
pub fn rope(
    cx: &Compute,
    table: &RopeTable,
    style: RopeStyle,
    positions: &[u32],
    x: &mut [f32],
    num_heads: usize,
    head_dim: usize,
) {
    let token_len = num_heads * head_dim;
    assert_eq!(
        x.len(),
        positions.len() * token_len,
        "rope: {} tokens of {num_heads} heads of {head_dim}",
        positions.len()
    );
    assert!(
        table.rotary_dims() <= head_dim,
        "rope: {} rotary dims in heads of {head_dim}",
        table.rotary_dims()
    );
    if x.is_empty() {
        return;
    }
    if let Some(&last) = positions.iter().max() {
        assert!(
            (last as usize) < table.num_positions(),
            "rope: position {last} in a table of {}",
            table.num_positions()
        );
    }
    let tokens_per_task = TASK_ELEMENTS.div_ceil(token_len);
    cx.pool
        .for_each_chunk(x, tokens_per_task * token_len, |index, tokens| {
            let positions = &positions[index * tokens_per_task..];
            for (token, &position) in tokens.chunks_exact_mut(token_len).zip(positions) {
                let (cos, sin) = table.row(position as usize);
                for head in token.chunks_exact_mut(head_dim) {
                    rotate(cx.isa, style, &mut head[..table.rotary_dims()], cos, sin);
                }
            }
        });
}

/// Turns one head: `x` `[rotary_dims]`, `cos` and `sin` `[rotary_dims / 2]`.
fn rotate(isa: Isa, style: RopeStyle, x: &mut [f32], cos: &[f32], sin: &[f32]) {
    match isa.0 {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the `Isa` value proves AVX2 and FMA.
        IsaKind::Avx2 => unsafe { avx2::rotate(style, x, cos, sin) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the `Isa` value proves AVX-512 F and FMA.
        IsaKind::Avx512 | IsaKind::Amx => unsafe { avx512::rotate(style, x, cos, sin) },
        _ => reference::rotate(style, x, cos, sin),
    }
}
