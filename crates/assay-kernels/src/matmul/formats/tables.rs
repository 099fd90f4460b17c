//! The formats whose quants take few different values: IQ4_NL, MXFP4, and the 256-element IQ1 to
//! IQ4_XS. Panels hold indices of three or four bits; signs and IQ1's shifts are in the quants.

use super::PackedBlock;
use crate::matmul::quants::LookUp;
use crate::matmul::quants::look_up::{self, QuantTable};
use crate::matmul::scales::{HalfScale, PowerScale, SuperScaleSigned};
use assay_formats::quant::{
    BlockIQ1M, BlockIQ1S, BlockIQ2S, BlockIQ2XS, BlockIQ2XXS, BlockIQ3S, BlockIQ3XXS, BlockIQ4NL,
    BlockIQ4XS, BlockMXFP4, ScaledQuants,
};

/// Stores whole numbers unsigned.
fn write_quants<T: QuantTable>(values: &[i8], quants: &mut [u8]) {
    for (quant, value) in quants.iter_mut().zip(values) {
        *quant = value.cast_unsigned().wrapping_add(T::ZERO_POINT);
    }
}

/// The record of a [`SuperScaleSigned`].
fn write_scaled_record<B: ScaledQuants>(block: &B, record: &mut [u8]) {
    record[..2].copy_from_slice(&block.d().to_le_bytes());
    for (j, scale) in record[2..].iter_mut().enumerate() {
        *scale = block.scale(j).cast_unsigned();
    }
}

impl PackedBlock for BlockIQ4NL {
    type Quants = LookUp<look_up::Iq4>;
    type Scales = HalfScale;
    const ZERO_POINT: u8 = look_up::Iq4::ZERO_POINT;

    fn read_quants(&self, quants: &mut [u8]) {
        write_quants::<look_up::Iq4>(&self.quants(), quants);
    }

    fn read_scales(&self, record: &mut [u8]) {
        record.copy_from_slice(&self.d.to_le_bytes());
    }
}

impl PackedBlock for BlockMXFP4 {
    type Quants = LookUp<look_up::Mxfp4>;
    type Scales = PowerScale;
    const ZERO_POINT: u8 = look_up::Mxfp4::ZERO_POINT;

    fn read_quants(&self, quants: &mut [u8]) {
        write_quants::<look_up::Mxfp4>(&self.quants(), quants);
    }

    fn read_scales(&self, record: &mut [u8]) {
        record[0] = self.e;
    }
}

macro_rules! scaled_quants {
    ($($block:ident: $table:ident;)*) => {$(
        impl PackedBlock for $block {
            type Quants = LookUp<look_up::$table>;
            type Scales =
                SuperScaleSigned<{ $block::SUB_BLOCK }, { $block::SCALE_DIVISOR }>;
            const ZERO_POINT: u8 = look_up::$table::ZERO_POINT;

            fn read_quants(&self, quants: &mut [u8]) {
                write_quants::<look_up::$table>(&self.quants(), quants);
            }

            fn read_scales(&self, record: &mut [u8]) {
                write_scaled_record(self, record);
            }
        }
    )*};
}

scaled_quants! {
    BlockIQ4XS: Iq4;
    BlockIQ3XXS: Iq3Xxs;
    BlockIQ3S: Iq3S;
    BlockIQ2XXS: Iq2;
    BlockIQ2XS: Iq2;
    BlockIQ2S: Iq2;
    BlockIQ1S: Iq1;
    BlockIQ1M: Iq1;
}
