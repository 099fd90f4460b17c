//! The vector operations that element-wise ops and attention are written over, once for every width.
//!
//! An op has two bodies: `reference`, plain Rust and the meaning of the op, and `vector`, generic over [`Simd`].
//! [`dispatch`] enters the one that an [`Isa`] value proves. Every operation here rounds once, as IEEE says, or is
//! exact, so the width cannot be seen in a result.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use crate::Isa;
use crate::isa::IsaKind;

/// A vector instruction set that the running CPU has; a value is the proof.
///
/// # Safety
/// An implementation may be constructed only where its instruction set is known to be present, since its methods
/// execute those instructions. Methods must be inlined into a function compiled for that set to be fast.
pub(crate) unsafe trait Simd: Copy {
    /// [`Simd::F32_LANES`] f32.
    type F32: Copy;
    /// [`Simd::F64_LANES`] f64.
    type F64: Copy;
    /// Lanes of a [`Simd::F32`]: 8 or 16.
    const F32_LANES: usize;
    /// Lanes of a [`Simd::F64`]: 4 or 8.
    const F64_LANES: usize;
    /// Attention's query heads that share one load of a key, by the registers there are.
    const TILE_QUERIES: usize;

    /// Asks for the cache line at `address`, any address, to come into the second-level cache.
    fn prefetch(self, address: *const u16);
    /// `address`, of which the compiler knows nothing after this: it is kept in a register of its own.
    fn opaque(self, address: *const f32) -> *const f32;
    fn splat(self, x: f32) -> Self::F32;
    /// # Safety
    /// `F32_LANES` f32 are readable at `from`.
    unsafe fn load(self, from: *const f32) -> Self::F32;
    /// # Safety
    /// `F32_LANES` f32 are writable at `to`.
    unsafe fn store(self, to: *mut f32, x: Self::F32);
    /// The f32 behind f16 bits, exactly.
    ///
    /// # Safety
    /// `F32_LANES` u16 are readable at `from`.
    unsafe fn load_f16(self, from: *const u16) -> Self::F32;
    /// Rounds to f16, nearest even.
    ///
    /// # Safety
    /// `F32_LANES` u16 are writable at `to`.
    unsafe fn store_f16(self, to: *mut u16, x: Self::F32);
    fn add(self, a: Self::F32, b: Self::F32) -> Self::F32;
    fn sub(self, a: Self::F32, b: Self::F32) -> Self::F32;
    fn mul(self, a: Self::F32, b: Self::F32) -> Self::F32;
    fn div(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a * b + c`, rounded once.
    fn fma(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32;
    /// The larger; `b` where either is NaN.
    fn max(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// The smaller; `b` where either is NaN.
    fn min(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `x` with its sign flipped, NaN too.
    fn neg(self, x: Self::F32) -> Self::F32;
    /// `x * 2^n` where `n` is an integer whose low bits `shifted` = 1.5·2^23 + n holds; the result is normal.
    fn scale_pow2(self, x: Self::F32, shifted: Self::F32, n: Self::F32) -> Self::F32;
    /// `value`, but +0 in lanes where `x < bound`.
    fn zero_where_less(self, x: Self::F32, bound: Self::F32, value: Self::F32) -> Self::F32;
    /// `x` in lanes `first..end`, `other` elsewhere; bounds outside the lanes are legal.
    fn select_lanes(self, first: i32, end: i32, x: Self::F32, other: Self::F32) -> Self::F32;
    /// Whether any lane is NaN.
    fn any_nan(self, x: Self::F32) -> bool;

    fn splat64(self, x: f64) -> Self::F64;
    /// `F64_LANES` f32, widened.
    ///
    /// # Safety
    /// `F64_LANES` f32 are readable at `from`.
    unsafe fn load_widened(self, from: *const f32) -> Self::F64;
    /// # Safety
    /// `F64_LANES` f64 are readable at `from`.
    unsafe fn load64(self, from: *const f64) -> Self::F64;
    /// # Safety
    /// `F64_LANES` f64 are writable at `to`.
    unsafe fn store64(self, to: *mut f64, x: Self::F64);
    fn add64(self, a: Self::F64, b: Self::F64) -> Self::F64;
    fn sub64(self, a: Self::F64, b: Self::F64) -> Self::F64;
    /// `a * b + c`, rounded once.
    fn fma64(self, a: Self::F64, b: Self::F64, c: Self::F64) -> Self::F64;
    /// As [`Simd::scale_pow2`], with `shifted` = 1.5·2^52 + n.
    fn scale_pow2_64(self, x: Self::F64, shifted: Self::F64, n: Self::F64) -> Self::F64;
    /// As [`Simd::zero_where_less`].
    fn zero_where_less64(self, x: Self::F64, bound: Self::F64, value: Self::F64) -> Self::F64;
}

/// A piece of work with a scalar meaning and one vector body for all widths.
pub(crate) trait VectorOp {
    /// What the work gives.
    type Output;
    /// The meaning, in plain Rust.
    fn reference(self) -> Self::Output;
    /// The same bits by vectors; implementations are `#[inline(always)]`.
    fn vector<S: Simd>(self, simd: S) -> Self::Output;
}

/// Runs `op` on `isa`.
pub(crate) fn dispatch<O: VectorOp>(isa: Isa, op: O) -> O::Output {
    match isa.0 {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa` of this kind exists only where the CPU has AVX2, FMA and F16C (`Isa::available`).
        IsaKind::Avx2 => unsafe { avx2::enter(op) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa` of this kind exists only where the CPU has AVX-512 F/BW/DQ/VL (`Isa::available`).
        IsaKind::Avx512 | IsaKind::Amx => unsafe { avx512::enter(op) },
        _ => op.reference(),
    }
}

/// The larger lane of `x`; of a NaN lane anything.
#[inline(always)]
pub(crate) fn largest_lane<S: Simd>(simd: S, x: S::F32) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; 16];
    // SAFETY: no vector is wider than 16 lanes.
    unsafe { simd.store(lanes.as_mut_ptr(), x) };
    let mut half = 8;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] = if lanes[lane + half] > lanes[lane] {
                lanes[lane + half]
            } else {
                lanes[lane]
            };
        }
        half /= 2;
    }
    lanes[0]
}
