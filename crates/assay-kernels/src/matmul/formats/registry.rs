//! The one table from element type to packed format, and the type-erased door to it.

use super::PackedBlock;
use crate::isa::Isa;
use crate::matmul::checksum::{MAX_RECORD_BYTES, PanelHash, Record, RowHash, RowHashes};
use crate::matmul::exact::has_exact_sums;
use crate::matmul::job::{Job, Task};
use crate::matmul::panel::{self, panel_bytes, steps};
use crate::matmul::quants::{BLOCK, QuantLayout};
use crate::matmul::scales::ScaleLayout;
use crate::matmul::{corrections, kernels};
use crate::quantize::{ActivationProfile, Operands, QuantizedActivations};
use assay_formats::DType;
use assay_formats::quant::{
    BlockIQ1M, BlockIQ1S, BlockIQ2S, BlockIQ2XS, BlockIQ2XXS, BlockIQ3S, BlockIQ3XXS, BlockIQ4NL,
    BlockIQ4XS, BlockMXFP4, BlockQ2K, BlockQ3K, BlockQ4_0, BlockQ4_1, BlockQ4K, BlockQ5_0,
    BlockQ5_1, BlockQ5K, BlockQ6K, BlockQ8_0,
};
use std::marker::PhantomData;

/// What a packed matrix can ask of its format. Rows are `row` 0..16 of one panel.
pub(crate) trait PackedFormat: Send + Sync + std::fmt::Debug {
    /// Bytes of a panel of 16 rows of `num_blocks` 32-blocks.
    fn panel_bytes(&self, num_blocks: usize) -> usize;
    /// Stores one raw row into a zeroed panel, and gives its hash.
    fn pack_row(&self, raw_row: &[u8], num_blocks: usize, panel: &mut [u8], row: usize) -> u32;
    /// The same hash of every row of a panel, as the kernels of `isa` read it.
    fn panel_hashes(&self, isa: Isa, panel: &[u8], num_blocks: usize) -> RowHashes;
    /// The row's weights as f32 by the embedding rule.
    fn read_row(&self, panel: &[u8], row: usize, out: &mut [f32]);
    /// What AMX multiplies in large batches of this format.
    fn operands(&self, profile: ActivationProfile) -> Operands;
    /// What the kernels add to each sub-block for the zero point or the offset.
    fn corrections(&self, activations: &QuantizedActivations) -> Vec<u32>;
    /// Runs one task of a matmul.
    fn run(&self, job: &Job<'_>, task: Task);
}

/// The packed format of `dtype`, if it has one.
pub(crate) fn packed_format(dtype: DType) -> Option<&'static dyn PackedFormat> {
    Some(match dtype {
        DType::Q8_0 => &Packed::<BlockQ8_0>(PhantomData),
        DType::Q4_0 => &Packed::<BlockQ4_0>(PhantomData),
        DType::Q4_1 => &Packed::<BlockQ4_1>(PhantomData),
        DType::Q5_0 => &Packed::<BlockQ5_0>(PhantomData),
        DType::Q5_1 => &Packed::<BlockQ5_1>(PhantomData),
        DType::Q2K => &Packed::<BlockQ2K>(PhantomData),
        DType::Q3K => &Packed::<BlockQ3K>(PhantomData),
        DType::Q4K => &Packed::<BlockQ4K>(PhantomData),
        DType::Q5K => &Packed::<BlockQ5K>(PhantomData),
        DType::Q6K => &Packed::<BlockQ6K>(PhantomData),
        DType::IQ4NL => &Packed::<BlockIQ4NL>(PhantomData),
        DType::IQ4XS => &Packed::<BlockIQ4XS>(PhantomData),
        DType::IQ3XXS => &Packed::<BlockIQ3XXS>(PhantomData),
        DType::IQ3S => &Packed::<BlockIQ3S>(PhantomData),
        DType::IQ2XXS => &Packed::<BlockIQ2XXS>(PhantomData),
        DType::IQ2XS => &Packed::<BlockIQ2XS>(PhantomData),
        DType::IQ2S => &Packed::<BlockIQ2S>(PhantomData),
        DType::IQ1S => &Packed::<BlockIQ1S>(PhantomData),
        DType::IQ1M => &Packed::<BlockIQ1M>(PhantomData),
        DType::MXFP4 => &Packed::<BlockMXFP4>(PhantomData),
        _ => return None,
    })
}

