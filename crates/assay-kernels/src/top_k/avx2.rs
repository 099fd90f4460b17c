//! The scan on AVX2: 32 values behind one branch.

use super::{NanSeen, candidates::Candidates};
use crate::x86::avx2::load;
use std::arch::x86_64::*;

/// Values behind one branch.
const BLOCK: usize = 32;

#[target_feature(enable = "avx2")]
pub(super) fn scan(row: &[f32], candidates: &mut Candidates) -> Result<(), NanSeen> {
    let (blocks, tail) = row.as_chunks::<BLOCK>();
    let mut threshold = candidates.threshold();
    for (block, values) in blocks.iter().enumerate() {
        let bound = _mm256_set1_ps(threshold);
        let mut above = _mm256_setzero_ps();
        for values in values.as_chunks::<8>().0 {
            // "Not below or equal" is true for NaN too.
            above = _mm256_or_ps(above, _mm256_cmp_ps::<_CMP_NLE_UQ>(load(values), bound));
        }
        if _mm256_movemask_ps(above) != 0 {
            candidates.offer(block * BLOCK, values)?;
            threshold = candidates.threshold();
        }
    }
    candidates.offer(row.len() - tail.len(), tail)
}
