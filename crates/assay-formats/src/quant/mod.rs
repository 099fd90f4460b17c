//! Exact dequantisation of block formats: the f32 values that a tensor's bytes stand for.
//!
//! One file per format: a struct with the block's fields in file order, a size check at compile time, and the exact
//! formula. Values equal those of ggml's reference to the bit. This is the meaning of the bytes, made for tests,
//! oracles and tables; fast paths live in the kernels and are judged against it.

mod block;
mod float;
mod k_scales;
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

pub use block::Block;
pub use k_scales::{ScaleMin, scales_and_mins};
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
        _ => return Err(QuantError::Unsupported { dtype }),
    }
    Ok(())
}
