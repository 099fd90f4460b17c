//! The 256-element formats with sub-scales: Q4_K, Q5_K (8 scales and minima of 6 bits), Q6_K (16
//! signed scales of 8 bits).

use super::RawFormat;
use crate::matmul::quants::{U4, U5, U6};
use crate::matmul::scales::{SuperScaleOffset, SuperScaleSigned};

/// Unpacks the 12 bytes of eight 6-bit scales and minima.
///
/// Bytes 0–3 and 4–7 hold scales and minima 0–3 in their low six bits; their upper two bits and
/// the nibbles of bytes 8–11 make up scales and minima 4–7.
fn read_six_bit_scales(packed: &[u8], scales: &mut [u8], minima: &mut [u8]) {
    for j in 0..4 {
        scales[j] = packed[j] & 63;
        minima[j] = packed[j + 4] & 63;
        scales[j + 4] = (packed[j + 8] & 15) | (packed[j] >> 6) << 4;
        minima[j + 4] = (packed[j + 8] >> 4) | (packed[j + 4] >> 6) << 4;
    }
}

/// Record of Q4_K and Q5_K: their first 16 bytes with the scales unpacked.
fn read_offset_record(block: &[u8], record: &mut [u8]) {
    record[..4].copy_from_slice(&block[..4]);
    let (scales, minima) = record[4..].split_at_mut(8);
    read_six_bit_scales(&block[4..16], scales, minima);
}

/// 128 bytes of nibbles: each 32 bytes hold 32 elements low, the next 32 high.
fn read_nibble_runs(bytes: &[u8], quants: &mut [u8]) {
    for (run, out) in bytes.chunks_exact(32).zip(quants.chunks_exact_mut(64)) {
        let (low, high) = out.split_at_mut(32);
        for ((&byte, low), high) in run.iter().zip(low).zip(high) {
            *low = byte & 15;
            *high = byte >> 4;
        }
    }
}

/// `d`, `dmin`, 12 bytes of scales, 128 bytes of nibbles.
pub(crate) struct Q4K;

impl RawFormat for Q4K {
    type Quants = U4;
    type Scales = SuperScaleOffset;
    const BLOCK_BYTES: usize = 144;
    const ZERO_POINT: u8 = 0;

    fn read_quants(block: &[u8], quants: &mut [u8]) {
        read_nibble_runs(&block[16..144], quants);
    }

    fn read_scales(block: &[u8], record: &mut [u8]) {
        read_offset_record(block, record);
    }
}

/// `d`, `dmin`, 12 bytes of scales, 32 bytes of fifth bits, 128 bytes of nibbles.
pub(crate) struct Q5K;

impl RawFormat for Q5K {
    type Quants = U5;
    type Scales = SuperScaleOffset;
    const BLOCK_BYTES: usize = 176;
    const ZERO_POINT: u8 = 0;

    fn read_quants(block: &[u8], quants: &mut [u8]) {
        read_nibble_runs(&block[48..176], quants);
        // Bit j of byte k is the fifth bit of element k of sub-block j.
        let fifth = &block[16..48];
        for (j, out) in quants.chunks_exact_mut(32).enumerate() {
            for (quant, &bits) in out.iter_mut().zip(fifth) {
                *quant |= (bits >> j & 1) << 4;
            }
        }
    }

    fn read_scales(block: &[u8], record: &mut [u8]) {
        read_offset_record(block, record);
    }
}

/// 128 bytes of low nibbles, 64 bytes of upper bits, 16 int8 scales, `d`; value `(q − 32)·d·sc`.
pub(crate) struct Q6K;

impl RawFormat for Q6K {
    type Quants = U6;
    type Scales = SuperScaleSigned;
    const BLOCK_BYTES: usize = 210;
    const ZERO_POINT: u8 = 32;

    fn read_quants(block: &[u8], quants: &mut [u8]) {
        let halves = quants.chunks_exact_mut(128);
        let (low, upper) = (&block[..128], &block[128..192]);
        for (half, out) in halves.enumerate() {
            let low = &low[64 * half..64 * half + 64];
            let upper = &upper[32 * half..32 * half + 32];
            for k in 0..32 {
                out[k] = (low[k] & 15) | (upper[k] & 3) << 4;
                out[k + 32] = (low[k + 32] & 15) | (upper[k] >> 2 & 3) << 4;
                out[k + 64] = (low[k] >> 4) | (upper[k] >> 4 & 3) << 4;
                out[k + 96] = (low[k + 32] >> 4) | (upper[k] >> 6) << 4;
            }
        }
    }

    fn read_scales(block: &[u8], record: &mut [u8]) {
        record[..2].copy_from_slice(&block[208..210]);
        record[2..].copy_from_slice(&block[192..208]);
    }
}
