//! A file mapped read-only into memory: the crate's only unsafe code.
//!
//! A model file must not be truncated or rewritten in place while it is mapped: reading a page that no longer has
//! a file behind it ends the process (SIGBUS), and no check here can prevent that. Replace models by renaming a new
//! file over the old name; the mapping then keeps the old file alive.

use std::fs::{self, File};
use std::io;
use std::ops::Deref;
use std::path::Path;

use memmap2::Mmap;

/// A read-only memory map of a whole regular file; dereferences to its bytes.
#[derive(Debug)]
pub struct MappedFile {
    map: Mmap,
}

impl MappedFile {
    /// Maps the file at `path`.
    ///
    /// # Errors
    /// Whatever opening or mapping reports, and `InvalidInput` for anything but a regular file: a pipe or a device
    /// would block on open or have no length.
    pub fn open(path: &Path) -> io::Result<MappedFile> {
        // Asked before opening, because opening a pipe waits for a writer.
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a regular file",
            ));
        }
        let file = File::open(path)?;
        #[expect(
            unsafe_code,
            reason = "mapping a file is the one thing here that needs it"
        )]
        // SAFETY: the map is private to this process and read-only, and `Mmap` owns it for as long as bytes are
        // lent out. That no one truncates or rewrites the file meanwhile cannot be checked here; the module
        // header makes it the operator's duty.
        let map = unsafe { Mmap::map(&file)? };
        Ok(MappedFile { map })
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}
