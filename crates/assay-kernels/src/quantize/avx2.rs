//! AVX2: eight elements at a time; the maximum and the rounding are exact in any order.

use super::block_scales;
use std::arch::x86_64::*;

/// As [`reference::quantize_block`](super::reference::quantize_block).
#[target_feature(enable = "avx2")]
pub(super) fn quantize_block(x: &[f32], limit: f32, integers: &mut [i16]) -> f32 {
    let (x, _) = x.as_chunks::<16>();
    let (integers, _) = integers.as_chunks_mut::<16>();
    let magnitude = _mm256_set1_epi32(0x7FFF_FFFF);
    let mut amax = _mm256_setzero_si256();
    for v in x {
        for half in 0..2 {
            // SAFETY: `v` is 16 f32; the load reads eight at 0 or 8.
            let bits = unsafe { _mm256_loadu_si256(v.as_ptr().add(8 * half).cast()) };
            amax = _mm256_max_epu32(amax, _mm256_and_si256(bits, magnitude));
        }
    }
    let mut lanes = [0_u32; 8];
    // SAFETY: `lanes` is 32 bytes.
    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), amax) };
    let amax = f32::from_bits(lanes.into_iter().max().unwrap_or(0));

    let (scale, inverse) = match block_scales(amax, limit) {
        Ok(scales) => scales,
        Err(scale) => {
            integers.as_flattened_mut().fill(0);
            return scale;
        }
    };
    let inverse = _mm256_set1_ps(inverse);
    let (high, low) = (_mm256_set1_ps(limit), _mm256_set1_ps(-limit));
    for (v, a) in x.iter().zip(integers) {
        let round = |half: usize| {
            // SAFETY: `v` is 16 f32; the load reads eight at 0 or 8.
            let v = unsafe { _mm256_loadu_ps(v.as_ptr().add(8 * half)) };
            let scaled = _mm256_mul_ps(v, inverse);
            let rounded =
                _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(scaled);
            _mm256_cvtps_epi32(_mm256_max_ps(_mm256_min_ps(rounded, high), low))
        };
        // Packing works per 128-bit lane; the permute puts the four groups back in order.
        let packed = _mm256_packs_epi32(round(0), round(1));
        let packed = _mm256_permute4x64_epi64::<0b11_01_10_00>(packed);
        // SAFETY: `a` is 16 i16 = 32 bytes.
        unsafe { _mm256_storeu_si256(a.as_mut_ptr().cast(), packed) };
    }
    scale
}
