//! The formats with one f16 scale per 32 elements: Q8_0, Q4_0, Q4_1, Q5_0, Q5_1.

use super::PackedBlock;
use crate::matmul::quants::{U4, U5, U8};
use crate::matmul::scales::{HalfScale, HalfScaleOffset};
use assay_formats::quant::{BlockQ4_0, BlockQ4_1, BlockQ5_0, BlockQ5_1, BlockQ8_0};
use half::f16;

/// Splits 16 bytes of nibbles: elements 0–15 low, 16–31 high.
fn read_nibbles(bytes: &[u8; 16], quants: &mut [u8]) {
    let (low, high) = quants.split_at_mut(16);
    for ((&byte, low), high) in bytes.iter().zip(low).zip(high) {
        *low = byte & 15;
        *high = byte >> 4;
    }
}

/// Adds bit `k` of the little-endian word to quant `k` as its fifth bit.
fn add_fifth_bits(word: [u8; 4], quants: &mut [u8]) {
    let word = u32::from_le_bytes(word);
    for (k, quant) in quants.iter_mut().enumerate() {
        *quant |= ((word >> k & 1) as u8) << 4;
    }
}

/// The record of the types with an offset.
fn write_pair(d: f16, m: f16, record: &mut [u8]) {
    record[..2].copy_from_slice(&d.to_le_bytes());
    record[2..].copy_from_slice(&m.to_le_bytes());
}

impl PackedBlock for BlockQ8_0 {
    type Quants = U8;
    type Scales = HalfScale;
    const ZERO_POINT: u8 = 128;

    fn read_quants(&self, quants: &mut [u8]) {
        for (quant, &q) in quants.iter_mut().zip(&self.qs) {
            // q + 128 of an int8 is its byte with the sign bit flipped.
            *quant = q ^ 0x80;
        }
    }

    fn read_scales(&self, record: &mut [u8]) {
        record.copy_from_slice(&self.d.to_le_bytes());
    }
}

impl PackedBlock for BlockQ4_0 {
    type Quants = U4;
    type Scales = HalfScale;
    const ZERO_POINT: u8 = 8;

    fn read_quants(&self, quants: &mut [u8]) {
        read_nibbles(&self.qs, quants);
    }

    fn read_scales(&self, record: &mut [u8]) {
        record.copy_from_slice(&self.d.to_le_bytes());
    }
}

impl PackedBlock for BlockQ4_1 {
    type Quants = U4;
    type Scales = HalfScaleOffset;
    const ZERO_POINT: u8 = 0;

    fn read_quants(&self, quants: &mut [u8]) {
        read_nibbles(&self.qs, quants);
    }

    fn read_scales(&self, record: &mut [u8]) {
        write_pair(self.d, self.m, record);
    }
}

impl PackedBlock for BlockQ5_0 {
    type Quants = U5;
    type Scales = HalfScale;
    const ZERO_POINT: u8 = 16;

    fn read_quants(&self, quants: &mut [u8]) {
        read_nibbles(&self.qs, quants);
        add_fifth_bits(self.qh, quants);
    }

    fn read_scales(&self, record: &mut [u8]) {
        record.copy_from_slice(&self.d.to_le_bytes());
    }
}

impl PackedBlock for BlockQ5_1 {
    type Quants = U5;
    type Scales = HalfScaleOffset;
    const ZERO_POINT: u8 = 0;

    fn read_quants(&self, quants: &mut [u8]) {
        read_nibbles(&self.qs, quants);
        add_fifth_bits(self.qh, quants);
    }

    fn read_scales(&self, record: &mut [u8]) {
        write_pair(self.d, self.m, record);
    }
}
