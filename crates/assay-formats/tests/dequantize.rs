//! Dequantised values equal those of the PyPI package `gguf` to the bit (recorded by `tools/record_dequant.py`).
//!
//! Two sets per type: a few blocks recorded whole, whose mismatches are shown with coordinates, and 65,536 values
//! made again here from the recorder's seed and compared by digest. Scales walk over zeros, subnormals and the
//! greatest finite values of both signs.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use assay_formats::DType;
use assay_formats::quant::{QuantError, dequantize, mxfp4_scale};
use sha2::{Digest, Sha256};

/// Each type with the offsets of its f16 fields in a block (IQ1_M: of the words whose top nibbles are the f16).
const TYPES: [(DType, &[usize]); 23] = [
    (DType::F32, &[]),
    (DType::BF16, &[]),
    (DType::F16, &[0]),
    (DType::Q4_0, &[0]),
    (DType::Q4_1, &[0, 2]),
    (DType::Q5_0, &[0]),
    (DType::Q5_1, &[0, 2]),
    (DType::Q8_0, &[0]),
    (DType::Q2K, &[80, 82]),
    (DType::Q3K, &[108]),
    (DType::Q4K, &[0, 2]),
    (DType::Q5K, &[0, 2]),
    (DType::Q6K, &[208]),
    (DType::IQ2XXS, &[0]),
    (DType::IQ2XS, &[0]),
    (DType::IQ2S, &[0]),
    (DType::IQ3XXS, &[0]),
    (DType::IQ3S, &[0]),
    (DType::IQ1S, &[0]),
    (DType::IQ4NL, &[0]),
    (DType::IQ4XS, &[0]),
    (DType::IQ1M, &[48]),
    (DType::MXFP4, &[]),
];

const EXTREME_F16: [u16; 13] = [
    0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x83ff, 0x0400, 0x8400, 0x7bff, 0xfbff, 0x3c00, 0xbc00,
    0x3555,
];
/// Exponents of MXFP4's scale; with greater ones some values are infinite.
const EXTREME_E8M0: [u8; 10] = [0, 1, 2, 3, 126, 127, 128, 129, 251, 252];

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

fn values(dtype: DType, blocks: &[u8]) -> Vec<f32> {
    let mut values = vec![f32::NAN; blocks.len() / dtype.block_bytes() * dtype.block_len()];
    dequantize(dtype, blocks, &mut values).expect("a supported type");
    values
}

fn check_recorded(dtype: DType) {
    let stem = dtype.name().to_lowercase();
    let blocks = fs::read(data(&format!("{stem}.blocks"))).expect("recorded blocks");
    let expected = fs::read(data(&format!("{stem}.values"))).expect("recorded values");
    let found = values(dtype, &blocks);
    assert_eq!(found.len() * 4, expected.len(), "{dtype}: number of values");
    for (i, (found, expected)) in found.iter().zip(expected.as_chunks().0).enumerate() {
        let expected = u32::from_le_bytes(*expected);
        let (block, element) = (i / dtype.block_len(), i % dtype.block_len());
        assert_eq!(
            found.to_bits(),
            expected,
            "{dtype} block {block} element {element}: {found:e}, recorded {:e}",
            f32::from_bits(expected)
        );
    }
}

#[test]
fn recorded_blocks_are_equal_to_the_bit() {
    for (dtype, _) in TYPES {
        check_recorded(dtype);
    }
}

/// The recorder's generator: SplitMix64, each number little-endian.
fn splitmix64(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let mut bytes: Vec<u8> = (0..len.div_ceil(8))
        .flat_map(|_| next().to_le_bytes())
        .collect();
    bytes.truncate(len);
    bytes
}

/// Sets the f16 at the start of `field`.
fn set_f16(dtype: DType, field: &mut [u8], bits: u16) {
    if dtype == DType::IQ1M {
        for i in 0..4 {
            let nibble = (bits >> (4 * i) & 15) as u8;
            field[2 * i + 1] = field[2 * i + 1] & 15 | nibble << 4;
        }
    } else {
        field[..2].copy_from_slice(&bits.to_le_bytes());
    }
}

