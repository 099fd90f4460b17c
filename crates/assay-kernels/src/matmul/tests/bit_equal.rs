//! Every ISA, batch size and thread count gives the scalar path's bits, for every format.

use super::*;

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
            let few = 1 + (i * 2 + case.block_bytes) % 9;
            for num_tokens in [few, few + 31] {
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
}

#[test]
fn every_batch_size_gives_the_same_bits() {
    for case in &CASES {
        for num_tokens in (1..=9).chain([31, 32, 33, 40, 41, 48]) {
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

/// Matrices that multiply different operands share one input, in one call or one after the other.
#[test]
fn formats_of_both_operands_share_the_input() {
    let (n, k, num_tokens) = (33, 512, 48);
    let packed: Vec<PackedMatrix> = [&CASES[1], &CASES[0], &CASES[7]]
        .map(|case| PackedMatrix::pack(case.dtype, n, k, &case.raw(n, k, Scales::Ordinary, 5)))
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap();
    let x = inputs(num_tokens * k, 8);
    let profile = ActivationProfile::A16;
    let expected: Vec<Vec<f32>> = packed
        .iter()
        .map(|w| run(&compute(Isa::SCALAR, 1), w, &x, profile, None))
        .collect();
    for isa in Isa::available() {
        let cx = compute(isa, 2);
        let shared = Activations::new(&cx, &x, k, profile);
        let mut outputs = vec![vec![f32::NAN; num_tokens * n]; packed.len()];
        let mut products: Vec<Product<'_>> = packed
            .iter()
            .zip(&mut outputs)
            .map(|(w, out)| Product { w, bias: None, out })
            .collect();
        matmul_all(&cx, &shared, &mut products);
        for (index, (w, out)) in packed.iter().zip(&mut outputs).enumerate() {
            let case = format!("{} matrix {index}", isa.name());
            check_equal(&case, n, out, &expected[index]);
            matmul(&cx, w, &shared, None, out);
            check_equal(&format!("{case} again"), n, out, &expected[index]);
        }
    }
}
