//! Storage of keys and values as f16 in blocks of 16 tokens, and the write into it.
//!
//! Keys are transposed inside a block so that SIMD lanes are keys; values are not, so that lanes are elements of
//! the head. Who owns which block is decided elsewhere.

use std::ops::Range;

use super::SequenceSpan;
use crate::Compute;
use crate::disjoint::DisjointSlice;
use crate::numerics::{F16_MAX, f32_to_f16_saturating};
use crate::simd::{Simd, VectorOp, dispatch};

/// Tokens in one KV block.
pub const KV_BLOCK_TOKENS: usize = 16;

/// Keys and values of one layer.
#[derive(Debug)]
pub struct KvLayer {
    num_blocks: usize,
    num_kv_heads: usize,
    head_dim: usize,
    /// f16 bits, `[num_blocks, num_kv_heads, head_dim, 16]`.
    k: Vec<u16>,
    /// f16 bits, `[num_blocks, num_kv_heads, 16, head_dim]`.
    v: Vec<u16>,
}

impl KvLayer {
    /// Storage for `num_blocks` blocks; pages are taken from the system when first written.
    ///
    /// # Panics
    /// If `head_dim` is not a positive multiple of 16, or the size overflows.
    pub fn new(num_blocks: usize, num_kv_heads: usize, head_dim: usize) -> Self {
        assert!(
            head_dim > 0 && head_dim.is_multiple_of(16),
            "head_dim {head_dim} is not a positive multiple of 16"
        );
        let len = num_kv_heads
            .checked_mul(head_dim * KV_BLOCK_TOKENS)
            .and_then(|block| block.checked_mul(num_blocks))
            .expect("the KV layer's size fits in memory's address space");
        Self {
            num_blocks,
            num_kv_heads,
            head_dim,
            k: vec![0; len],
            v: vec![0; len],
        }
    }

    /// Blocks in the layer.
    pub fn num_blocks(&self) -> usize {
        self.num_blocks
    }

    /// KV heads in each block.
    pub fn num_kv_heads(&self) -> usize {
        self.num_kv_heads
    }

    /// Elements of a head.
    pub fn head_dim(&self) -> usize {
        self.head_dim
    }

    /// Keys and values, all f16 bits, in storage order.
    pub fn as_bits(&self) -> (&[u16], &[u16]) {
        (&self.k, &self.v)
    }

    /// Mutable keys and values, all f16 bits, in storage order.
    pub fn as_bits_mut(&mut self) -> (&mut [u16], &mut [u16]) {
        (&mut self.k, &mut self.v)
    }

    /// Copies all keys and values of block `from` over those of block `to`, bit for bit.
    ///
    /// # Panics
    /// If the layer lacks one of them.
    pub fn copy_block(&mut self, from: u32, to: u32) {
        let len = self.num_kv_heads * self.head_dim * KV_BLOCK_TOKENS;
        let from = from as usize * len;
        self.k.copy_within(from..from + len, to as usize * len);
        self.v.copy_within(from..from + len, to as usize * len);
    }

    /// One head of one block in `k` and in `v`.
    pub(super) fn head_block(&self, block: u32, kv_head: usize) -> Range<usize> {
        let len = self.head_dim * KV_BLOCK_TOKENS;
        let start = head_block_start(block, self.num_kv_heads, kv_head, len);
        start..start + len
    }
}

/// Where one head of a block begins, `len` elements a head.
fn head_block_start(block: u32, num_kv_heads: usize, kv_head: usize, len: usize) -> usize {
    (block as usize * num_kv_heads + kv_head) * len
}

/// Elements of K below which another thread costs more than it saves.
const TASK_ELEMENTS: usize = 8_192;