/// The recorder's blocks: random, with finite scales, the first ones extreme.
fn seeded_blocks(dtype: DType, f16_fields: &[usize], count: usize) -> Vec<u8> {
    let mut bytes = splitmix64(dtype.ggml_id().into(), count * dtype.block_bytes());
    let mut extremes = EXTREME_F16.iter().cycle();
    for (index, block) in bytes.chunks_exact_mut(dtype.block_bytes()).enumerate() {
        if dtype == DType::MXFP4 {
            block[0] = match EXTREME_E8M0.get(index) {
                Some(&extreme) => extreme,
                None if block[0] > 252 => block[0] & 0x7f,
                None => block[0],
            };
        }
        for &field in f16_fields {
            if dtype == DType::IQ1M {
                block[field + 7] &= 0xbf;
            } else if block[field + 1] & 0x7c == 0x7c {
                block[field + 1] &= 0xbf;
            }
            if index < EXTREME_F16.len() {
                let extreme = *extremes.next().expect("a cycle has no end");
                set_f16(dtype, &mut block[field..], extreme);
            }
        }
        let last = block.len() - 1;
        let wide = matches!(dtype, DType::F32 | DType::BF16);
        if wide && block[last] & 0x7f == 0x7f && block[last - 1] & 0x80 == 0x80 {
            block[last] &= 0xbf;
        }
    }
    bytes
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .take(8)
        .fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("a string takes any text");
            hex
        })
}

#[test]
fn many_seeded_blocks_have_the_recorded_digest() {
    let recorded = fs::read_to_string(data("digests.txt")).expect("recorded digests");
    let lines: Vec<&str> = recorded.lines().collect();
    assert_eq!(lines.len(), TYPES.len(), "one line per type");
    for ((dtype, f16_fields), line) in TYPES.into_iter().zip(lines) {
        let [name, count, blocks_digest, values_digest]: [&str; 4] = line
            .split(' ')
            .collect::<Vec<_>>()
            .try_into()
            .expect("four fields");
        assert_eq!(name, dtype.name());
        let blocks = seeded_blocks(
            dtype,
            f16_fields,
            count.parse().expect("a number of blocks"),
        );
        assert_eq!(
            digest(&blocks),
            blocks_digest,
            "{name}: the seeded blocks differ, not their values"
        );
        let bytes: Vec<u8> = values(dtype, &blocks)
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        assert_eq!(
            digest(&bytes),
            values_digest,
            "{name}: values of {count} blocks"
        );
    }
}

/// The values that the recorded blocks leave out because some are infinite.
#[test]
fn mxfp4_scales_are_powers_of_two() {
    for e in 0..=u8::MAX {
        let expected = 2_f64.powi(i32::from(e) - 128);
        assert_eq!(f64::from(mxfp4_scale(e)), expected, "exponent {e}");
    }
    let mut block = [0x77; 17];
    block[0] = 255;
    assert_eq!(values(DType::MXFP4, &block), [f32::INFINITY; 32]);
}

#[test]
fn every_f16_pattern_widens_exactly() {
    let bytes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    for (bits, value) in (0..=u16::MAX).zip(values(DType::F16, &bytes)) {
        let (exponent, mantissa) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
        let magnitude = match exponent {
            0 => mantissa * 2_f64.powi(-24),
            31 if mantissa == 0.0 => f64::INFINITY,
            31 => f64::NAN,
            _ => (1024.0 + mantissa) * 2_f64.powi(exponent - 25),
        };
        let expected = if bits >> 15 == 1 {
            -magnitude
        } else {
            magnitude
        };
        let same = f64::from(value).to_bits() == expected.to_bits()
            || (value.is_nan() && expected.is_nan());
        assert!(same, "{bits:#06x}: {value:e}, expected {expected:e}");
    }
}

#[test]
fn lengths_that_do_not_match_are_refused() {
    let cases = [
        (
            DType::Q4K,
            144,
            255,
            "255 values are not a whole number of Q4_K blocks of 256",
        ),
        (
            DType::Q4K,
            143,
            256,
            "256 values of Q4_K take 144 bytes, found 143",
        ),
        (
            DType::Q8_0,
            35,
            32,
            "32 values of Q8_0 take 34 bytes, found 35",
        ),
        (DType::F32, 0, 1, "1 values of F32 take 4 bytes, found 0"),
    ];
    for (dtype, bytes, len, expected) in cases {
        let error =
            dequantize(dtype, &vec![0; bytes], &mut vec![0.0; len]).expect_err("lengths differ");
        assert_eq!(error.to_string(), expected);
    }
    assert_eq!(dequantize(DType::Q6K, &[], &mut []), Ok(()));
}

#[test]
fn every_other_type_is_refused_by_name() {
    let supported = |dtype| TYPES.iter().any(|&(known, _)| known == dtype);
    for &dtype in DType::ALL.iter().filter(|&&dtype| !supported(dtype)) {
        let bytes = vec![0; dtype.block_bytes()];
        let result = dequantize(dtype, &bytes, &mut vec![0.0; dtype.block_len()]);
        assert_eq!(result, Err(QuantError::Unsupported { dtype }));
        let text = result.expect_err("unsupported").to_string();
        let number = format!("(type {})", dtype.ggml_id());
        assert!(
            text.contains(dtype.name()) && text.contains(&number),
            "{text}"
        );
        assert!(text.contains(env!("CARGO_PKG_VERSION")), "{text}");
    }
}
