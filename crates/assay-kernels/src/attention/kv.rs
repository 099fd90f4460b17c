//! Storage of keys and values as f16 in blocks of 16 tokens, and the write into it.
//!
//! Keys are transposed inside a block so that SIMD lanes are keys; values are not, so that lanes are elements of
//! the head. Who owns which block is decided elsewhere.

use half::f16;

use super::SequenceSpan;
use crate::Compute;

/// Tokens in one KV block.
pub const KV_BLOCK_TOKENS: usize = 16;

/// Largest finite f16; keys and values saturate there.
const F16_LARGEST: f32 = 65_504.0;

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

    /// Elements of one head in one block, of K or of V.
    pub(super) fn head_block_len(&self) -> usize {
        self.head_dim * KV_BLOCK_TOKENS
    }

    /// Where one head's part of a block begins, in `k` and in `v`.
    pub(super) fn head_block_start(&self, block: u32, kv_head: usize) -> usize {
        (block as usize * self.num_kv_heads + kv_head) * self.head_block_len()
    }
}

/// Stores K (after RoPE) and V of every row, `[num_tokens, num_kv_heads, head_dim]` each, as f16: nearest even,
/// saturating at ±65,504, NaN kept.
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
    let _ = cx;
    let token_len = layer.num_kv_heads * layer.head_dim;
    assert_eq!(k.len(), v.len(), "k and v differ in length");
    for span in spans {
        span.validate(layer.num_blocks, k.len() / token_len.max(1));
        for i in 0..span.num_rows {
            let row = span.first_row + i;
            let position = span.first_position + i;
            let slot = position % KV_BLOCK_TOKENS;
            let block = span.block_table[position / KV_BLOCK_TOKENS];
            for kv_head in 0..layer.num_kv_heads {
                let start = layer.head_block_start(block, kv_head);
                let from = row * token_len + kv_head * layer.head_dim;
                for d in 0..layer.head_dim {
                    layer.k[start + d * KV_BLOCK_TOKENS + slot] = to_f16_bits(k[from + d]);
                    layer.v[start + slot * layer.head_dim + d] = to_f16_bits(v[from + d]);
                }
            }
        }
    }
}

fn to_f16_bits(x: f32) -> u16 {
    f16::from_f32(x.clamp(-F16_LARGEST, F16_LARGEST)).to_bits()
}

/// The f32 behind f16 bits, exactly.
pub(super) fn from_f16_bits(bits: u16) -> f32 {
    f16::from_bits(bits).to_f32()
}
