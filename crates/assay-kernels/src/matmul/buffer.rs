//! Memory for packed weights: zeroed, page-aligned, on huge pages where the system has them
//! (a matrix is read as a few long streams; small pages cost a third of the bandwidth).

use memmap2::{Advice, MmapMut};

/// Huge pages are this large on x86-64.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A private anonymous mapping.
#[derive(Debug)]
pub(super) struct PanelBuffer {
    map: MmapMut,
    /// First byte used: the first huge-page boundary, when the buffer is large enough to care.
    start: usize,
    len: usize,
}

impl PanelBuffer {
    /// `len` zeroed bytes, aligned to 64 at least.
    pub(super) fn zeroed(len: usize) -> std::io::Result<Self> {
        let slack = if len >= HUGE_PAGE_BYTES {
            HUGE_PAGE_BYTES
        } else {
            0
        };
        let map_bytes = len
            .checked_add(slack)
            .ok_or(std::io::ErrorKind::OutOfMemory)?;
        let map = MmapMut::map_anon(map_bytes.max(1))?;
        let start = if slack > 0 {
            map.as_ptr().align_offset(HUGE_PAGE_BYTES).min(slack)
        } else {
            0
        };
        if slack > 0 {
            // A hint: a kernel without huge pages refuses it and the small pages stay.
            let _ = map.advise(Advice::HugePage);
        }
        Ok(Self { map, start, len })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.map[self.start..self.start + self.len]
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.map[self.start..self.start + self.len]
    }
}
