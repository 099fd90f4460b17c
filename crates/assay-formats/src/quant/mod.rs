//! Exact dequantisation of block formats: the f32 values that a tensor's bytes stand for.
//!
//! One file per format: a struct with the block's fields in file order, a size check at compile time, and the exact
//! formula. Values equal those of ggml's reference to the bit. This is the meaning of the bytes, made for tests,
//! oracles and tables; fast paths live in the kernels and are judged against it.

mod block;
mod float;
mod grids;
mod iq1_m;
mod iq1_s;
mod iq2_s;
mod iq2_xs;
mod iq2_xxs;
mod iq3_s;
mod iq3_xxs;
mod iq4_nl;
mod iq4_xs;
mod k_scales;
mod lattice;
mod mxfp4;
mod q2_k;
mod q3_k;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q5_k;
mod q6_k;
mod q8_0;
mod scaled_quants;

pub use block::Block;
pub use iq1_m::BlockIQ1M;
pub use iq1_s::BlockIQ1S;
pub use iq2_s::BlockIQ2S;
pub use iq2_xs::BlockIQ2XS;
pub use iq2_xxs::BlockIQ2XXS;
pub use iq3_s::BlockIQ3S;
pub use iq3_xxs::BlockIQ3XXS;
pub use iq4_nl::{BlockIQ4NL, IQ4_VALUES};
pub use iq4_xs::BlockIQ4XS;
pub use k_scales::{ScaleMin, scales_and_mins};
pub use mxfp4::{BlockMXFP4, MXFP4_VALUES, mxfp4_scale};
pub use q2_k::BlockQ2K;
pub use q3_k::BlockQ3K;
pub use q4_0::BlockQ4_0;
pub use q4_1::BlockQ4_1;
pub use q4_k::BlockQ4K;
pub use q5_0::BlockQ5_0;
pub use q5_1::BlockQ5_1;
pub use q5_k::BlockQ5K;
pub use q6_k::BlockQ6K;
pub use q8_0::BlockQ8_0;
pub use scaled_quants::{SUPER_BLOCK, ScaledQuants};

use crate::dtype::DType;

/// Why bytes could not be dequantised.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantError {
    /// This version has no formula for the type.
    #[error("assay {} cannot dequantise {dtype} (type {})", env!("CARGO_PKG_VERSION"), dtype.ggml_id())]
    Unsupported {
        /// The type.
        dtype: DType,
    },
    /// The number of values asked for is not a whole number of blocks.
    #[error("{len} values are not a whole number of {dtype} blocks of {}", dtype.block_len())]
    PartialBlock {
        /// The type.
        dtype: DType,
        /// Values asked for.
        len: usize,
    },
    /// The bytes given are not those of the values asked for.
    #[error("{len} values of {dtype} take {expected} bytes, found {found}")]
    ByteLength {
        /// The type.
        dtype: DType,
        /// Values asked for.
        len: usize,
        /// Bytes that many values take.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
}

/// Writes the exact values of `bytes` to `out`; both must describe the same whole number of blocks.
///
/// # Errors
/// [`QuantError::Unsupported`] for a type without a formula here, otherwise a length that does not match.
pub fn dequantize(dtype: DType, bytes: &[u8], out: &mut [f32]) -> Result<(), QuantError> {
    let expected = dtype.row_bytes(out.len()).ok_or(QuantError::PartialBlock {
        dtype,
        len: out.len(),
    })?;
    if bytes.len() != expected {
        return Err(QuantError::ByteLength {
            dtype,
            len: out.len(),
            expected,
            found: bytes.len(),
        });
    }
    match dtype {
        DType::F32 => float::f32_values(bytes, out),
        DType::F16 => float::f16_values(bytes, out),
        DType::BF16 => float::bf16_values(bytes, out),
        DType::Q8_0 => block::dequantize::<BlockQ8_0>(bytes, out),
        DType::Q4_0 => block::dequantize::<BlockQ4_0>(bytes, out),
        DType::Q4_1 => block::dequantize::<BlockQ4_1>(bytes, out),
        DType::Q5_0 => block::dequantize::<BlockQ5_0>(bytes, out),
        DType::Q5_1 => block::dequantize::<BlockQ5_1>(bytes, out),
        DType::Q2K => block::dequantize::<BlockQ2K>(bytes, out),
        DType::Q3K => block::dequantize::<BlockQ3K>(bytes, out),
        DType::Q4K => block::dequantize::<BlockQ4K>(bytes, out),
        DType::Q5K => block::dequantize::<BlockQ5K>(bytes, out),
        DType::Q6K => block::dequantize::<BlockQ6K>(bytes, out),
        DType::IQ2XXS => block::dequantize::<BlockIQ2XXS>(bytes, out),
        DType::IQ2XS => block::dequantize::<BlockIQ2XS>(bytes, out),
        DType::IQ2S => block::dequantize::<BlockIQ2S>(bytes, out),
        DType::IQ3XXS => block::dequantize::<BlockIQ3XXS>(bytes, out),
        DType::IQ3S => block::dequantize::<BlockIQ3S>(bytes, out),
        DType::IQ1S => block::dequantize::<BlockIQ1S>(bytes, out),
        DType::IQ1M => block::dequantize::<BlockIQ1M>(bytes, out),
        DType::IQ4NL => block::dequantize::<BlockIQ4NL>(bytes, out),
        DType::IQ4XS => block::dequantize::<BlockIQ4XS>(bytes, out),
        DType::MXFP4 => block::dequantize::<BlockMXFP4>(bytes, out),
        _ => return Err(QuantError::Unsupported { dtype }),
    }
    Ok(())
}
