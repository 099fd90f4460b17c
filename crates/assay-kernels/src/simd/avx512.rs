//! Sixteen f32 or eight f64 to a register.

use std::arch::x86_64::*;

use super::{Simd, VectorOp};

/// Proof of AVX-512 F/BW/DQ/VL.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

/// Runs the vector body compiled for AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
pub(super) fn enter<O: VectorOp>(op: O) -> O::Output {
    op.vector(Avx512(()))
}

/// A call of intrinsics by a method of [`Avx512`].
macro_rules! intrinsic {
    ($call:expr) => {
        // SAFETY: holding an `Avx512` proves the instructions; it is built in `enter` alone. Pointers are valid
        // by the safety contract of the method that takes them.
        unsafe { $call }
    };
}

// SAFETY: the field is private and `enter`, compiled for these features, is the only constructor.
unsafe impl Simd for Avx512 {
    type F32 = __m512;
    type F64 = __m512d;
    const F32_LANES: usize = 16;
    const F64_LANES: usize = 8;
    const TILE_QUERIES: usize = 24;

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
    fn splat(self, x: f32) -> __m512 {
        intrinsic!(_mm512_set1_ps(x))
    }
    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> __m512 {
        intrinsic!(_mm512_loadu_ps(from))
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32, x: __m512) {
        intrinsic!(_mm512_storeu_ps(to, x))
    }
    #[inline(always)]
    unsafe fn load_f16(self, from: *const u16) -> __m512 {
        intrinsic!(_mm512_cvtph_ps(_mm256_loadu_si256(from.cast())))
    }
    #[inline(always)]
    unsafe fn store_f16(self, to: *mut u16, x: __m512) {
        intrinsic!(_mm256_storeu_si256(
            to.cast(),
            _mm512_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x)
        ))
    }
    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        intrinsic!(_mm512_add_ps(a, b))
    }
    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        intrinsic!(_mm512_sub_ps(a, b))
    }
    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        intrinsic!(_mm512_mul_ps(a, b))
    }
    #[inline(always)]
    fn div(self, a: __m512, b: __m512) -> __m512 {
        intrinsic!(_mm512_div_ps(a, b))
    }
    #[inline(always)]
    fn fma(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        intrinsic!(_mm512_fmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn max(self, a: __m512, b: __m512) -> __m512 {
        intrinsic!(_mm512_max_ps(a, b))
    }
    #[inline(always)]
    fn min(self, a: __m512, b: __m512) -> __m512 {
        intrinsic!(_mm512_min_ps(a, b))
    }
    #[inline(always)]
    fn neg(self, x: __m512) -> __m512 {
        intrinsic!(_mm512_xor_ps(x, _mm512_set1_ps(-0.0)))
    }
    #[inline(always)]
    fn scale_pow2(self, x: __m512, _shifted: __m512, n: __m512) -> __m512 {
        intrinsic!(_mm512_scalef_ps(x, n))
    }
    #[inline(always)]
    fn zero_where_less(self, x: __m512, bound: __m512, value: __m512) -> __m512 {
        intrinsic!(_mm512_maskz_mov_ps(
            _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x, bound),
            value
        ))
    }
    #[inline(always)]
    fn select_lanes(self, first: i32, end: i32, x: __m512, other: __m512) -> __m512 {
        let below = |bound: i32| (1_u32 << bound.clamp(0, 16)).wrapping_sub(1) as u16;
        intrinsic!(_mm512_mask_mov_ps(other, below(end) & !below(first), x))
    }
    #[inline(always)]
    fn any_nan(self, x: __m512) -> bool {
        intrinsic!(_mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x)) != 0
    }

    #[inline(always)]
    fn splat64(self, x: f64) -> __m512d {
        intrinsic!(_mm512_set1_pd(x))
    }
    #[inline(always)]
    unsafe fn load_widened(self, from: *const f32) -> __m512d {
        intrinsic!(_mm512_cvtps_pd(_mm256_loadu_ps(from)))
    }
    #[inline(always)]
    unsafe fn load64(self, from: *const f64) -> __m512d {
        intrinsic!(_mm512_loadu_pd(from))
    }
    #[inline(always)]
    unsafe fn store64(self, to: *mut f64, x: __m512d) {
        intrinsic!(_mm512_storeu_pd(to, x))
    }
    #[inline(always)]
    fn add64(self, a: __m512d, b: __m512d) -> __m512d {
        intrinsic!(_mm512_add_pd(a, b))
    }
    #[inline(always)]
    fn sub64(self, a: __m512d, b: __m512d) -> __m512d {
        intrinsic!(_mm512_sub_pd(a, b))
    }
    #[inline(always)]
    fn fma64(self, a: __m512d, b: __m512d, c: __m512d) -> __m512d {
        intrinsic!(_mm512_fmadd_pd(a, b, c))
    }
    #[inline(always)]
    fn scale_pow2_64(self, x: __m512d, _shifted: __m512d, n: __m512d) -> __m512d {
        intrinsic!(_mm512_scalef_pd(x, n))
    }
    #[inline(always)]
    fn zero_where_less64(self, x: __m512d, bound: __m512d, value: __m512d) -> __m512d {
        intrinsic!(_mm512_maskz_mov_pd(
            _mm512_cmp_pd_mask::<_CMP_NLT_UQ>(x, bound),
            value
        ))
    }
}