struct Packed<F>(PhantomData<F>);

impl<F> std::fmt::Debug for Packed<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(std::any::type_name::<F>())
    }
}

impl<F: PackedBlock> PackedFormat for Packed<F> {
    fn panel_bytes(&self, num_blocks: usize) -> usize {
        panel_bytes::<F::Quants, F::Scales>(num_blocks)
    }

    fn pack_row(&self, raw_row: &[u8], num_blocks: usize, panel: &mut [u8], row: usize) -> u32 {
        let mut hash = RowHash::default();
        let mut raw_blocks = raw_row.chunks_exact(F::DTYPE.block_bytes());
        let mut quants = [0_u8; 256];
        let quants = &mut quants[..F::DTYPE.block_len()];
        let mut record: Record = [0; MAX_RECORD_BYTES];
        let blocks_per_raw = F::DTYPE.block_len() / BLOCK;
        for step in steps::<F::Quants, F::Scales>(num_blocks) {
            let (section, sub_blocks) =
                panel[step.section..].split_at_mut(step.quants - step.section);
            let raw_in_step = raw_blocks.by_ref().take(step.num_blocks / blocks_per_raw);
            for (block, raw) in raw_in_step.enumerate() {
                let raw = F::from_bytes(raw);
                raw.read_scales(&mut record[..F::Scales::RECORD_BYTES]);
                hash.add_scales::<F::Scales>(&record);
                F::Scales::put(section, block, row, &record[..F::Scales::RECORD_BYTES]);
                raw.read_quants(quants);
                for (i, values) in quants.as_chunks::<BLOCK>().0.iter().enumerate() {
                    let at = (block * blocks_per_raw + i) * F::Quants::SUB_BLOCK_BYTES;
                    let sub_block = &mut sub_blocks[at..at + F::Quants::SUB_BLOCK_BYTES];
                    hash.add_quants(values);
                    F::Quants::put(sub_block, row, values);
                }
            }
        }
        hash.finish()
    }

    fn panel_hashes(&self, isa: Isa, panel: &[u8], num_blocks: usize) -> RowHashes {
        let mut hash = PanelHash::default();
        let blocks_per_raw = F::DTYPE.block_len() / BLOCK;
        for step in steps::<F::Quants, F::Scales>(num_blocks) {
            let section = &panel[step.section..step.quants];
            hash.add_scales::<F::Scales>(section, step.num_blocks / blocks_per_raw);
            hash.add_quants::<F::Quants>(isa, &panel[step.quants..], step.num_blocks);
        }
        hash.finish()
    }

    fn read_row(&self, panel: &[u8], row: usize, out: &mut [f32]) {
        let subs_per_block = BLOCK / F::Scales::SUB_BLOCK;
        for step in steps::<F::Quants, F::Scales>(out.len() / BLOCK) {
            let section = &panel[step.section..step.quants];
            for j in 0..step.num_blocks {
                let quants =
                    F::Quants::get(&panel[step.quants + j * F::Quants::SUB_BLOCK_BYTES..], row);
                let first = (step.first_block + j) * BLOCK;
                let out = &mut out[first..first + BLOCK];
                for (k, (value, quant)) in out.iter_mut().zip(quants).enumerate() {
                    let sub = j * subs_per_block + k / F::Scales::SUB_BLOCK;
                    let q = f32::from(i16::from(quant) - i16::from(F::ZERO_POINT));
                    let weight = F::Scales::weight(section, sub, row);
                    *value = if F::Scales::HAS_OFFSET {
                        q.mul_add(weight, F::Scales::offset(section, sub, row))
                    } else {
                        q * weight
                    };
                }
            }
        }
    }

    fn operands(&self, profile: ActivationProfile) -> Operands {
        match profile {
            ActivationProfile::A16 if !has_exact_sums::<F::Quants, F::Scales>() => Operands::Bytes,
            ActivationProfile::A16 | ActivationProfile::A8 => Operands::Floats,
        }
    }

    fn corrections(&self, activations: &QuantizedActivations) -> Vec<u32> {
        corrections::corrections::<F::Scales>(activations, F::ZERO_POINT)
    }

    fn run(&self, job: &Job<'_>, task: Task) {
        kernels::run::<F::Quants, F::Scales>(job, task, F::ZERO_POINT);
    }
}

// A step never splits a raw block.
const _: () = assert!(panel::BLOCKS_PER_STEP * BLOCK == 256);
