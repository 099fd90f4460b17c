//! The cosines and sines of one model, for every position of its context.
//!
//! Made from our own f64 arithmetic and rounded to f32 once, so every machine holds the same bits; the hash
//! says so. A table is read-only and shared by all layers with the same parameters.

use super::angle::{MAX_ANGLE, negative_power, sin_cos};
use std::fmt;

/// What a table is made from.
#[derive(Clone, Copy, Debug)]
pub struct RopeParameters<'a> {
    /// Elements of each head that turn; even.
    pub rotary_dims: usize,
    /// Base of the frequencies: pair `i` turns by `theta^(−2i / rotary_dims)` per position.
    pub theta: f64,
    /// Divisors of the frequencies, one per pair (`rope_freqs.weight` of Llama 3 files).
    pub freq_factors: Option<&'a [f32]>,
    /// Divisor of every frequency (linear position scaling); 1 for none.
    pub linear_scale: f64,
    /// Positions in the table: the context length.
    pub num_positions: usize,
}

/// Why a table cannot be made; each names the parameter.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RopeTableError {
    /// `rotary_dims` must be even.
    #[error("rope rotary_dims {0} is odd")]
    OddRotaryDims(usize),
    /// `theta` must be finite and at least 1.
    #[error("rope theta {0} is not a finite number of at least 1")]
    Theta(f64),
    /// `linear_scale` must be positive and finite.
    #[error("rope linear scale {0} is not a positive finite number")]
    LinearScale(f64),
    /// One factor per pair is needed.
    #[error("rope needs {expected} frequency factors, found {found}")]
    NumFreqFactors {
        /// Pairs of a head.
        expected: usize,
        /// Factors given.
        found: usize,
    },
    /// Factors must be finite and not zero; a negative one turns backwards.
    #[error("rope frequency factor {index} is {value}, not a finite number other than zero")]
    FreqFactor {
        /// Which factor.
        index: usize,
        /// Its value.
        value: f32,
    },
    /// The largest angle is beyond what the argument reduction keeps exact.
    #[error("rope angle {0} is beyond 2^30")]
    Angle(f64),
    /// The table does not fit an address space.
    #[error("rope table of {num_positions} positions by {num_pairs} pairs is too large")]
    TooLarge {
        /// Positions asked for.
        num_positions: usize,
        /// Pairs of a head.
        num_pairs: usize,
    },
}

/// Cosines and sines, `[num_positions, rotary_dims / 2]` each.
#[derive(Clone)]
pub struct RopeTable {
    num_pairs: usize,
    num_positions: usize,
    cos: Vec<f32>,
    sin: Vec<f32>,
}

impl RopeTable {
    /// Computes the table. Cost: about 20 ns per pair and position.
    ///
    /// # Errors
    /// [`RopeTableError`], naming the parameter out of range.
    pub fn new(parameters: &RopeParameters<'_>) -> Result<Self, RopeTableError> {
        let frequencies = frequencies(parameters)?;
        let (num_pairs, num_positions) = (frequencies.len(), parameters.num_positions);
        let too_large = RopeTableError::TooLarge {
            num_positions,
            num_pairs,
        };
        let len = num_positions
            .checked_mul(num_pairs)
            .filter(|&len| len <= isize::MAX as usize / 8)
            .ok_or_else(|| too_large.clone())?;
        let (mut cos, mut sin) = (Vec::new(), Vec::new());
        let reserved = cos
            .try_reserve_exact(len)
            .and_then(|()| sin.try_reserve_exact(len));
        reserved.map_err(|_| too_large)?;
        fill(&frequencies, num_positions, &mut cos, &mut sin);
        Ok(Self {
            num_pairs,
            num_positions,
            cos,
            sin,
        })
    }

    /// Elements of each head that turn.
    pub fn rotary_dims(&self) -> usize {
        self.num_pairs * 2
    }

    /// Positions in the table.
    pub fn num_positions(&self) -> usize {
        self.num_positions
    }

