//! Eight f32 or four f64 to a register.

use std::arch::x86_64::*;

use super::{Simd, VectorOp};

/// Proof of AVX2, FMA and F16C.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

/// Runs the vector body compiled for AVX2.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn enter<O: VectorOp>(op: O) -> O::Output {
    op.vector(Avx2(()))
}

/// A call of intrinsics by a method of [`Avx2`].
macro_rules! intrinsic {
    ($call:expr) => {
        // SAFETY: holding an `Avx2` proves the instructions; it is built in `enter` alone. Pointers are valid by
        // the safety contract of the method that takes them.
        unsafe { $call }
    };
}

// SAFETY: the field is private and `enter`, compiled for these features, is the only constructor.
unsafe impl Simd for Avx2 {
    type F32 = __m256;
    type F64 = __m256d;
    const F32_LANES: usize = 8;
    const F64_LANES: usize = 4;
    const TILE_QUERIES: usize = 6;

    #[inline(always)]
    fn prefetch(self, address: *const u16) {
        intrinsic!(_mm_prefetch::<_MM_HINT_T1>(address.cast()))
    }
    #[expect(
        clippy::pointers_in_nomem_asm_block,
        reason = "the block neither reads nor writes"
    )]
    #[inline(always)]
    fn opaque(self, mut address: *const f32) -> *const f32 {
        // SAFETY: the block holds no instruction.
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) address, options(pure, nomem, nostack, preserves_flags));
        }
        address
    }
    #[inline(always)]
    fn splat(self, x: f32) -> __m256 {
        intrinsic!(_mm256_set1_ps(x))
    }
    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> __m256 {
        intrinsic!(_mm256_loadu_ps(from))
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32, x: __m256) {
        intrinsic!(_mm256_storeu_ps(to, x))
    }
    #[inline(always)]
    unsafe fn load_f16(self, from: *const u16) -> __m256 {
        intrinsic!(_mm256_cvtph_ps(_mm_loadu_si128(from.cast())))
    }
    #[inline(always)]
    unsafe fn store_f16(self, to: *mut u16, x: __m256) {
        intrinsic!(_mm_storeu_si128(
            to.cast(),
            _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x)
        ))
    }
    #[inline(always)]
    fn add(self, a: __m256, b: __m256) -> __m256 {
        intrinsic!(_mm256_add_ps(a, b))
    }
    #[inline(always)]
    fn sub(self, a: __m256, b: __m256) -> __m256 {
        intrinsic!(_mm256_sub_ps(a, b))
    }
    #[inline(always)]
    fn mul(self, a: __m256, b: __m256) -> __m256 {
        intrinsic!(_mm256_mul_ps(a, b))
    }
    #[inline(always)]
    fn div(self, a: __m256, b: __m256) -> __m256 {
        intrinsic!(_mm256_div_ps(a, b))
    }
    #[inline(always)]
    fn fma(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        intrinsic!(_mm256_fmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn max(self, a: __m256, b: __m256) -> __m256 {
        intrinsic!(_mm256_max_ps(a, b))
    }
    #[inline(always)]
    fn min(self, a: __m256, b: __m256) -> __m256 {
        intrinsic!(_mm256_min_ps(a, b))
    }
    #[inline(always)]
    fn neg(self, x: __m256) -> __m256 {
        intrinsic!(_mm256_xor_ps(x, _mm256_set1_ps(-0.0)))
    }
    #[inline(always)]
    fn scale_pow2(self, x: __m256, shifted: __m256, _n: __m256) -> __m256 {
        // A product with 2^n is exact, and unlike an addition to the exponent's bits it keeps NaN.
        intrinsic!({
            let exponent = _mm256_add_epi32(_mm256_castps_si256(shifted), _mm256_set1_epi32(127));
            _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32::<23>(exponent)))
        })
    }
    #[inline(always)]
    fn zero_where_less(self, x: __m256, bound: __m256, value: __m256) -> __m256 {
        intrinsic!(_mm256_and_ps(_mm256_cmp_ps::<_CMP_NLT_UQ>(x, bound), value))
    }
    #[inline(always)]
    fn select_lanes(self, first: i32, end: i32, x: __m256, other: __m256) -> __m256 {
        intrinsic!({
            let lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            let before_end = _mm256_cmpgt_epi32(_mm256_set1_epi32(end), lane);
            let before_first = _mm256_cmpgt_epi32(_mm256_set1_epi32(first), lane);
            let inside = _mm256_andnot_si256(before_first, before_end);
            _mm256_blendv_ps(other, x, _mm256_castsi256_ps(inside))
        })
    }
    #[inline(always)]
    fn any_nan(self, x: __m256) -> bool {
        intrinsic!(_mm256_movemask_ps(_mm256_cmp_ps::<_CMP_UNORD_Q>(x, x))) != 0
    }

    #[inline(always)]
    fn splat64(self, x: f64) -> __m256d {
        intrinsic!(_mm256_set1_pd(x))
    }
    #[inline(always)]
    unsafe fn load_widened(self, from: *const f32) -> __m256d {
        intrinsic!(_mm256_cvtps_pd(_mm_loadu_ps(from)))
    }
    #[inline(always)]
    unsafe fn load64(self, from: *const f64) -> __m256d {
        intrinsic!(_mm256_loadu_pd(from))
    }
    #[inline(always)]
    unsafe fn store64(self, to: *mut f64, x: __m256d) {
        intrinsic!(_mm256_storeu_pd(to, x))
    }
    #[inline(always)]
    fn add64(self, a: __m256d, b: __m256d) -> __m256d {
        intrinsic!(_mm256_add_pd(a, b))
    }
    #[inline(always)]
    fn sub64(self, a: __m256d, b: __m256d) -> __m256d {
        intrinsic!(_mm256_sub_pd(a, b))
    }
    #[inline(always)]
    fn fma64(self, a: __m256d, b: __m256d, c: __m256d) -> __m256d {
        intrinsic!(_mm256_fmadd_pd(a, b, c))
    }
    #[inline(always)]
    fn scale_pow2_64(self, x: __m256d, shifted: __m256d, _n: __m256d) -> __m256d {
        intrinsic!({
            let exponent = _mm256_add_epi64(_mm256_castpd_si256(shifted), _mm256_set1_epi64x(1023));
            _mm256_mul_pd(x, _mm256_castsi256_pd(_mm256_slli_epi64::<52>(exponent)))
        })
    }
    #[inline(always)]
    fn zero_where_less64(self, x: __m256d, bound: __m256d, value: __m256d) -> __m256d {
        intrinsic!(_mm256_and_pd(_mm256_cmp_pd::<_CMP_NLT_UQ>(x, bound), value))
    }
}
