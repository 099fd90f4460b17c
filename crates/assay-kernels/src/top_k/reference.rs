//! The scan in plain Rust: sixteen compares folded into one branch.

use super::{NanSeen, candidates::Candidates};

/// Values behind one branch.
const BLOCK: usize = 16;

pub(super) fn scan(row: &[f32], candidates: &mut Candidates) -> Result<(), NanSeen> {
    for (block, values) in row.chunks(BLOCK).enumerate() {
        let threshold = candidates.threshold();
        // NaN counts as above: it must not slip through.
        let above = values.iter().fold(false, |above, value| {
            above | (*value > threshold) | value.is_nan()
        });
        if above {
            candidates.offer(block * BLOCK, values)?;
        }
    }
    Ok(())
}
