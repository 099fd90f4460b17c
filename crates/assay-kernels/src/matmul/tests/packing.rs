//! Packing loses nothing: rows read back exactly, checksums agree, and what does not fit is named.

use super::super::formats::packed_format;
use super::super::{LAYOUT_VERSION, PackError, WeightArena, supported_types};
use super::*;

/// Rows read back are the exact values of the file's blocks.
#[test]
fn rows_are_the_dequantised_rows() {
    for case in &CASES {
        for (n, k) in case.shapes() {
            for scales in [Scales::Ordinary, Scales::Extreme, Scales::NonFinite] {
                let raw = case.raw(n, k, scales, 2);
                let w = PackedMatrix::pack(case.dtype, n, k, &raw).unwrap();
                let (mut expected, mut row) = (vec![0.0; n * k], vec![0.0; k]);
                assay_formats::quant::dequantize(case.dtype, &raw, &mut expected).unwrap();
                for (index, expected) in expected.chunks_exact(k).enumerate() {
                    w.row_into(index, &mut row);
                    let what = format!("{:?} {scales:?} n {n} row {index}", case.dtype);
                    check_equal(&what, k, &row, expected);
                }
            }
        }
    }
}

/// A panel hashes to what its rows did, on every ISA, and not after a change that moves a value.
#[test]
fn a_panel_is_read_back_as_packed() {
    for case in &CASES {
        let format = packed_format(case.dtype).unwrap();
        for k in [288_usize, 512].map(|k| k.next_multiple_of(case.block_elements)) {
            let raw = case.raw(16, k, Scales::Extreme, 1);
            let mut panel = vec![0; format.panel_bytes(k / 32)];
            let rows = raw.chunks_exact(raw.len() / 16).enumerate();
            let packed: Vec<u32> = rows
                .map(|(row, raw)| format.pack_row(raw, k / 32, &mut panel, row))
                .collect();
            for isa in Isa::available() {
                let found = format.panel_hashes(isa, &panel, k / 32);
                assert_eq!(found[..], packed, "{:?} k {k} {}", case.dtype, isa.name());
            }
            let values = |panel: &[u8]| {
                let mut row_values = vec![0.0; k];
                let mut all = Vec::new();
                for row in 0..16 {
                    format.read_row(panel, row, &mut row_values);
                    all.extend(row_values.iter().map(|value| value.to_bits()));
                }
                all
            };
            let before = values(&panel);
            for at in (0..panel.len()).step_by(7) {
                panel[at] ^= 1 << (at % 8);
                if values(&panel) != before {
                    let found = format.panel_hashes(Isa::SCALAR, &panel, k / 32);
                    assert_ne!(found[..], packed, "{:?} k {k} byte {at}", case.dtype);
                }
                panel[at] ^= 1 << (at % 8);
            }
        }
    }
}

/// Blocks, quads and rows that changed places are noticed.
#[test]
fn a_wrong_permutation_is_noticed() {
    for case in &CASES {
        let format = packed_format(case.dtype).unwrap();
        let k = 512_usize;
        let raw = case.raw(16, k, Scales::Ordinary, 4);
        let row_bytes = raw.len() / 16;
        let hash = |raw_row: &[u8], row: usize| {
            format.pack_row(
                raw_row,
                k / 32,
                &mut vec![0; format.panel_bytes(k / 32)],
                row,
            )
        };
        let mut swapped = raw[..row_bytes].to_vec();
        let (first, rest) = swapped.split_at_mut(case.block_bytes);
        first.swap_with_slice(&mut rest[..case.block_bytes]);
        assert_ne!(
            hash(&raw[..row_bytes], 0),
            hash(&swapped, 0),
            "{:?}",
            case.dtype
        );
        assert_ne!(
            hash(&raw[..row_bytes], 0),
            hash(&raw[row_bytes..2 * row_bytes], 0),
            "{:?}",
            case.dtype
        );
    }
}

#[test]
fn what_cannot_be_packed_is_named() {
    let pack = |dtype, n, k, len| PackedMatrix::pack(dtype, n, k, &vec![0; len]).unwrap_err();
    assert!(matches!(
        pack(DType::TQ2_0, 1, 256, 66),
        PackError::UnsupportedType {
            dtype: DType::TQ2_0
        }
    ));
    assert!(matches!(
        pack(DType::Q8_0, 0, 32, 0),
        PackError::InvalidShape { n: 0, k: 32 }
    ));
    assert!(matches!(
        pack(DType::Q8_0, 1, 0, 0),
        PackError::InvalidShape { n: 1, k: 0 }
    ));
    assert!(matches!(
        pack(DType::Q8_0, 1, 48, 51),
        PackError::PartialBlock {
            k: 48,
            block_elements: 32,
            ..
        }
    ));
    assert!(matches!(
        pack(DType::Q4K, 1, 288, 162),
        PackError::PartialBlock {
            k: 288,
            block_elements: 256,
            ..
        }
    ));
    assert!(matches!(
        pack(DType::Q4_0, 2, 32, 35),
        PackError::WrongByteCount {
            expected: 36,
            found: 35,
            ..
        }
    ));
    assert!(matches!(
        pack(DType::Q8_0, usize::MAX, 32, 1),
        PackError::InvalidShape { .. }
    ));
}

