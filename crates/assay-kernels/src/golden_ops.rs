//! The ops of golden cases over host memory: what a machine must have so that the cases can run on it. Instruction sets
//! share one implementation; a device copies in and out.

use crate::Compute;
use crate::attention::{AttentionParams, KvLayer, SequenceSpan, attention, kv_write};
use crate::embed::{EmbeddingTable, embed};
use crate::exp::exp;
use crate::exp64::{exp64, ln64};
use crate::gelu_mul::gelu_mul;
use crate::isa::IsaKind;
use crate::log_softmax::{LogSumExp, NonFiniteRow, log_sum_exp};
use crate::matmul::{Activations, PackedMatrix, matmul};
use crate::quantize::{ActivationProfile, QuantizedActivations};
use crate::residual;
use crate::rms_norm::{rms_norm, rms_norm_in_place};
use crate::rope::{RopeStyle, RopeTable, rope};
use crate::silu_mul::silu_mul;
use crate::softcap::softcap;
use crate::top_k::top_k;

/// Heads of a row.
#[derive(Clone, Copy, Debug)]
pub struct Heads {
    /// Heads of a token.
    pub num_heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
}

/// Keys and values to be stored before attention.
#[derive(Clone, Copy, Debug)]
pub struct KeysValues<'a> {
    /// Blocks of the layer.
    pub num_blocks: usize,
    /// The rows that are stored.
    pub span: SequenceSpan<'a>,
    /// `[num_rows, num_kv_heads, head_dim]`.
    pub k: &'a [f32],
    /// `[num_rows, num_kv_heads, head_dim]`.
    pub v: &'a [f32],
}

/// Integers of a row, and its scale of every 32-block.
pub type QuantizedRow = (Vec<i32>, Vec<f32>);

/// Every op of the golden cases; shapes as in the op's own function. `None`: the machine does not have it.
pub trait GoldenOps {
    /// `out + x`.
    fn add(&self, out: &[f32], x: &[f32]) -> Vec<f32>;
    /// `x * factor`.
    fn scale(&self, x: &[f32], factor: f32) -> Vec<f32>;
    /// Normalised rows.
    fn rms_norm(&self, x: &[f32], weight: &[f32], eps: f32) -> Vec<f32>;
    /// Rows normalised where they stand.
    fn rms_norm_in_place(&self, x: &[f32], weight: &[f32], eps: f32) -> Vec<f32>;
    /// Rotated heads.
    fn rope(
        &self,
        table: &RopeTable,
        style: RopeStyle,
        positions: &[u32],
        x: &[f32],
        heads: Heads,
    ) -> Vec<f32>;
    /// `silu(gate) * up`.
    fn silu_mul(&self, gate: &[f32], up: &[f32]) -> Vec<f32>;
    /// `gelu(gate) * up`.
    fn gelu_mul(&self, gate: &[f32], up: &[f32]) -> Vec<f32>;
    /// Capped values.
    fn softcap(&self, x: &[f32], cap: f32) -> Vec<f32>;
    /// EXP of each value.
    fn exp(&self, x: &[f32]) -> Vec<f32>;
    /// EXP64 of each value.
    fn exp64(&self, x: &[f64]) -> Vec<f64>;
    /// LN64 of each value.
    fn ln64(&self, x: &[f64]) -> Vec<f64>;
    /// Normaliser of a row.
    ///
    /// # Errors
    /// [`NonFiniteRow`] when it has none.
    fn log_sum_exp(&self, row: &[f32]) -> Result<LogSumExp, NonFiniteRow>;
    /// The k best of a row without NaN.
    fn top_k(&self, row: &[f32], k: usize) -> Option<Vec<(u32, f32)>>;
    /// Rows of a table.
    fn embed(&self, table: &PackedMatrix, token_ids: &[u32]) -> Vec<f32>;
    /// Quantised rows of `k`.
    fn quantize(
        &self,
        x: &[f32],
        k: usize,
        profile: ActivationProfile,
    ) -> Option<Vec<QuantizedRow>>;
    /// `W·x + bias`.
    fn matmul(
        &self,
        w: &PackedMatrix,
        x: &[f32],
        profile: ActivationProfile,
        bias: Option<&[f32]>,
    ) -> Option<Vec<f32>>;
    /// Stores `stored`, then attends with the rows of `rows`, whose queries are `q`.
    fn attention(
        &self,
        params: &AttentionParams<'_>,
        stored: &KeysValues<'_>,
        rows: &SequenceSpan<'_>,
        q: &[f32],
    ) -> Vec<f32>;
}

impl GoldenOps for Compute {
    fn add(&self, out: &[f32], x: &[f32]) -> Vec<f32> {
        changed(out, |out| residual::add(self, out, x))
    }

