//! What tests and golden cases share: a seeded integer generator and bit-by-bit comparison.
//!
//! Inputs are made from integers only, so that they are the same on every machine and in every language.

use crate::numerics::canonical_bits;

/// SplitMix64: the generator of golden inputs.
#[derive(Clone, Debug)]
pub struct SeededGenerator {
    state: u64,
}

impl SeededGenerator {
    /// A generator whose whole output follows from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// The next 32 bits: the upper half of [`SeededGenerator::next_u64`].
    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// A multiple of 2^-23 in [−1, 1); exact.
    pub fn next_unit(&mut self) -> f32 {
        ((self.next_u32() >> 8) as i32 - (1 << 23)) as f32 * f32::from_bits(0x3400_0000)
    }

    /// `len` values in [−1, 1).
    pub fn units(&mut self, len: usize) -> Vec<f32> {
        (0..len).map(|_| self.next_unit()).collect()
    }

    /// `len` values whose magnitudes spread over 2^-exponents..1, as activations of a real model do.
    ///
    /// # Panics
    /// If `exponents` is 0 or above 120.
    pub fn spread(&mut self, len: usize, exponents: u32) -> Vec<f32> {
        assert!((1..=120).contains(&exponents), "exponents {exponents}");
        let value = |generator: &mut Self| {
            let shift = generator.next_u32() % exponents;
            generator.next_unit() * f32::from_bits((127 - shift) << 23)
        };
        (0..len).map(|_| value(self)).collect()
    }

    /// `len` raw bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next_u32() as u8).collect()
    }
}

/// Asserts that two outputs have the same bits; any NaN equals any NaN.
///
/// # Panics
/// At the first difference, naming the op, the shape, the coordinate in `shape` and both bit patterns.
pub fn check_bits_equal(op: &str, shape: &[usize], expected: &[f32], got: &[f32]) {
    assert_eq!(
        expected.len(),
        got.len(),
        "{op} {shape:?}: number of elements"
    );
    for (i, (&want, &have)) in expected.iter().zip(got).enumerate() {
        let (want_bits, have_bits) = (canonical_bits(want), canonical_bits(have));
        assert!(
            want_bits == have_bits,
            "{op} {shape:?} at {:?}: expected {want:e} ({want_bits:#010x}), got {have:e} ({have_bits:#010x})",
            coordinate(shape, i),
        );
    }
}

/// The coordinate of flat index `i` in a row-major `shape`; the flat index alone if the shape does not fit.
fn coordinate(shape: &[usize], mut i: usize) -> Vec<usize> {
    if shape.iter().product::<usize>() <= i {
        return vec![i];
    }
    let mut at = vec![0; shape.len()];
    for (position, &size) in at.iter_mut().zip(shape).rev() {
        *position = i % size;
        i /= size;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generator_is_splitmix64() {
        // First outputs for seed 1234567, from the algorithm's published test vector.
        let mut generator = SeededGenerator::new(1_234_567);
        assert_eq!(generator.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(generator.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn any_nan_equals_any_nan() {
        check_bits_equal(
            "nan",
            &[1],
            &[f32::from_bits(0x7FC0_0001)],
            &[f32::from_bits(0xFFC0_0000)],
        );
    }

    #[test]
    #[should_panic(expected = "zero [2, 3] at [1, 1]")]
    fn signed_zeros_differ_and_the_coordinate_is_named() {
        let expected = [0.0; 6];
        let mut got = expected;
        got[4] = -0.0;
        check_bits_equal("zero", &[2, 3], &expected, &got);
    }
}
