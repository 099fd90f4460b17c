//! EXP64 by lanes.

use crate::numerics::{
    EXP64_LN2_HI, EXP64_LN2_LO, EXP64_LOWEST, F64_EXP_TAYLOR, F64_LOG2_E, F64_ROUND_MAGIC,
};
use crate::simd::Simd;

/// EXP64 of each lane, for lanes up to 709 (above it, anything) and NaN.
#[inline(always)]
pub(crate) fn exp64_lanes<S: Simd>(simd: S, x: S::F64) -> S::F64 {
    let rounder = simd.splat64(F64_ROUND_MAGIC);
    let shifted = simd.fma64(x, simd.splat64(F64_LOG2_E), rounder);
    let n = simd.sub64(shifted, rounder);
    let r = simd.fma64(n, simd.splat64(-EXP64_LN2_HI), x);
    let r = simd.fma64(n, simd.splat64(-EXP64_LN2_LO), r);
    let mut y = simd.splat64(F64_EXP_TAYLOR[11]);
    for power in (0..11).rev() {
        y = simd.fma64(y, r, simd.splat64(F64_EXP_TAYLOR[power]));
    }
    let one = simd.splat64(1.0);
    let y = simd.fma64(simd.fma64(y, r, one), r, one);
    let y = simd.scale_pow2_64(y, shifted, n);
    simd.zero_where_less64(x, simd.splat64(EXP64_LOWEST), y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isa;
    use crate::exp64::exp64;
    use crate::simd::{VectorOp, dispatch};

    /// EXP64 of f32 inputs, since vectors read those.
    struct ExpAll<'a> {
        x: &'a [f32],
    }

    impl VectorOp for ExpAll<'_> {
        type Output = Vec<f64>;

        fn reference(self) -> Vec<f64> {
            self.x.iter().map(|&x| exp64(f64::from(x))).collect()
        }

        #[inline(always)]
        fn vector<S: Simd>(self, simd: S) -> Vec<f64> {
            let mut out = vec![0.0; self.x.len()];
            for (x, out) in self
                .x
                .chunks_exact(S::F64_LANES)
                .zip(out.chunks_exact_mut(S::F64_LANES))
            {
                // SAFETY: both chunks are exactly one vector long.
                unsafe {
                    let y = exp64_lanes(simd, simd.load_widened(x.as_ptr()));
                    simd.store64(out.as_mut_ptr(), y);
                }
            }
            out
        }
    }

    #[test]
    fn lanes_equal_the_scalar_bits() {
        let x: Vec<f32> = (0..u32::MAX)
            .step_by(4_999)
            .map(f32::from_bits)
            .filter(|&x| x.is_nan() || x <= 709.0)
            .chain([-708.0, -708.000_1, 709.0, 0.0, -0.0, f32::NEG_INFINITY])
            .collect();
        let x = &x[..x.len() / 16 * 16];
        let expected = dispatch(Isa::SCALAR, ExpAll { x });
        for isa in Isa::available() {
            let got = dispatch(isa, ExpAll { x });
            for ((x, want), have) in x.iter().zip(&expected).zip(got) {
                let same = want.to_bits() == have.to_bits() || want.is_nan() && have.is_nan();
                assert!(
                    same,
                    "{} at {x:e}: expected {want:e}, got {have:e}",
                    isa.name()
                );
            }
        }
    }
}
