//! The scalar path, and the meaning of the op.

use super::block_scales;
use super::tile::Place;

/// Quantises one block (a multiple of 32 elements, up to 256) to its place; returns its scale.
pub(super) fn quantize_block(x: &[f32], limit: f32, place: Place<'_>) -> f32 {
    // Magnitudes order like their bits, and NaN is above everything: a NaN survives the maximum.
    let amax = x.iter().map(|v| v.to_bits() & 0x7FFF_FFFF).max();
    let amax = f32::from_bits(amax.unwrap_or(0));
    let mut integers = [0_i16; 256];
    let integers = &mut integers[..x.len()];
    let scale = match block_scales(amax, limit) {
        Ok((scale, inverse)) => {
            for (a, v) in integers.iter_mut().zip(x) {
                *a = (v * inverse).round_ties_even().clamp(-limit, limit) as i16;
            }
            scale
        }
        Err(scale) => scale,
    };
    place.put(integers);
    scale
}
