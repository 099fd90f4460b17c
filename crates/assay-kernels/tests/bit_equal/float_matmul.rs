//! Product with F32, F16 and BF16 matrices, against an independent loop in contract order.

use crate::{Values, contexts, reference};
use assay_kernels::float_matmul::{FloatMatrix, FloatType, float_matmul};
use assay_kernels::numerics::{bf16_to_f32, f16_to_f32};
use assay_kernels::testing::{SeededGenerator, check_bits_equal};

/// Row-major weights as the file's bytes and as values.
fn weights(float_type: FloatType, values: Values, len: usize) -> (Vec<u8>, Vec<f32>) {
    match float_type {
        FloatType::F32 => {
            let w = values.make(7, len);
            (w.iter().flat_map(|w| w.to_le_bytes()).collect(), w)
        }
        FloatType::F16 | FloatType::BF16 => {
            let mut generator = SeededGenerator::new(8);
            let mask = match values {
                // Small exponents only, then everything, NaN included.
                Values::Spread | Values::Subnormal => 0xBFFF,
                Values::Special => 0xFFFF,
            };
            let bits: Vec<u16> = (0..len)
                .map(|_| generator.next_u32() as u16 & mask)
                .collect();
            let value = if float_type == FloatType::F16 {
                f16_to_f32
            } else {
                bf16_to_f32
            };
            (
                bits.iter().flat_map(|w| w.to_le_bytes()).collect(),
                bits.iter().map(|&w| value(w)).collect(),
            )
        }
    }
}

/// One output by the words of the contract.
fn contract_dot(w: &[f32], x: &[f32]) -> f32 {
    let mut y = 0.0;
    for (w, x) in w.chunks(256).zip(x.chunks(256)) {
        let acc = w
            .iter()
            .zip(x)
            .fold(0.0, |acc: f32, (w, x)| x.mul_add(*w, acc));
        y += acc;
    }
    y
}

fn check_float_matmul(t: usize, n: usize, k: usize) {
    for float_type in [FloatType::F32, FloatType::F16, FloatType::BF16] {
        for values in Values::ALL {
            let (bytes, w) = weights(float_type, values, n * k);
            let matrix = FloatMatrix::from_le_bytes(float_type, n, k, &bytes).expect("sizes fit");
            let x = values.make(9, t * k);
            let bias = Values::Spread.make(10, n);
            for bias in [None, Some(bias.as_slice())] {
                let expected: Vec<f32> = (0..t * n)
                    .map(|i| {
                        let (token, row) = (i / n, i % n);
                        let y = contract_dot(&w[row * k..][..k], &x[token * k..][..k]);
                        bias.map_or(y, |bias| y + bias[row])
                    })
                    .collect();
                for (name, cx) in contexts()
                    .into_iter()
                    .chain([("reference".to_owned(), reference())])
                {
                    let mut got = vec![f32::NAN; t * n];
                    float_matmul(&cx, &matrix, &x, bias, &mut got);
                    let op = format!("float_matmul {float_type:?} K={k} {values:?} {name}");
                    check_bits_equal(&op, &[t, n], &expected, &got);
                }
            }
        }
    }
}

#[test]
fn shapes() {
    for (t, n, k) in [
        (0, 5, 7),
        (1, 0, 7),
        (2, 3, 0),
        (1, 1, 1),
        (1, 15, 255),
        (2, 16, 256),
        (3, 17, 257),
        (4, 64, 512),
        (5, 65, 513),
        (7, 130, 300),
        (1, 200, 700),
        (9, 96, 128),
    ] {
        check_float_matmul(t, n, k);
    }
}
