//! EXP by lanes.

use crate::numerics::{EXP_LOWEST, EXP_P, F32_LN2_HI, F32_LN2_LO, F32_LOG2_E, F32_ROUND_MAGIC};
use crate::simd::Simd;

/// EXP of each lane, for lanes up to 88 (above it, anything) and NaN.
#[inline(always)]
pub(crate) fn exp_lanes<S: Simd>(simd: S, x: S::F32) -> S::F32 {
    let rounder = simd.splat(F32_ROUND_MAGIC);
    let shifted = simd.fma(x, simd.splat(F32_LOG2_E), rounder);
    let n = simd.sub(shifted, rounder);
    let r = simd.fma(n, simd.splat(-F32_LN2_HI), x);
    let r = simd.fma(n, simd.splat(-F32_LN2_LO), r);
    let mut p = simd.splat(EXP_P[5]);
    for power in (0..5).rev() {
        p = simd.fma(p, r, simd.splat(EXP_P[power]));
    }
    let y = simd.add(simd.fma(simd.mul(r, r), p, r), simd.splat(1.0));
    simd.zero_where_less(x, simd.splat(EXP_LOWEST), simd.scale_pow2(y, shifted, n))
}

/// EXP of `x` clamped to ±87, NaN kept.
#[inline(always)]
pub(crate) fn exp_clamped<S: Simd>(simd: S, x: S::F32) -> S::F32 {
    let x = simd.min(simd.splat(87.0), simd.max(simd.splat(-87.0), x));
    exp_lanes(simd, x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isa;
    use crate::exp::exp;
    use crate::simd::{VectorOp, dispatch};
    use crate::testing::check_bits_equal;

    struct ExpAll {
        x: Vec<f32>,
    }

    impl VectorOp for ExpAll {
        type Output = Vec<f32>;

        fn reference(self) -> Vec<f32> {
            self.x.iter().map(|&x| exp(x)).collect()
        }

        #[inline(always)]
        fn vector<S: Simd>(mut self, simd: S) -> Vec<f32> {
            for x in self.x.chunks_exact_mut(S::F32_LANES) {
                // SAFETY: the chunk is exactly one vector long.
                unsafe { simd.store(x.as_mut_ptr(), exp_lanes(simd, simd.load(x.as_ptr()))) };
            }
            self.x
        }
    }

    #[test]
    fn lanes_equal_the_scalar_bits() {
        // Every 997th f32 of the domain and beyond its lower end, both signs, NaN among them.
        let x: Vec<f32> = (0..u32::MAX)
            .step_by(997)
            .map(f32::from_bits)
            .filter(|&x| x.is_nan() || x <= 88.0)
            .chain([-87.0, -87.000_01, 88.0, 0.0, -0.0, f32::NEG_INFINITY])
            .collect();
        let x = x[..x.len() / 16 * 16].to_vec();
        let expected = dispatch(Isa::SCALAR, ExpAll { x: x.clone() });
        for isa in Isa::available() {
            let got = dispatch(isa, ExpAll { x: x.clone() });
            check_bits_equal(isa.name(), &[x.len()], &expected, &got);
        }
    }
}
