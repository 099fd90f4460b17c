//! Per sub-block and token, what a kernel adds besides the products of stored quants: the exact
//! integer `−zero_point·S_j` where quants are stored with a zero point, or `f32(S_j)` for the
//! offset chain. No format has both.
//!
//! The kernels of AMX for many tokens multiply signed quants and need only the latter.
//!
//! Laid out like the activations: `[tile][sub-block][token of tile]`.

use super::scales::ScaleLayout;
use crate::quantize::QuantizedActivations;

/// The corrections of one matmul, as the bits of i32 or of f32.
pub(super) fn corrections<S: ScaleLayout>(
    activations: &QuantizedActivations,
    zero_point: u8,
) -> Vec<u32> {
    let are_signed = activations.in_tile_rows() || activations.in_many_byte_rows();
    if !S::HAS_OFFSET && are_signed {
        return Vec::new();
    }
    let value = |sum: i32| {
        if S::HAS_OFFSET {
            (sum as f32).to_bits()
        } else {
            (-i32::from(zero_point) * sum).cast_unsigned()
        }
    };
    let sums = activations.sums();
    if S::SUB_BLOCK == 16 {
        return sums.iter().map(|&sum| value(sum)).collect();
    }
    let mut corrections = Vec::with_capacity(sums.len() / 2);
    for tile in 0..activations.num_tiles() {
        let width = activations.tile_width(tile);
        for pair in activations.tile_sums(tile).chunks_exact(2 * width) {
            let (first, second) = pair.split_at(width);
            corrections.extend(first.iter().zip(second).map(|(a, b)| value(a + b)));
        }
    }
    corrections
}
