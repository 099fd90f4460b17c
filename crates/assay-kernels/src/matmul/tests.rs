//! Bit-equality over formats × ISAs × shapes × batches, and the properties that hold for every
//! format: packing is a permutation, a row does not depend on its batch or on threads.

use super::{Activations, PackError, PackedMatrix, WeightArena, matmul};
use crate::quantize::ActivationProfile;
use crate::{Compute, Isa, ThreadPool};
use assay_formats::DType;
use std::num::NonZeroUsize;

/// A format under test: block elements, block bytes, byte offsets of its f16 fields.
struct Case {
    dtype: DType,
    block_elements: usize,
    block_bytes: usize,
    halves: &'static [usize],
}

const fn case(
    dtype: DType,
    block_elements: usize,
    block_bytes: usize,
    halves: &'static [usize],
) -> Case {
    Case {
        dtype,
        block_elements,
        block_bytes,
        halves,
    }
}

const CASES: [Case; 8] = [
    case(DType::Q8_0, 32, 34, &[0]),
    case(DType::Q4_0, 32, 18, &[0]),
    case(DType::Q4_1, 32, 20, &[0, 2]),
    case(DType::Q5_0, 32, 22, &[0]),
    case(DType::Q5_1, 32, 24, &[0, 2]),
    case(DType::Q4K, 256, 144, &[0, 2]),
    case(DType::Q5K, 256, 176, &[0, 2]),
    case(DType::Q6K, 256, 210, &[208]),
];

/// How the f16 scales are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scales {
    /// Around the size real files have.
    Ordinary,
    /// Zero, smallest subnormal, other subnormals, largest, both signs.
    Extreme,
    /// Infinite and NaN among ordinary ones.
    NonFinite,
}

const EXTREME_HALVES: [u16; 8] = [
    0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x7BFF, 0xFBFF,
];
const NON_FINITE_HALVES: [u16; 4] = [0x7C00, 0xFC00, 0x7E00, 0x2C00];

struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }

    fn half(&mut self, scales: Scales) -> u16 {
        match scales {
            // Exponents 2^-9 … 2^-2, either sign.
            Scales::Ordinary => {
                (self.next() & 0x83FF) as u16 | ((6 + self.next() % 8) << 10) as u16
            }
            Scales::Extreme => EXTREME_HALVES[self.next() as usize % EXTREME_HALVES.len()],
            Scales::NonFinite => NON_FINITE_HALVES[self.next() as usize % NON_FINITE_HALVES.len()],
        }
    }
}

impl Case {
    /// Raw bytes of a matrix; every byte pattern of quants occurs, ±128 and all-ones included.
    fn raw(&self, n: usize, k: usize, scales: Scales, seed: u64) -> Vec<u8> {
        let mut random = Random(seed);
        let mut bytes = Vec::new();
        for block in 0..n * k / self.block_elements {
            let mut raw: Vec<u8> = match block % 7 {
                5 => vec![0x80; self.block_bytes],
                6 => vec![0xFF; self.block_bytes],
                _ => (0..self.block_bytes).map(|_| random.next() as u8).collect(),
            };
            for &at in self.halves {
                raw[at..at + 2].copy_from_slice(&random.half(scales).to_le_bytes());
            }
            bytes.extend(raw);
        }
        bytes
    }

    /// Some of the shapes, rounded up to whole blocks.
    fn shapes(&self) -> Vec<(usize, usize)> {
        let mut shapes: Vec<_> = [
            (1, 32),
            (15, 64),
            (16, 256),
            (17, 288),
            (48, 576),
            (33, 640),
            (16, 1536),
            (35, 2048),
            (3, 2336),
        ]
        .into_iter()
        .map(|(n, k): (usize, usize)| (n, k.next_multiple_of(self.block_elements)))
        .collect();
        shapes.dedup();
        shapes
    }
}

fn inputs(count: usize, seed: u64) -> Vec<f32> {
    let mut random = Random(seed);
    (0..count)
        .map(|_| {
            (random.next() as f32 / (1_u32 << 30) as f32 - 1.0)
                * ((random.next() % 4) as f32).exp2()
        })
        .collect()
}

fn compute(isa: Isa, num_threads: usize) -> Compute {
    Compute::new(
        isa,
        ThreadPool::new(NonZeroUsize::new(num_threads).unwrap()),
    )
}

fn run(
    cx: &Compute,
    w: &PackedMatrix,
    x: &[f32],
    profile: ActivationProfile,
    bias: Option<&[f32]>,
) -> Vec<f32> {
    let x = Activations::new(cx, x, w.k(), profile);
    let mut out = vec![f32::NAN; x.num_tokens() * w.n()];
    matmul(cx, w, &x, bias, &mut out);
    out
}

