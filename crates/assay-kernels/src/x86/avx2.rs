//! AVX2: eight f32 to a register, and the 32-lane fold of the contract.

use std::arch::x86_64::*;

/// Loads eight values.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn load(values: &[f32; 8]) -> __m256 {
    // SAFETY: the array holds the eight values read; the load needs no alignment.
    unsafe { _mm256_loadu_ps(values.as_ptr()) }
}

/// Stores eight values.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn store(out: &mut [f32; 8], values: __m256) {
    // SAFETY: the array has room for the eight values written; the store needs no alignment.
    unsafe { _mm256_storeu_ps(out.as_mut_ptr(), values) }
}

/// Folds 32 lanes, lane `8v + i` in register `v`, as `numerics::sum_lanes` does.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn sum_lanes(lanes: [__m256; 4]) -> f32 {
    let low = _mm256_add_ps(lanes[0], lanes[2]);
    let high = _mm256_add_ps(lanes[1], lanes[3]);
    sum_8(_mm256_add_ps(low, high))
}

/// Folds eight lanes by halves.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn sum_8(lanes: __m256) -> f32 {
    let four = _mm_add_ps(
        _mm256_castps256_ps128(lanes),
        _mm256_extractf128_ps::<1>(lanes),
    );
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
}
