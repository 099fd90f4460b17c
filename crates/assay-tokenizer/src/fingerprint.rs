//! A stable hash of everything that decides which ids a text becomes and which bytes an id is.
//!
//! It reads the resolved definition, so that two files that mean the same tokenizer share a hash. The chat
//! template is no part of it.

use sha2::{Digest, Sha256};

/// Accumulates length-prefixed parts, so that no two definitions share an encoding.
pub(crate) struct Fingerprint(Sha256);

impl Fingerprint {
    pub(crate) fn new() -> Fingerprint {
        let mut hasher = Sha256::new();
        hasher.update(b"assay tokenizer 2\n");
        Fingerprint(hasher)
    }

    /// Adds a list of byte strings.
    pub(crate) fn list<B: AsRef<[u8]>>(&mut self, items: impl Iterator<Item = B>) {
        let mut count = 0_u64;
        for item in items {
            let bytes = item.as_ref();
            self.0.update((bytes.len() as u64).to_le_bytes());
            self.0.update(bytes);
            count += 1;
        }
        // A length no item can have closes the list.
        self.0.update(u64::MAX.to_le_bytes());
        self.0.update(count.to_le_bytes());
    }

    pub(crate) fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}
