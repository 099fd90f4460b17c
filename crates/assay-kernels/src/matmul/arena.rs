//! Memory for packed weights: zeroed, page-aligned, on huge pages where the system has them.
//! A matrix is read as long streams, and small pages cost a third of the bandwidth, so the matrices
//! of a model share slabs of whole huge pages.

use memmap2::{MmapMut, MmapRaw};
use std::sync::Arc;

/// Huge pages are this large on x86-64.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Slabs are at least this large; what the last one does not use is never touched.
const SLAB_BYTES: usize = 32 << 20;
/// Buffers start on a page, so that no line or prefetch stream is shared between matrices.
const ALIGNMENT: usize = 4096;

/// A private anonymous mapping whose parts belong to buffers.
#[derive(Debug)]
struct Slab {
    map: MmapRaw,
    /// First byte used: a huge-page boundary.
    start: usize,
    len: usize,
}

impl Slab {
    fn new(len: usize) -> std::io::Result<Arc<Self>> {
        let map_bytes = len
            .checked_add(HUGE_PAGE_BYTES)
            .ok_or(std::io::ErrorKind::OutOfMemory)?;
        let map = MmapRaw::from(MmapMut::map_anon(map_bytes)?);
        #[cfg(target_os = "linux")]
        {
            // A hint: a kernel without huge pages refuses it and the small pages stay.
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        let start = map
            .as_ptr()
            .align_offset(HUGE_PAGE_BYTES)
            .min(HUGE_PAGE_BYTES);
        Ok(Arc::new(Self { map, start, len }))
    }
}

/// Hands out memory for the packed matrices of one model.
#[derive(Debug, Default)]
pub struct WeightArena {
    slab: Option<Arc<Slab>>,
    /// Bytes of `slab` that buffers own.
    used: usize,
}

impl WeightArena {
    /// An arena without memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// `len` zeroed bytes of their own.
    pub(super) fn allocate(&mut self, len: usize) -> std::io::Result<PanelBuffer> {
        let slab = match &self.slab {
            Some(slab) if len <= slab.len - self.used => Arc::clone(slab),
            _ => {
                let wanted = len
                    .max(SLAB_BYTES)
                    .checked_next_multiple_of(HUGE_PAGE_BYTES);
                let slab = Slab::new(wanted.ok_or(std::io::ErrorKind::OutOfMemory)?)?;
                self.used = 0;
                Arc::clone(self.slab.insert(slab))
            }
        };
        let start = slab.start + self.used;
        self.used = (self.used + len).next_multiple_of(ALIGNMENT).min(slab.len);
        Ok(PanelBuffer { slab, start, len })
    }
}

/// A part of a slab that nobody else has.
#[derive(Debug)]
pub(super) struct PanelBuffer {
    slab: Arc<Slab>,
    start: usize,
    len: usize,
}

impl PanelBuffer {
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: `allocate` gave this buffer `start..start + len` of the mapping and gives no byte
        // twice; the mapping is readable, zeroed at first, and lives as long as the slab.
        unsafe { std::slice::from_raw_parts(self.slab.map.as_ptr().add(self.start), self.len) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; the mapping is writable and `&mut self` excludes other references.
        unsafe {
            std::slice::from_raw_parts_mut(self.slab.map.as_mut_ptr().add(self.start), self.len)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Buffers are zeroed, aligned and apart, across slabs too.
    #[test]
    fn buffers_do_not_overlap() {
        let mut arena = WeightArena::new();
        let lengths = [1, 4096, 5000, SLAB_BYTES - 12_288, 64, SLAB_BYTES + 1, 100];
        let mut buffers: Vec<_> = lengths
            .iter()
            .map(|&len| arena.allocate(len).unwrap())
            .collect();
        drop(arena);
        for (i, buffer) in buffers.iter_mut().enumerate() {
            assert_eq!(buffer.bytes().as_ptr().align_offset(64), 0, "buffer {i}");
            let bytes = buffer.bytes_mut();
            let last = bytes.len() - 1;
            assert!(
                bytes[0] == 0 && bytes[last] == 0,
                "buffer {i} is not zeroed"
            );
            (bytes[0], bytes[last]) = (i as u8 + 1, i as u8 + 1);
        }
        for (i, buffer) in buffers.iter().enumerate() {
            let bytes = buffer.bytes();
            assert_eq!(
                (bytes.len(), bytes[0]),
                (lengths[i], i as u8 + 1),
                "buffer {i}"
            );
            assert_eq!(bytes[bytes.len() - 1], i as u8 + 1, "buffer {i}");
        }
    }
}
