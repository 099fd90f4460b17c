//! The meaning of the rotation: scalar, one pair at a time.

use super::RopeStyle;

pub(super) fn rotate(style: RopeStyle, x: &mut [f32], cos: &[f32], sin: &[f32]) {
    match style {
        RopeStyle::Interleaved => interleaved(x, cos, sin),
        RopeStyle::HalfSplit => {
            let (x0, x1) = x.split_at_mut(x.len() / 2);
            half_split(x0, x1, cos, sin);
        }
    }
}

/// Pairs `(2i, 2i + 1)`; also the tail of the wide paths.
#[inline(always)]
pub(super) fn interleaved(x: &mut [f32], cos: &[f32], sin: &[f32]) {
    for ((pair, &c), &s) in x.as_chunks_mut::<2>().0.iter_mut().zip(cos).zip(sin) {
        *pair = turn(*pair, c, s);
    }
}

/// Pairs `(x0[i], x1[i])`; also the tail of the wide paths.
#[inline(always)]
pub(super) fn half_split(x0: &mut [f32], x1: &mut [f32], cos: &[f32], sin: &[f32]) {
    for (((x0, x1), &c), &s) in x0.iter_mut().zip(x1).zip(cos).zip(sin) {
        [*x0, *x1] = turn([*x0, *x1], c, s);
    }
}

#[inline(always)]
fn turn([x0, x1]: [f32; 2], c: f32, s: f32) -> [f32; 2] {
    [x0.mul_add(c, -(x1 * s)), x1.mul_add(c, x0 * s)]
}
