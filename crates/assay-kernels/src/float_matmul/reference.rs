//! The meaning of the float product: scalar, one output at a time.

use super::Product;
use super::matrix::{FloatMatrix, GROUP_ROWS};
use crate::numerics::MATMUL_BLOCK;
use std::ops::Range;

pub(super) fn multiply(matrix: &FloatMatrix, product: &Product<'_>, groups: Range<usize>) {
    for token in 0..product.num_tokens {
        let x = product.x_row(token);
        for group in groups.clone() {
            let mut sums = [0.0; GROUP_ROWS];
            for row in product.rows_of(group) {
                sums[row % GROUP_ROWS] = dot(x, |k| matrix.get(row, k));
            }
            product.finish(token, group, &sums);
        }
    }
}

fn dot(x: &[f32], weight: impl Fn(usize) -> f32) -> f32 {
    let mut y = 0.0;
    for (block, x) in x.chunks(MATMUL_BLOCK).enumerate() {
        let mut acc = 0.0f32;
        for (i, &x) in x.iter().enumerate() {
            acc = weight(block * MATMUL_BLOCK + i).mul_add(x, acc);
        }
        y += acc;
    }
    y
}
