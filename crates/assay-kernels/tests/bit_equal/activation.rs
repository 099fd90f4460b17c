//! SwiGLU, GeGLU and soft-cap.

use crate::{Values, contexts, reference};
use assay_kernels::Compute;
use assay_kernels::gelu_mul::gelu_mul;
use assay_kernels::silu_mul::silu_mul;
use assay_kernels::softcap::softcap;
use assay_kernels::testing::check_bits_equal;

type GateOp = fn(&Compute, &[f32], &[f32], &mut [f32]);

fn check_activations(len: usize) {
    for values in Values::ALL {
        for factor in [1.0, 40.0] {
            let gate: Vec<f32> = values.make(21, len).iter().map(|x| x * factor).collect();
            let up = values.make(22, len);
            for (op, run) in [("silu_mul", silu_mul as GateOp), ("gelu_mul", gelu_mul)] {
                let mut expected = vec![0.0; len];
                run(&reference(), &gate, &up, &mut expected);
                for (name, cx) in contexts() {
                    let mut got = vec![f32::NAN; len];
                    run(&cx, &gate, &up, &mut got);
                    check_bits_equal(&format!("{op} {values:?} {name}"), &[len], &expected, &got);
                }
            }
            let mut expected = gate.clone();
            softcap(&reference(), &mut expected, 30.0);
            for (name, cx) in contexts() {
                let mut got = gate.clone();
                softcap(&cx, &mut got, 30.0);
                check_bits_equal(
                    &format!("softcap {values:?} {name}"),
                    &[len],
                    &expected,
                    &got,
                );
            }
        }
    }
}

#[test]
fn shapes() {
    for len in [0, 1, 7, 8, 9, 15, 16, 17, 1_536, 8_191, 8_193, 20_000] {
        check_activations(len);
    }
}
