//! Golden cases of log-sum-exp: a row of many chunks with a tail, and a peaked one.

use super::LogSumExp;
use crate::golden::GoldenCase;
use crate::golden_ops::GoldenOps;
use crate::testing::SeededGenerator;

pub(crate) const CASES: &[GoldenCase] = &[
    GoldenCase {
        name: "log_softmax/row",
        run: |ops| hash_row(ops, 0x0A01, 20_011, 12.0),
    },
    GoldenCase {
        name: "log_softmax/peaked",
        run: |ops| hash_row(ops, 0x0A02, 3_001, 900.0),
    },
];

/// Hash of the maximum, the normaliser and some log-probabilities; a row without them hashes as nothing.
fn hash_row(ops: &dyn GoldenOps, seed: u64, len: usize, spread: f32) -> Option<blake3::Hash> {
    let row: Vec<f32> = SeededGenerator::new(seed)
        .units(len)
        .iter()
        .map(|x| x * spread)
        .collect();
    let mut hasher = blake3::Hasher::new();
    if let Ok(LogSumExp { max, ln_z }) = ops.log_sum_exp(&row) {
        hasher.update(&max.to_bits().to_le_bytes());
        hasher.update(&ln_z.to_bits().to_le_bytes());
        for &logit in row.iter().step_by(97) {
            let logprob = LogSumExp { max, ln_z }.logprob(logit);
            hasher.update(&logprob.to_bits().to_le_bytes());
        }
    }
    Some(hasher.finalize())
}
