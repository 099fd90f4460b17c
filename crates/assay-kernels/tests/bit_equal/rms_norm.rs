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
