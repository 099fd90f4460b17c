//! Rotary embedding in both styles, whole and partial heads.

use crate::{Values, contexts, reference};
use assay_kernels::rope::{RopeParameters, RopeStyle, RopeTable, rope};
use assay_kernels::testing::check_bits_equal;

fn check_rope(num_tokens: usize, num_heads: usize, head_dim: usize, rotary_dims: usize) {
    let parameters = RopeParameters {
        rotary_dims,
        theta: 10_000.0,
        freq_factors: None,
        linear_scale: 1.0,
        num_positions: 512,
    };
    let table = RopeTable::new(&parameters).expect("in range");
    let positions: Vec<u32> = (0..num_tokens as u32).map(|t| (t * 37 + 5) % 512).collect();
    for style in [RopeStyle::Interleaved, RopeStyle::HalfSplit] {
        for values in Values::ALL {
            let x = values.make(5, num_tokens * num_heads * head_dim);
            let mut expected = x.clone();
            rope(
                &reference(),
                &table,
                style,
                &positions,
                &mut expected,
                num_heads,
                head_dim,
            );
            for (name, cx) in contexts() {
                let mut got = x.clone();
                rope(
                    &cx, &table, style, &positions, &mut got, num_heads, head_dim,
                );
                let op = format!("rope {style:?} {rotary_dims} dims {values:?} {name}");
                check_bits_equal(&op, &[num_tokens, num_heads, head_dim], &expected, &got);
            }
        }
    }
}

#[test]
fn shapes() {
    for head_dim in [
        2, 4, 6, 14, 16, 18, 30, 32, 34, 48, 64, 66, 80, 96, 128, 256,
    ] {
        check_rope(3, 2, head_dim, head_dim);
    }
    for (num_tokens, num_heads, head_dim, rotary_dims) in [
        (0, 3, 64, 64),
        (4, 0, 64, 64),
        (2, 3, 80, 20),
        (2, 1, 64, 0),
        (300, 9, 64, 64),
        (2, 2, 65, 64),
    ] {
        check_rope(num_tokens, num_heads, head_dim, rotary_dims);
    }
}

/// The formula itself, in f64, so that a mistake shared by all paths shows.
#[test]
fn a_pair_turns_by_its_angle() {
    let parameters = RopeParameters {
        rotary_dims: 4,
        theta: 100.0,
        freq_factors: None,
        linear_scale: 1.0,
        num_positions: 10,
    };
    let table = RopeTable::new(&parameters).expect("in range");
    for (style, pair) in [
        (RopeStyle::Interleaved, [2, 3]),
        (RopeStyle::HalfSplit, [1, 3]),
    ] {
        let mut x = [1.0, 2.0, 3.0, 4.0];
        let [a, b] = pair.map(|i| f64::from(x[i]));
        rope(&reference(), &table, style, &[7], &mut x, 1, 4);
        // Pair 1 of 2 turns by 100^(-1/2) = 0.1 a position.
        let (sin, cos) = 0.7f64.sin_cos();
        for (i, want) in pair.into_iter().zip([a * cos - b * sin, a * sin + b * cos]) {
            assert!(
                (f64::from(x[i]) - want).abs() < 1e-6,
                "{style:?} element {i}: {}, expected {want}",
                x[i]
            );
        }
    }
}
