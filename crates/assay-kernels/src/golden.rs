//! Golden hashes: seeded inputs, the op, a hash of the output's bits, committed with the contract.
//!
//! The scalar reference made the hashes (`tests/golden.rs` has the recorder). Every instruction set must
//! reproduce them, in tests and at each start through [`self_test`]. An op adds cases by a constant in its
//! folder and one line in [`CASES`].

use crate::golden_ops::GoldenOps;
use crate::numerics::canonical_bits;
use crate::{Compute, float_mode};

/// The committed hashes: a line per case, its name and the hash in hex.
const RECORDED: &str = include_str!("../golden/n1.txt");

/// One op on one seeded input.
#[derive(Clone, Copy, Debug)]
pub struct GoldenCase {
    /// Op and what is special, for instance `rms_norm/subnormal`; unique.
    pub name: &'static str,
    /// Makes the input, runs the op through its public entry, and hashes the output; `None` where the machine lacks
    /// the op.
    pub run: fn(&dyn GoldenOps) -> Option<blake3::Hash>,
}

/// Every op's cases. All together stay well below the 50 ms of a start.
pub const CASES: &[&[GoldenCase]] = &[
    crate::attention::golden::CASES,
    crate::embed::golden::CASES,
    crate::exp64::golden::CASES,
    crate::float_matmul::golden::CASES,
    crate::gelu_mul::golden::CASES,
    crate::log_softmax::golden::CASES,
    crate::matmul::golden::CASES,
    crate::quantize::golden::CASES,
    crate::residual::golden::CASES,
    crate::rms_norm::golden::CASES,
    crate::rope::golden::CASES,
    crate::silu_mul::golden::CASES,
    crate::softcap::golden::CASES,
    crate::top_k::golden::CASES,
];

/// Hash of output bits, little-endian, NaN canonicalised.
pub fn hash_f32(values: &[f32]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for &value in values {
        hasher.update(&canonical_bits(value).to_le_bytes());
    }
    hasher.finalize()
}

/// Why the kernels of this machine must not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelfTestError {
    /// The thread flushes subnormals to zero although the mode was reset.
    #[error(
        "this CPU or thread flushes subnormal numbers to zero; results would differ from other machines"
    )]
    SubnormalsFlushed,
    /// A case has no committed hash: the build is inconsistent.
    #[error("self-test case `{case}` has no recorded hash")]
    NotRecorded {
        /// The case.
        case: &'static str,
    },
    /// The output's bits differ from the contract's.
    #[error(
        "self-test case `{case}` on {isa}: output hash {found} differs from the recorded {expected}"
    )]
    Mismatch {
        /// The case.
        case: &'static str,
        /// The instruction set or device it ran on.
        isa: &'static str,
        /// The committed hash, hex.
        expected: &'static str,
        /// The hash of this run, hex.
        found: String,
    },
}

/// The committed hash of a case, hex.
pub fn recorded(case: &str) -> Option<&'static str> {
    RECORDED
        .lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(name, _)| *name == case)
        .map(|(_, hash)| hash)
}

/// Runs every golden case on the context's own path and compares with the committed hashes.
///
/// # Errors
/// The first case that differs, or a float mode that cannot be right.
pub fn self_test(cx: &Compute) -> Result<(), SelfTestError> {
    float_mode::ensure_default();
    if !float_mode::keeps_subnormals() {
        return Err(SelfTestError::SubnormalsFlushed);
    }
    check_cases(cx, cx.isa.name())
}

/// Runs every golden case that `ops` has and compares with the committed hashes; `machine` names it in the error.
///
/// # Errors
/// The first case that differs.
pub fn check_cases(ops: &dyn GoldenOps, machine: &'static str) -> Result<(), SelfTestError> {
    for case in CASES.iter().copied().flatten() {
        let expected = recorded(case.name).ok_or(SelfTestError::NotRecorded { case: case.name })?;
        let Some(found) = (case.run)(ops) else {
            continue;
        };
        if found.to_hex().as_str() != expected {
            return Err(SelfTestError::Mismatch {
                case: case.name,
                isa: machine,
                expected,
                found: found.to_hex().to_string(),
            });
        }
    }
    Ok(())
}
