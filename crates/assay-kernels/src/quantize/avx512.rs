//! AVX-512: sixteen elements at a time; the maximum and the rounding are exact in any order.

use super::block_scales;
use std::arch::x86_64::*;

/// As [`reference::quantize_block`](super::reference::quantize_block).
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn quantize_block(x: &[f32], limit: f32, integers: &mut [i16]) -> f32 {
    let (x, _) = x.as_chunks::<16>();
    let (integers, _) = integers.as_chunks_mut::<16>();
    let magnitude = _mm512_set1_epi32(0x7FFF_FFFF);
    let mut amax = _mm512_setzero_si512();
    for v in x {
        // SAFETY: `v` is 16 f32 = 64 bytes.
        let bits = unsafe { _mm512_loadu_si512(v.as_ptr().cast()) };
        amax = _mm512_max_epu32(amax, _mm512_and_si512(bits, magnitude));
    }
    let amax = f32::from_bits(_mm512_reduce_max_epu32(amax));

    let (scale, inverse) = match block_scales(amax, limit) {
        Ok(scales) => scales,
        Err(scale) => {
            integers.as_flattened_mut().fill(0);
            return scale;
        }
    };
    let inverse = _mm512_set1_ps(inverse);
    let (high, low) = (_mm512_set1_ps(limit), _mm512_set1_ps(-limit));
    for (v, a) in x.iter().zip(integers) {
        // SAFETY: `v` is 16 f32 = 64 bytes.
        let v = unsafe { _mm512_loadu_ps(v.as_ptr()) };
        let scaled = _mm512_mul_ps(v, inverse);
        let rounded =
            _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(scaled);
        let clamped = _mm512_max_ps(_mm512_min_ps(rounded, high), low);
        let packed = _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(clamped));
        // SAFETY: `a` is 16 i16 = 32 bytes.
        unsafe { _mm256_storeu_si256(a.as_mut_ptr().cast(), packed) };
    }
    scale
}
