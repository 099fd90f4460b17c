//! The 6-bit scales and minima of Q4_K and Q5_K: eight pairs packed in twelve bytes.
//!
//! Pairs 0-3 stand in the low six bits of bytes 0-3 (scale) and 4-7 (minimum). Pairs 4-7 have their low four bits
//! in bytes 8-11 (scale in the low nibble, minimum in the high one) and their top two bits in the top of bytes 0-7.

/// The integer scale and minimum of one sub-block of 32, each 0 to 63.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScaleMin {
    /// Multiplies the block's `d`.
    pub scale: u8,
    /// Multiplies the block's `dmin`.
    pub min: u8,
}

/// Unpacks the eight pairs.
#[must_use]
pub fn scales_and_mins(packed: &[u8; 12]) -> [ScaleMin; 8] {
    std::array::from_fn(|j| {
        if j < 4 {
            ScaleMin {
                scale: packed[j] & 0x3f,
                min: packed[j + 4] & 0x3f,
            }
        } else {
            ScaleMin {
                scale: (packed[j + 4] & 0x0f) | ((packed[j - 4] >> 6) << 4),
                min: (packed[j + 4] >> 4) | ((packed[j] >> 6) << 4),
            }
        }
    })
}
