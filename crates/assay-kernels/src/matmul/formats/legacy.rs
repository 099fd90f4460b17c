//! The formats with one f16 scale per 32 elements: Q8_0, Q4_0, Q4_1, Q5_0, Q5_1.
//!
//! Block = scale `d` (f16), offset `m` (f16, the `_1` types), fifth bits (u32, the 5-bit types),
//! quants. In nibble types byte `i` holds element `i` low and element `i + 16` high.

use super::RawFormat;
use crate::matmul::quants::{U4, U5, U8};
use crate::matmul::scales::{HalfScale, HalfScaleOffset};

/// Splits 16 bytes of nibbles into 32 quants.
fn read_nibbles(bytes: &[u8], quants: &mut [u8]) {
    let (low, high) = quants.split_at_mut(16);
    for ((&byte, low), high) in bytes.iter().zip(low).zip(high) {
        *low = byte & 15;
        *high = byte >> 4;
    }
}

/// Adds bit `k` of the little-endian word `bits` to quant `k` as its fifth bit.
fn add_fifth_bits(bits: &[u8], quants: &mut [u8]) {
    for (k, quant) in quants.iter_mut().enumerate() {
        *quant |= (bits[k / 8] >> (k % 8) & 1) << 4;
    }
}

/// `d`, 32 × int8.
pub(crate) struct Q8_0;

impl RawFormat for Q8_0 {
    type Quants = U8;
    type Scales = HalfScale;
    const BLOCK_BYTES: usize = 34;
    const ZERO_POINT: u8 = 128;

    fn read_quants(block: &[u8], quants: &mut [u8]) {
        for (quant, &byte) in quants.iter_mut().zip(&block[2..34]) {
            // q + 128 of an int8 is its byte with the sign bit flipped.
            *quant = byte ^ 0x80;
        }
    }

    fn read_scales(block: &[u8], record: &mut [u8]) {
        record.copy_from_slice(&block[..2]);
    }
}

/// `d`, 16 bytes of nibbles; value `(q − 8)·d`.
pub(crate) struct Q4_0;

impl RawFormat for Q4_0 {
    type Quants = U4;
    type Scales = HalfScale;
    const BLOCK_BYTES: usize = 18;
    const ZERO_POINT: u8 = 8;

    fn read_quants(block: &[u8], quants: &mut [u8]) {
        read_nibbles(&block[2..18], quants);
    }

    fn read_scales(block: &[u8], record: &mut [u8]) {
        record.copy_from_slice(&block[..2]);
    }
}

/// `d`, `m`, 16 bytes of nibbles; value `q·d + m`.
pub(crate) struct Q4_1;

impl RawFormat for Q4_1 {
    type Quants = U4;
    type Scales = HalfScaleOffset;
    const BLOCK_BYTES: usize = 20;
    const ZERO_POINT: u8 = 0;

    fn read_quants(block: &[u8], quants: &mut [u8]) {
        read_nibbles(&block[4..20], quants);
    }

    fn read_scales(block: &[u8], record: &mut [u8]) {
        record.copy_from_slice(&block[..4]);
    }
}

/// `d`, fifth bits, 16 bytes of nibbles; value `(q − 16)·d`.
pub(crate) struct Q5_0;

impl RawFormat for Q5_0 {
    type Quants = U5;
    type Scales = HalfScale;
    const BLOCK_BYTES: usize = 22;
    const ZERO_POINT: u8 = 16;

    fn read_quants(block: &[u8], quants: &mut [u8]) {
        read_nibbles(&block[6..22], quants);
        add_fifth_bits(&block[2..6], quants);
    }

    fn read_scales(block: &[u8], record: &mut [u8]) {
        record.copy_from_slice(&block[..2]);
    }
}

/// `d`, `m`, fifth bits, 16 bytes of nibbles; value `q·d + m`.
pub(crate) struct Q5_1;

impl RawFormat for Q5_1 {
    type Quants = U5;
    type Scales = HalfScaleOffset;
    const BLOCK_BYTES: usize = 24;
    const ZERO_POINT: u8 = 0;

    fn read_quants(block: &[u8], quants: &mut [u8]) {
        read_nibbles(&block[8..24], quants);
        add_fifth_bits(&block[4..8], quants);
    }

    fn read_scales(block: &[u8], record: &mut [u8]) {
        record.copy_from_slice(&block[..4]);
    }
}