    fn scale(&self, x: &[f32], factor: f32) -> Vec<f32> {
        changed(x, |x| residual::scale(self, x, factor))
    }

    fn rms_norm(&self, x: &[f32], weight: &[f32], eps: f32) -> Vec<f32> {
        filled(x.len(), |out| rms_norm(self, x, weight, eps, out))
    }

    fn rms_norm_in_place(&self, x: &[f32], weight: &[f32], eps: f32) -> Vec<f32> {
        changed(x, |x| rms_norm_in_place(self, x, weight, eps))
    }

    fn rope(
        &self,
        table: &RopeTable,
        style: RopeStyle,
        positions: &[u32],
        x: &[f32],
        heads: Heads,
    ) -> Vec<f32> {
        let Heads {
            num_heads,
            head_dim,
        } = heads;
        changed(x, |x| {
            rope(self, table, style, positions, x, num_heads, head_dim)
        })
    }

    fn silu_mul(&self, gate: &[f32], up: &[f32]) -> Vec<f32> {
        filled(gate.len(), |out| silu_mul(self, gate, up, out))
    }

    fn gelu_mul(&self, gate: &[f32], up: &[f32]) -> Vec<f32> {
        filled(gate.len(), |out| gelu_mul(self, gate, up, out))
    }

    fn softcap(&self, x: &[f32], cap: f32) -> Vec<f32> {
        changed(x, |x| softcap(self, x, cap))
    }

    fn exp(&self, x: &[f32]) -> Vec<f32> {
        x.iter().map(|&x| exp(x)).collect()
    }

    fn exp64(&self, x: &[f64]) -> Vec<f64> {
        x.iter().map(|&x| exp64(x)).collect()
    }

    fn ln64(&self, x: &[f64]) -> Vec<f64> {
        x.iter().map(|&x| ln64(x)).collect()
    }

    fn log_sum_exp(&self, row: &[f32]) -> Result<LogSumExp, NonFiniteRow> {
        log_sum_exp(self, row)
    }

    fn top_k(&self, row: &[f32], k: usize) -> Option<Vec<(u32, f32)>> {
        top_k(self.isa, row, k).ok()
    }

    fn embed(&self, table: &PackedMatrix, token_ids: &[u32]) -> Vec<f32> {
        filled(token_ids.len() * table.k(), |out| {
            embed(&EmbeddingTable::Packed(table), token_ids, out).expect("the ids are rows");
        })
    }

    fn quantize(
        &self,
        x: &[f32],
        k: usize,
        profile: ActivationProfile,
    ) -> Option<Vec<QuantizedRow>> {
        let mut quantized = QuantizedActivations::default();
        quantized.quantize(self, x, k, profile);
        let row = |token| {
            let mut integers = vec![0; k];
            quantized.read_row(token, &mut integers);
            let scales = (0..k / 32).map(|block| quantized.scale(token, block));
            (integers, scales.collect())
        };
        Some((0..quantized.num_tokens()).map(row).collect())
    }

    fn matmul(
        &self,
        w: &PackedMatrix,
        x: &[f32],
        profile: ActivationProfile,
        bias: Option<&[f32]>,
    ) -> Option<Vec<f32>> {
        // A row's bits do not depend on its batch, so many rows may stand before those that are hashed:
        // as many as make AMX take its tiles, the last of them padded.
        let before = if self.isa.0 == IsaKind::Amx { 4 } else { 0 };
        let len = x.len() / w.k() * w.n();
        let x = x.repeat(before + 1);
        let x = Activations::new(self, &x, w.k(), profile);
        let out = filled((before + 1) * len, |out| matmul(self, w, &x, bias, out));
        Some(out[before * len..].to_vec())
    }

    fn attention(
        &self,
        params: &AttentionParams<'_>,
        stored: &KeysValues<'_>,
        rows: &SequenceSpan<'_>,
        q: &[f32],
    ) -> Vec<f32> {
        let mut layer = KvLayer::new(stored.num_blocks, params.num_kv_heads, params.head_dim);
        kv_write(self, &mut layer, &[stored.span], stored.k, stored.v);
        filled(q.len(), |out| {
            attention(self, params, &layer, &[*rows], q, out);
        })
    }
}

/// A copy of `x` after `change`.
fn changed(x: &[f32], change: impl FnOnce(&mut [f32])) -> Vec<f32> {
    let mut x = x.to_vec();
    change(&mut x);
    x
}

/// What `fill` writes, `len` values.
fn filled(len: usize, fill: impl FnOnce(&mut [f32])) -> Vec<f32> {
    let mut out = vec![0.0; len];
    fill(&mut out);
    out
}