/// Of 19 rows of 512 seeded elements of each type.
const PANELS: [(DType, u64); 20] = [
    (DType::Q8_0, 0x6fb80c2065d6903a),
    (DType::Q4_0, 0x2645926e3bf6109d),
    (DType::Q4_1, 0x5db8c6d2c6657318),
    (DType::Q5_0, 0x46785e57277cf513),
    (DType::Q5_1, 0x9cdf649639a333bb),
    (DType::Q2K, 0xb46350ffb6e5d721),
    (DType::Q3K, 0xb4132d245ed15d6f),
    (DType::Q4K, 0x6da28f0f8f2596d3),
    (DType::Q5K, 0xb84baabb5a5ff97c),
    (DType::Q6K, 0x43534c8d9accc30f),
    (DType::IQ2XXS, 0x4ca7a5e8bf73db15),
    (DType::IQ2XS, 0x489f767ef84113dc),
    (DType::IQ2S, 0xa99ee4b81ab1b6e2),
    (DType::IQ3XXS, 0x0d7eea1187796f65),
    (DType::IQ3S, 0xec6d023bbf671aee),
    (DType::IQ1S, 0x3705ce299fff0b71),
    (DType::IQ1M, 0x2c443f69816671f8),
    (DType::IQ4NL, 0x2645926e3bf6109d),
    (DType::IQ4XS, 0xb83c8ebf01cabff2),
    (DType::MXFP4, 0xa61757c853de0b29),
];

/// A hash that this file alone defines, so that what it is recorded for stays comparable.
fn hash_bytes(bytes: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
    bytes.chunks(8).fold(MULTIPLIER, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        (hash ^ u64::from_le_bytes(word))
            .wrapping_mul(MULTIPLIER)
            .rotate_left(29)
    })
}

/// Panels are cached on disk: a byte of theirs that changes without the version would give wrong numbers.
#[test]
fn the_layout_has_a_version() {
    assert_eq!(LAYOUT_VERSION, 1, "record the panels' hashes anew");
    let hash_of = |case: &Case| {
        let raw = case.raw(19, 512, Scales::Ordinary, 3);
        let w = PackedMatrix::pack(case.dtype, 19, 512, &raw).unwrap();
        (case.dtype, hash_bytes(w.panels().unwrap()))
    };
    let found: Vec<(DType, u64)> = CASES.iter().map(hash_of).collect();
    assert_eq!(
        found, PANELS,
        "a new format adds a line; a changed one raises LAYOUT_VERSION"
    );
}

#[test]
fn panels_are_read_back() {
    for case in &CASES {
        let raw = case.raw(19, 512, Scales::Ordinary, 3);
        let packed = PackedMatrix::pack(case.dtype, 19, 512, &raw).unwrap();
        let panels = packed.panels().unwrap();
        let len = PackedMatrix::panels_len(case.dtype, 19, 512);
        assert_eq!(len, Some(panels.len()));
        let read = |fails_at: usize| {
            let mut arena = WeightArena::new();
            let read = |chunk: usize, out: &mut [u8]| {
                out.copy_from_slice(&panels[chunk * 1000..][..out.len()]);
                chunk != fails_at
            };
            let cx = compute(Isa::SCALAR, 3);
            PackedMatrix::read_in(&mut arena, &cx, case.dtype, 19, 512, 1000, &read).unwrap()
        };
        let whole = read(usize::MAX).expect("every chunk was read");
        assert!(whole.panels() == Some(panels), "{:?}", case.dtype);
        assert!(read(2).is_none(), "{:?}", case.dtype);
    }
    assert_eq!(PackedMatrix::panels_len(DType::F16, 1, 32), None);
    assert_eq!(PackedMatrix::panels_len(DType::Q8_0, 1, 33), None);
}

/// A refusal says what was found and what would do.
#[test]
fn a_refused_type_is_named_beside_those_that_work() {
    for &dtype in DType::ALL {
        let bytes = vec![0; dtype.block_bytes()];
        let supported = supported_types().any(|supported| supported == dtype);
        match PackedMatrix::pack(dtype, 1, dtype.block_len(), &bytes) {
            Ok(_) => assert!(supported, "{dtype} packs but is not listed"),
            Err(error) => {
                assert!(!supported, "{dtype} is listed: {error}");
                let text = error.to_string();
                assert!(text.contains(dtype.name()), "{text}");
                assert!(text.contains("IQ1_M") && text.contains("Q4_K"), "{text}");
            }
        }
    }
}
