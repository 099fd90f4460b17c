//! Packing loses nothing: rows read back exactly, checksums agree, and what does not fit is named.

use super::super::{PackError, WeightArena, supported_types};
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

#[test]
fn packing_is_a_permutation() {
    for case in &CASES {
        for (n, k) in case.shapes() {
            let raw = case.raw(n, k, Scales::Extreme, 1);
            let w = PackedMatrix::pack(case.dtype, n, k, &raw).unwrap();
            let source = PackedMatrix::source_checksum(case.dtype, n, k, &raw).unwrap();
            assert_eq!(w.checksum(), source, "{:?} n {n} k {k}", case.dtype);
            let mut changed = raw;
            let last = changed.len() - 1;
            changed[last] ^= 1;
            let w = PackedMatrix::pack_in(
                &mut WeightArena::new(),
                &compute(Isa::SCALAR, 3),
                case.dtype,
                n,
                k,
                &changed,
            )
            .unwrap();
            assert_ne!(
                w.checksum(),
                source,
                "{:?} n {n} k {k}: a flipped bit",
                case.dtype
            );
        }
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
