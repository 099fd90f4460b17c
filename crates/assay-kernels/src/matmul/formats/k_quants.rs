//! The 256-element formats with sub-scales: Q2_K (16 scales and minima of 4 bits), Q3_K (16 signed
//! scales of 6 bits), Q4_K, Q5_K (8 scales and minima of 6 bits), Q6_K (16 signed scales of 8 bits).

use super::PackedBlock;
use crate::matmul::quants::{U2, U3, U4, U5, U6};
use crate::matmul::scales::{SuperScaleOffset, SuperScaleSigned};
use assay_formats::quant::{BlockQ2K, BlockQ3K, BlockQ4K, BlockQ5K, BlockQ6K, scales_and_mins};
use half::f16;

/// The record of Q4_K and Q5_K.
fn write_offset_record(d: f16, dmin: f16, packed: &[u8; 12], record: &mut [u8]) {
    record[..2].copy_from_slice(&d.to_le_bytes());
    record[2..4].copy_from_slice(&dmin.to_le_bytes());
    for (j, pair) in scales_and_mins(packed).into_iter().enumerate() {
        record[4 + j] = pair.scale;
        record[12 + j] = pair.min;
    }
}

/// Splits runs of 32 bytes: 32 elements in the low nibbles, the next 32 in the high ones.
fn read_nibble_runs(bytes: &[u8; 128], quants: &mut [u8]) {
    for (run, out) in bytes.chunks_exact(32).zip(quants.chunks_exact_mut(64)) {
        let (low, high) = out.split_at_mut(32);
        for ((&byte, low), high) in run.iter().zip(low).zip(high) {
            *low = byte & 15;
            *high = byte >> 4;
        }
    }
}

/// Splits runs of 32 bytes: bit pair p of a run belongs to elements 32·p to 32·p + 31 of its 128.
fn read_pair_runs(bytes: &[u8; 64], quants: &mut [u8]) {
    for (run, out) in bytes.chunks_exact(32).zip(quants.chunks_exact_mut(128)) {
        for (p, out) in out.chunks_exact_mut(32).enumerate() {
            for (quant, &byte) in out.iter_mut().zip(run) {
                *quant = byte >> (2 * p) & 3;
            }
        }
    }
}

impl PackedBlock for BlockQ2K {
    type Quants = U2;
    type Scales = SuperScaleOffset<16>;
    const ZERO_POINT: u8 = 0;

    fn read_quants(&self, quants: &mut [u8]) {
        read_pair_runs(&self.qs, quants);
    }

    fn read_scales(&self, record: &mut [u8]) {
        record[..2].copy_from_slice(&self.d.to_le_bytes());
        record[2..4].copy_from_slice(&self.dmin.to_le_bytes());
        for (j, &pair) in self.scales.iter().enumerate() {
            record[4 + j] = pair & 15;
            record[20 + j] = pair >> 4;
        }
    }
}

impl PackedBlock for BlockQ3K {
    type Quants = U3;
    type Scales = SuperScaleSigned<16, 1>;
    const ZERO_POINT: u8 = 4;

    fn read_quants(&self, quants: &mut [u8]) {
        read_pair_runs(&self.qs, quants);
        // Bit j of byte k is the third bit of element k of the j-th 32: set, nothing is subtracted.
        for (j, out) in quants.chunks_exact_mut(32).enumerate() {
            for (quant, &bits) in out.iter_mut().zip(&self.hmask) {
                *quant |= (bits >> j & 1) << 2;
            }
        }
    }

    fn read_scales(&self, record: &mut [u8]) {
        record[..2].copy_from_slice(&self.d.to_le_bytes());
        for (j, scale) in record[2..].iter_mut().enumerate() {
            let low = self.scales[j % 8] >> (j / 8 * 4) & 15;
            let high = self.scales[8 + j % 4] >> (j / 4 * 2) & 3;
            *scale = (low | high << 4).wrapping_sub(32);
        }
    }
}

impl PackedBlock for BlockQ4K {
    type Quants = U4;
    type Scales = SuperScaleOffset<32>;
    const ZERO_POINT: u8 = 0;

    fn read_quants(&self, quants: &mut [u8]) {
        read_nibble_runs(&self.qs, quants);
    }

    fn read_scales(&self, record: &mut [u8]) {
        write_offset_record(self.d, self.dmin, &self.scales, record);
    }
}

impl PackedBlock for BlockQ5K {
    type Quants = U5;
    type Scales = SuperScaleOffset<32>;
    const ZERO_POINT: u8 = 0;

    fn read_quants(&self, quants: &mut [u8]) {
        read_nibble_runs(&self.qs, quants);
        // Bit j of byte k is the fifth bit of element k of sub-block j.
        for (j, out) in quants.chunks_exact_mut(32).enumerate() {
            for (quant, &bits) in out.iter_mut().zip(&self.qh) {
                *quant |= (bits >> j & 1) << 4;
            }
        }
    }

    fn read_scales(&self, record: &mut [u8]) {
        write_offset_record(self.d, self.dmin, &self.scales, record);
    }
}

impl PackedBlock for BlockQ6K {
    type Quants = U6;
    type Scales = SuperScaleSigned<16, 1>;
    const ZERO_POINT: u8 = 32;

    fn read_quants(&self, quants: &mut [u8]) {
        let halves = self.ql.chunks_exact(64).zip(self.qh.chunks_exact(32));
        for ((low, upper), out) in halves.zip(quants.chunks_exact_mut(128)) {
            for k in 0..32 {
                out[k] = (low[k] & 15) | (upper[k] & 3) << 4;
                out[k + 32] = (low[k + 32] & 15) | (upper[k] >> 2 & 3) << 4;
                out[k + 64] = (low[k] >> 4) | (upper[k] >> 4 & 3) << 4;
                out[k + 96] = (low[k + 32] >> 4) | (upper[k] >> 6) << 4;
            }
        }
    }

    fn read_scales(&self, record: &mut [u8]) {
        record[..2].copy_from_slice(&self.d.to_le_bytes());
        record[2..].copy_from_slice(&self.scales);
    }
}
