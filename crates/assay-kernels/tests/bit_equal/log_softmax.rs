//! Log-sum-exp of a row of logits.

use crate::{contexts, reference};
use assay_kernels::log_softmax::{LogSumExp, NonFiniteRow, log_sum_exp};
use assay_kernels::testing::SeededGenerator;

fn logits(seed: u64, len: usize) -> Vec<f32> {
    let mut generator = SeededGenerator::new(seed);
    (0..len).map(|_| generator.next_unit() * 30.0).collect()
}

fn check_log_sum_exp(row: &[f32]) -> Result<LogSumExp, NonFiniteRow> {
    let bits = |result: Result<LogSumExp, NonFiniteRow>| {
        result.map(|r| (r.max.to_bits(), r.ln_z.to_bits()))
    };
    let expected = log_sum_exp(&reference(), row);
    for (name, cx) in contexts() {
        let got = log_sum_exp(&cx, row);
        assert_eq!(
            bits(expected),
            bits(got),
            "row of {}, {name}: {expected:?}, {got:?}",
            row.len()
        );
    }
    expected
}

#[test]
fn shapes() {
    for len in [
        1, 2, 7, 31, 32, 33, 63, 64, 65, 1_000, 1_023, 1_024, 1_025, 2_050, 16_384, 16_385, 49_152,
    ] {
        let row = logits(len as u64, len);
        let result = check_log_sum_exp(&row).expect("finite logits");
        let sum: f64 = row.iter().map(|&l| result.logprob(l).exp()).sum();
        assert!(
            (sum - 1.0).abs() < 1e-12,
            "row of {len}: probabilities sum to {sum}"
        );
    }
}

#[test]
fn order_of_the_sum_is_the_contracts() {
    // Against the definition spelt out: lanes, tree, chunks.
    let row = logits(3, 2_500);
    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut z = 0.0;
    for chunk in row.chunks(1_024) {
        let mut lanes = [0.0; 32];
        for (i, &logit) in chunk.iter().enumerate() {
            lanes[i % 32] += assay_kernels::exp64::exp64(f64::from(logit) - f64::from(max));
        }
        for width in [16, 8, 4, 2, 1] {
            for l in 0..width {
                lanes[l] += lanes[l + width];
            }
        }
        z += lanes[0];
    }
    let result = check_log_sum_exp(&row).expect("finite logits");
    assert_eq!(
        result.ln_z.to_bits(),
        assay_kernels::exp64::ln64(z).to_bits()
    );
}

#[test]
fn a_row_without_a_distribution_is_an_error_wherever_the_fault_sits() {
    for len in [1, 40, 5_000] {
        for at in [0, len / 2, len - 1] {
            for bad in [f32::NAN, f32::INFINITY, -f32::NAN] {
                let mut row = logits(8, len);
                row[at] = bad;
                assert_eq!(
                    check_log_sum_exp(&row),
                    Err(NonFiniteRow),
                    "{bad} at {at} of {len}"
                );
            }
        }
    }
    assert_eq!(check_log_sum_exp(&[]), Err(NonFiniteRow));
    assert_eq!(
        check_log_sum_exp(&[f32::NEG_INFINITY; 100]),
        Err(NonFiniteRow)
    );
}

#[test]
fn minus_infinity_has_no_probability_and_zeros_have_one_sign() {
    let mut row = vec![f32::NEG_INFINITY; 200];
    row[70] = -0.0;
    row[71] = 0.0;
    let result = check_log_sum_exp(&row).expect("two finite logits");
    assert_eq!(result.max.to_bits(), 0);
    assert!((result.logprob(0.0) + std::f64::consts::LN_2).abs() < 1e-15);
    assert_eq!(result.logprob(f32::NEG_INFINITY), f64::NEG_INFINITY);
}