/// Bits with one NaN pattern, so that payloads and signs of NaN do not count.
fn bits(values: &[f32]) -> Vec<u32> {
    values
        .iter()
        .map(|v| if v.is_nan() { 0x7FC0_0000 } else { v.to_bits() })
        .collect()
}

#[track_caller]
fn check_equal(what: &str, n: usize, actual: &[f32], expected: &[f32]) {
    let (actual, expected) = (bits(actual), bits(expected));
    assert_eq!(actual.len(), expected.len(), "{what}: length");
    for (i, (a, e)) in actual.iter().zip(&expected).enumerate() {
        assert_eq!(
            a,
            e,
            "{what}: token {} row {}: {a:#010x} is not {e:#010x}",
            i / n,
            i % n
        );
    }
}

/// Every ISA gives the scalar path's bits, and every row those it has alone.
fn check_bit_equal(case: &Case, n: usize, k: usize, num_tokens: usize, scales: Scales, x: &[f32]) {
    let raw = case.raw(n, k, scales, (n * 31 + k) as u64);
    let w = PackedMatrix::pack(case.dtype, n, k, &raw).unwrap();
    let bias = inputs(n, 5);
    for profile in [ActivationProfile::A16, ActivationProfile::A8] {
        let bias = num_tokens.is_multiple_of(2).then_some(&bias[..]);
        let expected = run(&compute(Isa::SCALAR, 1), &w, x, profile, bias);
        for isa in Isa::available() {
            let what = format!(
                "{:?} {profile:?} {scales:?} n {n} k {k} T {num_tokens} {}",
                case.dtype,
                isa.name()
            );
            let cx = compute(isa, 1 + num_tokens % 3);
            let batch = run(&cx, &w, x, profile, bias);
            check_equal(&what, n, &batch, &expected);
            for (token, row) in x.chunks_exact(k).enumerate() {
                let alone = run(&cx, &w, row, profile, bias);
                check_equal(
                    &format!("{what} token {token} alone"),
                    n,
                    &alone,
                    &batch[token * n..][..n],
                );
            }
        }
    }
}

#[test]
fn every_isa_and_batch_gives_the_same_bits() {
    for case in &CASES {
        for (i, (n, k)) in case.shapes().into_iter().enumerate() {
            let num_tokens = 1 + (i * 2 + case.block_bytes) % 9;
            check_bit_equal(
                case,
                n,
                k,
                num_tokens,
                Scales::Ordinary,
                &inputs(num_tokens * k, 11),
            );
        }
    }
}

#[test]
fn every_batch_size_gives_the_same_bits() {
    for case in &CASES {
        for num_tokens in 1..=9 {
            check_bit_equal(
                case,
                48,
                512,
                num_tokens,
                Scales::Ordinary,
                &inputs(num_tokens * 512, 13),
            );
        }
    }
}

#[test]
fn extreme_scales_and_inputs() {
    let k = 768;
    let mut x = inputs(6 * k, 17);
    x[..k].iter_mut().for_each(|v| *v *= 1e-38);
    x[k..2 * k].iter_mut().for_each(|v| *v *= 1e-29);
    x[2 * k..3 * k].iter_mut().for_each(|v| *v *= 1e30);
    x[3 * k + 5] = f32::NAN;
    x[4 * k + 300] = f32::INFINITY;
    x[5 * k..]
        .iter_mut()
        .enumerate()
        .for_each(|(i, v)| *v = if i % 3 == 0 { -1.0 } else { 1.0 });
    for case in &CASES {
        for scales in [Scales::Extreme, Scales::NonFinite] {
            check_bit_equal(case, 19, k, 6, scales, &x);
        }
    }
}

/// NaN and infinity reach every output of their row and no other row.
#[test]
fn a_non_finite_input_reaches_its_row_only() {
    let (n, k) = (17, 512);
    for case in &CASES {
        let w = PackedMatrix::pack(case.dtype, n, k, &case.raw(n, k, Scales::Ordinary, 3)).unwrap();
        let mut x = inputs(3 * k, 4);
        x[k + 400] = f32::NEG_INFINITY;
        for isa in Isa::available() {
            for profile in [ActivationProfile::A16, ActivationProfile::A8] {
                let out = run(&compute(isa, 1), &w, &x, profile, None);
                for (i, v) in out.iter().enumerate() {
                    let poisoned = i / n == 1;
                    assert_eq!(
                        v.is_nan(),
                        poisoned,
                        "{:?} {} output {i}",
                        case.dtype,
                        isa.name()
                    );
                }
            }
        }
    }
}

