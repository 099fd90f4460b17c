//! The bare read: how fast all threads together read memory that no cache holds.

use std::hint::black_box;

use memmap2::MmapMut;

use super::best;
use crate::Compute;
use crate::isa::IsaKind;

/// Huge pages are this large on x86-64; small ones cost a third of the rate.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Bytes that a thread reads in one piece, as large as a weight matrix.
const TASK_BYTES: usize = 8 << 20;

/// A buffer much larger than the caches, to be read again and again.
#[derive(Debug)]
pub struct ReadProbe {
    map: MmapMut,
    /// First byte used: a huge-page boundary.
    start: usize,
    len: usize,
}

impl ReadProbe {
    /// Takes and writes `num_bytes`, a whole number of huge pages at least. For the memory's rate it must be several
    /// times the last cache.
    ///
    /// # Errors
    /// The system's, if it has no room.
    pub fn new(cx: &Compute, num_bytes: usize) -> std::io::Result<Self> {
        let len = num_bytes.max(1).next_multiple_of(HUGE_PAGE_BYTES);
        let mut map = MmapMut::map_anon(len + HUGE_PAGE_BYTES)?;
        #[cfg(target_os = "linux")]
        {
            // A hint: a kernel without huge pages refuses it and the small pages stay.
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        let start = map
            .as_ptr()
            .align_offset(HUGE_PAGE_BYTES)
            .min(HUGE_PAGE_BYTES);
        // Pages that nobody wrote are all one page of zeros, which a cache holds.
        let written = &mut map[start..start + len];
        cx.pool
            .for_each_chunk(written, TASK_BYTES, |_, bytes| bytes.fill(0x5A));
        Ok(Self { map, start, len })
    }

    /// Bytes a second over all threads of `cx`, the best of a few whole reads.
    pub fn bytes_per_second(&self, cx: &Compute) -> f64 {
        let bytes = &self.map[self.start..self.start + self.len];
        let seconds = best(|| {
            cx.pool.run(self.len.div_ceil(TASK_BYTES), &|task| {
                let begin = task * TASK_BYTES;
                read(cx, &bytes[begin..self.len.min(begin + TASK_BYTES)]);
            });
        });
        self.len as f64 / seconds
    }
}

fn read(cx: &Compute, bytes: &[u8]) {
    match cx.isa.0 {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa` of this kind exists only where the CPU has AVX-512 F (`Isa::available`).
        IsaKind::Avx512 => unsafe { super::avx512::read(bytes) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa` of this kind exists only where the CPU has AVX2 (`Isa::available`).
        IsaKind::Avx2 => unsafe { super::avx2::read(bytes) },
        _ => {
            let (words, _) = bytes.as_chunks::<8>();
            black_box(
                words
                    .iter()
                    .fold(0, |sum, word| sum ^ u64::from_le_bytes(*word)),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::{Isa, ThreadPool};

    #[test]
    fn any_size_is_read_on_every_instruction_set() {
        for isa in Isa::available() {
            let cx = Compute::new(isa, ThreadPool::new(NonZeroUsize::MIN.saturating_add(1)));
            for num_bytes in [0, 1, 3 << 20] {
                let probe = ReadProbe::new(&cx, num_bytes).expect("a few MiB");
                let rate = probe.bytes_per_second(&cx);
                assert!((1e6..1e14).contains(&rate), "{}: {rate}", isa.name());
            }
        }
    }
}