    /// Cosines and sines of one position, `[rotary_dims / 2]` each.
    ///
    /// # Panics
    /// If the position is past the table.
    pub fn row(&self, position: usize) -> (&[f32], &[f32]) {
        let start = position * self.num_pairs;
        let end = start + self.num_pairs;
        (&self.cos[start..end], &self.sin[start..end])
    }

    /// All cosines, then all sines, `[num_positions, rotary_dims / 2]` each.
    pub(super) fn values(&self) -> (&[f32], &[f32]) {
        (&self.cos, &self.sin)
    }

    /// Hash of all bits: cosines, then sines, little-endian. Part of the fingerprint of a model's numerics.
    /// Cost: reads the whole table.
    pub fn hash(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        for value in self.cos.iter().chain(&self.sin) {
            hasher.update(&value.to_le_bytes());
        }
        hasher.finalize()
    }
}

impl fmt::Debug for RopeTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RopeTable")
            .field("rotary_dims", &self.rotary_dims())
            .field("num_positions", &self.num_positions)
            .finish_non_exhaustive()
    }
}

/// The angle per position of each pair.
fn frequencies(parameters: &RopeParameters<'_>) -> Result<Vec<f64>, RopeTableError> {
    let RopeParameters {
        rotary_dims,
        theta,
        freq_factors,
        linear_scale,
        num_positions,
    } = *parameters;
    if !rotary_dims.is_multiple_of(2) {
        return Err(RopeTableError::OddRotaryDims(rotary_dims));
    }
    if !(theta.is_finite() && theta >= 1.0) {
        return Err(RopeTableError::Theta(theta));
    }
    if !(linear_scale.is_normal() && linear_scale > 0.0) {
        return Err(RopeTableError::LinearScale(linear_scale));
    }
    let num_pairs = rotary_dims / 2;
    if let Some(factors) = freq_factors {
        if factors.len() != num_pairs {
            return Err(RopeTableError::NumFreqFactors {
                expected: num_pairs,
                found: factors.len(),
            });
        }
        let bad = factors
            .iter()
            .enumerate()
            .find(|(_, factor)| !(factor.is_finite() && **factor != 0.0));
        if let Some((index, &value)) = bad {
            return Err(RopeTableError::FreqFactor { index, value });
        }
    }
    let frequencies: Vec<f64> = (0..num_pairs)
        .map(|i| {
            let factor = freq_factors
                .and_then(|factors| factors.get(i))
                .map_or(1.0, |&factor| f64::from(factor));
            negative_power(theta, i, num_pairs) / factor / linear_scale
        })
        .collect();
    let largest = frequencies
        .iter()
        .fold(0.0, |largest: f64, &f| largest.max(f.abs()))
        * num_positions as f64;
    if largest > MAX_ANGLE {
        return Err(RopeTableError::Angle(largest));
    }
    Ok(frequencies)
}

fn fill(frequencies: &[f64], num_positions: usize, cos: &mut Vec<f32>, sin: &mut Vec<f32>) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: FMA was detected on the line above.
        return unsafe { fill_fma(frequencies, num_positions, cos, sin) };
    }
    fill_body(frequencies, num_positions, cos, sin);
}

/// The same body with the fma instruction instead of a call; fma rounds once either way.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "fma")]
fn fill_fma(frequencies: &[f64], num_positions: usize, cos: &mut Vec<f32>, sin: &mut Vec<f32>) {
    fill_body(frequencies, num_positions, cos, sin);
}

#[inline(always)]
fn fill_body(frequencies: &[f64], num_positions: usize, cos: &mut Vec<f32>, sin: &mut Vec<f32>) {
    for position in 0..num_positions {
        for frequency in frequencies {
            let (s, c) = sin_cos(position as f64 * frequency);
            cos.push(c as f32);
            sin.push(s as f32);
        }
    }
}

#[cfg(test)]
mod tests;
