//! The block formats a packed matrix accepts: how a raw block splits into unsigned quants and a
//! scale record. One file per family; the panels and kernels know only the two layouts named here.
//!
//! Blocks are the bytes of a GGUF tensor: rows of K elements, blocks along K.

mod k_quants;
mod legacy;
mod registry;

pub(crate) use k_quants::{Q4K, Q5K, Q6K};
pub(crate) use legacy::{Q4_0, Q4_1, Q5_0, Q5_1, Q8_0};
pub(crate) use registry::{PackedFormat, packed_format};

use super::quants::QuantLayout;
use super::scales::ScaleLayout;

/// A block format as the GGUF file stores it.
pub(crate) trait RawFormat: Send + Sync + 'static {
    /// Storage class of the quants.
    type Quants: QuantLayout;
    /// Storage class of the scales; also says the block's width.
    type Scales: ScaleLayout;
    /// Bytes of one raw block.
    const BLOCK_BYTES: usize;
    /// What must be subtracted from a stored quant to get the contract's `q`.
    const ZERO_POINT: u8;

    /// Writes the block's `Scales::BLOCK_ELEMENTS` quants, as `q + ZERO_POINT`.
    fn read_quants(block: &[u8], quants: &mut [u8]);

    /// Writes the block's scale record (`Scales::RECORD_BYTES`).
    fn read_scales(block: &[u8], record: &mut [u8]);
}
