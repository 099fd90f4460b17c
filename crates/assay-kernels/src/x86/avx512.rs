//! AVX-512: sixteen f32 to a register, partial loads by mask, and the 32-lane fold of the contract.

use std::arch::x86_64::*;

/// Loads sixteen values.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn load(values: &[f32; 16]) -> __m512 {
    // SAFETY: the array holds the sixteen values read; the load needs no alignment.
    unsafe { _mm512_loadu_ps(values.as_ptr()) }
}

/// The mask of the first `len` lanes; all sixteen if `len` is larger.
#[inline]
pub(crate) fn first_lanes(len: usize) -> __mmask16 {
    if len >= 16 { u16::MAX } else { (1 << len) - 1 }
}

/// Loads the first sixteen values of `values`, with zeros where it is shorter.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn load_partial(values: &[f32]) -> __m512 {
    // SAFETY: the mask selects no lane past the slice, and masked-out lanes are not accessed.
    unsafe { _mm512_maskz_loadu_ps(first_lanes(values.len()), values.as_ptr()) }
}

/// Stores the first lanes of `values` that fit into `out`, sixteen at most.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn store_partial(out: &mut [f32], values: __m512) {
    // SAFETY: the mask selects no lane past the slice, and masked-out lanes are not accessed.
    unsafe { _mm512_mask_storeu_ps(out.as_mut_ptr(), first_lanes(out.len()), values) }
}

/// Folds 32 lanes, lane `16v + i` in register `v`, as `numerics::sum_lanes` does.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx2")]
pub(crate) fn sum_lanes(lanes: [__m512; 2]) -> f32 {
    let sixteen = _mm512_add_ps(lanes[0], lanes[1]);
    let low = _mm512_castps512_ps256(sixteen);
    let high = _mm512_extractf32x8_ps::<1>(sixteen);
    super::avx2::sum_8(_mm256_add_ps(low, high))
}
/// Stores sixteen values.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn store(out: &mut [f32; 16], values: __m512) {
    // SAFETY: the array has room for the sixteen values written; the store needs no alignment.
    unsafe { _mm512_storeu_ps(out.as_mut_ptr(), values) }
}