/// A 40-token batch spans several tiles and tasks; threads and chunking leave the bits alone.
#[test]
fn threads_do_not_move_bits() {
    let (n, k, num_tokens) = (83, 2560, 40);
    let case = &CASES[2];
    let w = PackedMatrix::pack(case.dtype, n, k, &case.raw(n, k, Scales::Ordinary, 8)).unwrap();
    let x = inputs(num_tokens * k, 9);
    for isa in Isa::available()
        .into_iter()
        .filter(|&isa| isa != Isa::SCALAR)
    {
        let one = run(&compute(isa, 1), &w, &x, ActivationProfile::A16, None);
        for num_threads in [2, 3, 7] {
            let many = run(
                &compute(isa, num_threads),
                &w,
                &x,
                ActivationProfile::A16,
                None,
            );
            check_equal(
                &format!("{} {num_threads} threads", isa.name()),
                n,
                &many,
                &one,
            );
        }
        let last = run(
            &compute(Isa::SCALAR, 1),
            &w,
            &x[(num_tokens - 1) * k..],
            ActivationProfile::A16,
            None,
        );
        check_equal(isa.name(), n, &one[(num_tokens - 1) * n..], &last);
    }
}

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

/// The outputs are close to the plain product of the dequantised weights and the inputs.
#[test]
fn outputs_are_near_the_real_product() {
    let (n, k) = (21, 768);
    for case in &CASES {
        let w =
            PackedMatrix::pack(case.dtype, n, k, &case.raw(n, k, Scales::Ordinary, 21)).unwrap();
        let x = inputs(k, 22);
        for (profile, relative) in [
            (ActivationProfile::A16, 2e-5),
            (ActivationProfile::A8, 6e-3),
        ] {
            let out = run(&compute(Isa::detect(), 1), &w, &x, profile, None);
            let mut row = vec![0.0; k];
            for (index, &y) in out.iter().enumerate() {
                w.row_into(index, &mut row);
                let terms = || {
                    row.iter()
                        .zip(&x)
                        .map(|(w, x)| f64::from(*w) * f64::from(*x))
                };
                let (exact, size): (f64, f64) = (terms().sum(), terms().map(f64::abs).sum());
                assert!(
                    (f64::from(y) - exact).abs() <= relative * size,
                    "{:?} {profile:?} row {index}: {y} is not {exact}",
                    case.dtype
                );
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
        pack(DType::Q2K, 1, 256, 84),
        PackError::UnsupportedType { dtype: DType::Q2K }
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

/// Float matrices share the door: exact rows, a checksum, a product near the real one.
#[test]
fn float_matrices_share_the_call() {
    let (n, k, num_tokens) = (19, 301, 3);
    let x = inputs(num_tokens * k, 6);
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let mut random = Random(12);
        let bytes: Vec<u8> = (0..n * k)
            .flat_map(|_| match dtype {
                DType::F32 => (random.next() as f32).recip().to_le_bytes().to_vec(),
                DType::F16 => random.half(Scales::Ordinary).to_le_bytes().to_vec(),
                _ => ((random.next() & 0x83FF | 0x3C00) as u16)
                    .to_le_bytes()
                    .to_vec(),
            })
            .collect();
        let w = PackedMatrix::pack(dtype, n, k, &bytes).unwrap();
        let source = PackedMatrix::source_checksum(dtype, n, k, &bytes).unwrap();
        assert_eq!(w.checksum(), source, "{dtype}");
        let expected = run(
            &compute(Isa::SCALAR, 1),
            &w,
            &x,
            ActivationProfile::A16,
            None,
        );
        for isa in Isa::available() {
            let out = run(&compute(isa, 2), &w, &x, ActivationProfile::A16, None);
            check_equal(&format!("{dtype} {}", isa.name()), n, &out, &expected);
        }
        let mut values = vec![0.0; n * k];
        assay_formats::quant::dequantize(dtype, &bytes, &mut values).unwrap();
        let mut row = vec![0.0; k];
        for (index, values) in values.chunks_exact(k).enumerate() {
            w.row_into(index, &mut row);
            check_equal(&format!("{dtype} row {index}"), k, &row, values);
            let terms = || {
                values
                    .iter()
                    .zip(&x)
                    .map(|(w, x)| f64::from(*w) * f64::from(*x))
            };
            let (exact, size): (f64, f64) = (terms().sum(), terms().map(f64::abs).sum());
            let error = (f64::from(expected[index]) - exact).abs();
            assert!(
                error <= 2e-5 * size,
                "{dtype} row {index}: {} is not {exact}",
                expected[index]
            );
        }
    }
}

#[test]
fn an_empty_batch_is_fine() {
    let case = &CASES[0];
    let w = PackedMatrix::pack(case.dtype, 5, 64, &case.raw(5, 64, Scales::Ordinary, 1)).unwrap();
    for isa in Isa::available() {
        assert!(run(&compute(isa, 2), &w, &[], ActivationProfile::A16, None).is_empty());
    }
}
