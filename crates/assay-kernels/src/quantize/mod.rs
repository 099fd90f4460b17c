//! Activations as integers with block scales (numerics contract, section 2): 16 bits per 256
//! elements or 8 bits per 32, with the exact integer sums the zero points and offsets need.
//!
//! Class: exact, bit-equal on every ISA. A row's integers never depend on other rows.

mod activations;
mod aligned;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub mod cuda;
pub(crate) mod golden;
mod reference;
mod tile;

pub use activations::QuantizedActivations;
pub(crate) use tile::{BYTE_TILE_TOKENS, TILE_ROWS, TILE_TOKENS};

use crate::isa::Isa;

/// Precision of quantised activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ActivationProfile {
    /// 16-bit integers, one scale per 256 elements: the exact profile.
    A16,
    /// 8-bit integers, one scale per 32 elements: the fast profile.
    A8,
}

impl ActivationProfile {
    /// Elements that share one scale: 256 or 32.
    pub fn block_elements(self) -> usize {
        match self {
            Self::A16 => 256,
            Self::A8 => 32,
        }
    }

    /// Largest magnitude of an integer: 32,512 (= 127·256) or 127.
    pub(crate) fn limit(self) -> f32 {
        match self {
            Self::A16 => 32_512.0,
            Self::A8 => 127.0,
        }
    }
}

/// What AMX multiplies in large batches; other instruction sets, and small batches, know one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operands {
    /// BF16, whose sums need no conversion.
    Floats,
    /// Bytes, whatever the batch: for quants so wide that sums of their products are not exact in f32.
    Bytes,
}

impl Operands {
    /// Whether a batch is laid out otherwise for the one than for the other.
    pub(crate) fn differ(isa: Isa, profile: ActivationProfile, num_tokens: usize) -> bool {
        let layout = |operands| tile::WordLayout::of(isa, profile, operands, num_tokens);
        layout(Self::Bytes) != layout(Self::Floats)
    }
}

/// Blocks whose largest magnitude is below 2^-100 are zero.
const SMALLEST_AMAX: f32 = f32::from_bits((127 - 100) << 23);

/// Scale and inverse scale of a block, from its largest magnitude.
///
/// `Err` holds the scale of a block whose integers are all zero: 0, or NaN for a non-finite block.
fn block_scales(amax: f32, limit: f32) -> Result<(f32, f32), f32> {
    if !amax.is_finite() {
        Err(f32::NAN)
    } else if amax < SMALLEST_AMAX {
        Err(0.0)
    } else {
        Ok((amax / limit, limit / amax))
    }
}

#[cfg(test)]
mod tests;
