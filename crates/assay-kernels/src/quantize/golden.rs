//! Golden cases of the quantiser: integers and scales of rows of every size, zero and non-finite
//! blocks and a short last block among them.

use super::ActivationProfile;
use crate::golden::{GoldenCase, hash_f32};
use crate::golden_ops::GoldenOps;
use crate::testing::SeededGenerator;

pub(crate) const CASES: &[GoldenCase] = &[
    GoldenCase {
        name: "quantize/a16",
        run: |ops| rows(ops, ActivationProfile::A16),
    },
    GoldenCase {
        name: "quantize/a8",
        run: |ops| rows(ops, ActivationProfile::A8),
    },
];

fn rows(ops: &dyn GoldenOps, profile: ActivationProfile) -> Option<blake3::Hash> {
    let (num_tokens, k) = (6, 608);
    let mut x = SeededGenerator::new(0x0601).spread(num_tokens * k, 100);
    x[k + 40..k + 300].fill(0.0);
    x[2 * k + 7] = f32::NAN;
    x[3 * k + 600] = f32::NEG_INFINITY;
    // Integers of one row fall on ties.
    for (i, value) in x[4 * k..5 * k].iter_mut().enumerate() {
        *value = if i % 32 == 0 {
            profile.limit()
        } else {
            (i % 64) as f32 / 2.0 - 16.0
        };
    }
    let mut values = Vec::new();
    for (integers, scales) in ops.quantize(&x, k, profile)? {
        values.extend(integers.iter().map(|&a| a as f32));
        values.extend(scales);
    }
    Some(hash_f32(&values))
}