/// Stores K (after RoPE) and V of every row, `[num_tokens, num_kv_heads, head_dim]` each, as f16: nearest even,
/// saturating at ±65,504, NaN kept. Only slots of the spans' rows change.
///
/// # Panics
/// If a length does not fit, or a block table is too short or names a block that the layer lacks.
pub fn kv_write(
    cx: &Compute,
    layer: &mut KvLayer,
    spans: &[SequenceSpan<'_>],
    k: &[f32],
    v: &[f32],
) {
    let token_len = layer.num_kv_heads * layer.head_dim;
    assert_eq!(k.len(), v.len(), "k and v differ in length");
    assert!(
        token_len > 0 && k.len().is_multiple_of(token_len),
        "k and v are not whole rows"
    );
    for span in spans {
        span.validate(layer.num_blocks, k.len() / token_len);
    }
    let (num_kv_heads, head_dim) = (layer.num_kv_heads, layer.head_dim);
    let len = head_dim * KV_BLOCK_TOKENS;
    let (to_k, to_v) = (
        DisjointSlice::new(&mut layer.k),
        DisjointSlice::new(&mut layer.v),
    );
    let write = |kv_head: usize| {
        for span in spans {
            for i in 0..span.num_rows {
                let position = span.first_position + i;
                let block = span.block_table[position / KV_BLOCK_TOKENS];
                let start = head_block_start(block, num_kv_heads, kv_head, len);
                let from = ((span.first_row + i) * num_kv_heads + kv_head) * head_dim;
                // SAFETY: a block's head belongs to `kv_head`, which one task writes, row after row.
                let (to_k, to_v) = unsafe { (to_k.part(start, len), to_v.part(start, len)) };
                let slot = position % KV_BLOCK_TOKENS;
                let (k, v) = (&k[from..from + head_dim], &v[from..from + head_dim]);
                dispatch(
                    cx.isa,
                    WriteToken {
                        k,
                        v,
                        slot,
                        to_k,
                        to_v,
                    },
                );
            }
        }
    };
    if k.len() < TASK_ELEMENTS {
        (0..num_kv_heads).for_each(write);
    } else {
        cx.pool.run(num_kv_heads, &write);
    }
}

/// One head of one token into its slot of a block.
struct WriteToken<'a> {
    /// `[head_dim]`.
    k: &'a [f32],
    v: &'a [f32],
    slot: usize,
    /// `[head_dim, 16]`.
    to_k: &'a mut [u16],
    /// `[16, head_dim]`.
    to_v: &'a mut [u16],
}

impl VectorOp for WriteToken<'_> {
    type Output = ();

    fn reference(self) {
        let head_dim = self.v.len();
        for (keys, &k) in self.to_k.chunks_exact_mut(KV_BLOCK_TOKENS).zip(self.k) {
            keys[self.slot] = f32_to_f16_saturating(k);
        }
        for (to, &v) in self.to_v[self.slot * head_dim..][..head_dim]
            .iter_mut()
            .zip(self.v)
        {
            *to = f32_to_f16_saturating(v);
        }
    }

    #[inline(always)]
    fn vector<S: Simd>(self, simd: S) {
        let head_dim = self.v.len();
        let to_v = &mut self.to_v[self.slot * head_dim..][..head_dim];
        let (low, high) = (simd.splat(-F16_MAX), simd.splat(F16_MAX));
        // NaN passes both: where one operand is NaN, min and max give the second.
        let saturate = |x| simd.min(high, simd.max(low, x));
        for (from, to) in self
            .v
            .chunks_exact(S::F32_LANES)
            .zip(to_v.chunks_exact_mut(S::F32_LANES))
        {
            // SAFETY: both chunks are exactly one vector long.
            unsafe { simd.store_f16(to.as_mut_ptr(), saturate(simd.load(from.as_ptr()))) };
        }
        let mut lanes = [0; 16];
        let keys = self.to_k.chunks_exact_mut(S::F32_LANES * KV_BLOCK_TOKENS);
        for (from, keys) in self.k.chunks_exact(S::F32_LANES).zip(keys) {
            // SAFETY: the chunk is exactly one vector long, and no vector is wider than 16 lanes.
            unsafe { simd.store_f16(lanes.as_mut_ptr(), saturate(simd.load(from.as_ptr()))) };
            for (keys, &k) in keys.chunks_exact_mut(KV_BLOCK_TOKENS).zip(&lanes) {
                keys[self.slot] = k;
            }
        }
    }
}
