//! The block formats a packed matrix accepts: how a file's block splits into unsigned quants and a
//! scale record. The panels and kernels know only the two layouts named here.

mod k_quants;
mod legacy;
mod registry;
mod tables;

pub(crate) use registry::{PackedFormat, packed_format};

use super::quants::QuantLayout;
use super::scales::ScaleLayout;
use assay_formats::quant::Block;

/// A block format as the kernels see it.
pub(crate) trait PackedBlock: Block + Send + Sync + 'static {
    /// Storage class of the quants.
    type Quants: QuantLayout;
    /// Storage class of the scales.
    type Scales: ScaleLayout;
    /// What must be subtracted from a stored quant to get the contract's `q`.
    const ZERO_POINT: u8;

    /// Writes the block's quants as `q + ZERO_POINT`; `quants` is one block long.
    fn read_quants(&self, quants: &mut [u8]);

    /// Writes the block's scale record (`Scales::RECORD_BYTES`).
    fn read_scales(&self, record: &mut [u8]);
}
