//! RMSNorm, out of place and where it stands.

use crate::{Values, contexts, reference};
use assay_kernels::rms_norm::{rms_norm, rms_norm_in_place};
use assay_kernels::testing::check_bits_equal;

fn check_rms_norm(num_rows: usize, n: usize, offset: usize) {
    for values in Values::ALL {
        let x = values.make(1, offset + num_rows * n);
        let x = &x[offset..];
        let weight = Values::Spread.make(2, n);
        let mut expected = vec![0.0; x.len()];
        rms_norm(&reference(), x, &weight, 1e-5, &mut expected);
        for (name, cx) in contexts() {
            let shape = [num_rows, n];
            let mut got = vec![f32::NAN; x.len()];
            rms_norm(&cx, x, &weight, 1e-5, &mut got);
            check_bits_equal(
                &format!("rms_norm {values:?} {name}"),
                &shape,
                &expected,
                &got,
            );
            let mut got = x.to_vec();
            rms_norm_in_place(&cx, &mut got, &weight, 1e-5);
            check_bits_equal(
                &format!("rms_norm_in_place {values:?} {name}"),
                &shape,
                &expected,
                &got,
            );
        }
    }
}

#[test]
fn shapes() {
    for n in [
        1, 2, 7, 15, 16, 17, 31, 32, 33, 47, 64, 576, 1000, 1023, 1024, 1025, 1056, 2048, 3001,
    ] {
        check_rms_norm(3, n, 0);
    }
    for (num_rows, n) in [(0, 64), (0, 0), (1, 576), (200, 64), (33, 576)] {
        check_rms_norm(num_rows, n, 0);
    }
}

#[test]
fn unaligned_starts() {
    for offset in 1..5 {
        check_rms_norm(2, 100, offset);
    }
}

/// The formula itself, in f64, so that a mistake shared by all paths shows.
#[test]
fn rows_have_the_weighted_unit_mean_square() {
    let (n, eps) = (1500, 0.01f32);
    let x: Vec<f32> = Values::Spread.make(12, n).iter().map(|x| x * 0.1).collect();
    let weight = Values::Spread.make(13, n);
    let mean_square = x.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / n as f64;
    let mut got = vec![0.0; n];
    rms_norm(&reference(), &x, &weight, eps, &mut got);
    for (i, &got) in got.iter().enumerate() {
        let want = f64::from(x[i]) * f64::from(weight[i]) / (mean_square + f64::from(eps)).sqrt();
        // Four roundings after the sum, whose own error is far below one unit for 47 terms a lane.
        let bound = want.abs() * 8.0 * f64::from(f32::EPSILON) + f64::from(f32::MIN_POSITIVE);
        assert!(
            (f64::from(got) - want).abs() <= bound,
            "element {i}: {got:e}, expected {want:e}"
        );
    }
}
