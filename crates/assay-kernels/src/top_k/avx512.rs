//! The scan on AVX-512: 64 values behind one branch.

use super::{NanSeen, candidates::Candidates};
use crate::x86::avx512::load;
use std::arch::x86_64::*;

/// Values behind one branch.
const BLOCK: usize = 64;

#[target_feature(enable = "avx512f")]
pub(super) fn scan(row: &[f32], candidates: &mut Candidates) -> Result<(), NanSeen> {
    let (blocks, tail) = row.as_chunks::<BLOCK>();
    let mut threshold = candidates.threshold();
    for (block, values) in blocks.iter().enumerate() {
        let bound = _mm512_set1_ps(threshold);
        let mut above = 0u64;
        for (i, values) in values.as_chunks::<16>().0.iter().enumerate() {
            // "Not below or equal" is true for NaN too.
            let mask = _mm512_cmp_ps_mask::<_CMP_NLE_UQ>(load(values), bound);
            above |= u64::from(mask) << (16 * i);
        }
        if above != 0 {
            candidates.offer_set(block * BLOCK, values, above)?;
            threshold = candidates.threshold();
        }
    }
    candidates.offer(row.len() - tail.len(), tail)
}
