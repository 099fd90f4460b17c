//! Residual addition and scaling.

use crate::{Values, contexts, reference};
use assay_kernels::residual::{add, scale};
use assay_kernels::testing::check_bits_equal;

fn check_residual(len: usize) {
    for values in Values::ALL {
        let (start, x) = (values.make(3, len), values.make(4, len));
        let sum: Vec<f32> = start.iter().zip(&x).map(|(a, b)| a + b).collect();
        let scaled: Vec<f32> = start.iter().map(|a| a * 25.298_222).collect();
        for (name, cx) in contexts()
            .into_iter()
            .chain([("reference".to_owned(), reference())])
        {
            let mut got = start.clone();
            add(&cx, &mut got, &x);
            check_bits_equal(
                &format!("residual add {values:?} {name}"),
                &[len],
                &sum,
                &got,
            );
            let mut got = start.clone();
            scale(&cx, &mut got, 25.298_222);
            check_bits_equal(&format!("scale {values:?} {name}"), &[len], &scaled, &got);
        }
    }
}

#[test]
fn shapes() {
    for len in [0, 1, 7, 8, 9, 31, 576, 16_384, 16_385, 40_000] {
        check_residual(len);
    }
}
