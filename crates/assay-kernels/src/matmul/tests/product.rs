//! Outputs are near the real product of the exact weights and the inputs.

use super::*;

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

/// Float matrices share the door: exact rows, a product near the real one.
#[test]
fn float_matrices_share_the_call() {
    let (n, k, num_tokens) = (19, 301, 3);
    let x = inputs(num_tokens * k, 6);
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let mut random = SeededGenerator::new(12);
        let bytes: Vec<u8> = (0..n * k)
            .flat_map(|_| match dtype {
                DType::F32 => ((random.next_u32() | 1) as f32)
                    .recip()
                    .to_le_bytes()
                    .to_vec(),
                DType::F16 => half(&mut random, Scales::Ordinary).to_le_bytes().to_vec(),
                _ => ((random.next_u32() & 0x83FF | 0x3C00) as u16)
                    .to_le_bytes()
                    .to_vec(),
            })
            .collect();
        let w = PackedMatrix::pack(dtype, n, k, &bytes).unwrap();
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
