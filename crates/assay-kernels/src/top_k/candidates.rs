//! Values that may be among the k best, and the threshold that later ones must exceed.

use super::NanSeen;
use std::cmp::Ordering;

/// Room beyond 2k, so that small k does not compact at every value.
const EXTRA: usize = 64;

/// A buffer of candidates in ascending index; when full it is cut to the k best.
pub(super) struct Candidates {
    k: usize,
    capacity: usize,
    found: Vec<(u32, f32)>,
    threshold: f32,
}

impl Candidates {
    pub(super) fn new(k: usize) -> Self {
        let capacity = 2 * k + EXTRA;
        // With k = 0 nothing exceeds +inf; the scan still looks for NaN.
        let threshold = if k == 0 {
            f32::INFINITY
        } else {
            f32::NEG_INFINITY
        };
        Self {
            k,
            capacity,
            found: Vec::with_capacity(capacity),
            threshold,
        }
    }

    /// Only values above it can matter: k values at or above it, with smaller indices, are already held
    /// (or it is still −inf, and −inf values are added at the end if they are needed).
    #[inline(always)]
    pub(super) fn threshold(&self) -> f32 {
        self.threshold
    }

    /// Offers a block of values, the first of which has index `start`.
    #[cold]
    #[inline(never)]
    pub(super) fn offer(&mut self, start: usize, values: &[f32]) -> Result<(), NanSeen> {
        for (i, &value) in values.iter().enumerate() {
            self.offer_one(start + i, value)?;
        }
        self.end_block();
        Ok(())
    }

    /// Offers those values of a block of 64 whose bit is set in `above`.
    #[cfg(target_arch = "x86_64")]
    #[cold]
    #[inline(never)]
    pub(super) fn offer_set(
        &mut self,
        start: usize,
        values: &[f32; 64],
        mut above: u64,
    ) -> Result<(), NanSeen> {
        while above != 0 {
            let i = above.trailing_zeros() as usize;
            self.offer_one(start + i, values[i])?;
            above &= above - 1;
        }
        self.end_block();
        Ok(())
    }

    #[inline(always)]
    fn offer_one(&mut self, index: usize, value: f32) -> Result<(), NanSeen> {
        if value.is_nan() {
            return Err(NanSeen);
        }
        if value > self.threshold {
            if self.found.len() == self.capacity {
                self.compact();
            }
            // The cut may have raised the threshold past this value.
            if value > self.threshold {
                self.found.push((index as u32, value));
            }
        }
        Ok(())
    }

    /// Once k are held, a threshold pays at once; later cuts wait until the buffer is full.
    #[inline(always)]
    fn end_block(&mut self) {
        if self.threshold == f32::NEG_INFINITY && self.found.len() >= self.k + EXTRA {
            self.compact();
        }
    }

    /// Keeps the k best and raises the threshold to the worst of them.
    fn compact(&mut self) {
        if self.k == 0 || self.found.len() < self.k {
            return;
        }
        self.found.select_nth_unstable_by(self.k - 1, best_first);
        self.found.truncate(self.k);
        self.threshold = self.found[self.k - 1].1;
    }

    /// The k best, best first. `row` supplies −inf values where it has fewer than k others.
    pub(super) fn into_best(mut self, row: &[f32]) -> Vec<(u32, f32)> {
        self.found.sort_unstable_by(best_first);
        self.found.truncate(self.k);
        let missing = self.k - self.found.len();
        let lowest = row
            .iter()
            .enumerate()
            .filter(|(_, value)| **value == f32::NEG_INFINITY);
        self.found.extend(
            lowest
                .take(missing)
                .map(|(index, &value)| (index as u32, value)),
        );
        self.found
    }
}

fn best_first(a: &(u32, f32), b: &(u32, f32)) -> Ordering {
    b.1.partial_cmp(&a.1)
        .expect("NaN never becomes a candidate")
        .then(a.0.cmp(&b.0))
}
