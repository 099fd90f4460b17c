//! A fault check for repacking: the same 64-bit hash of a row from its raw and its packed form.
//!
//! Not cryptographic. Rows are combined so that their order in memory does not matter but their
//! index does.

/// Running hash of one row.
pub(super) struct RowHash(u64);

const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

impl RowHash {
    pub(super) fn new() -> Self {
        Self(MULTIPLIER)
    }

    /// Adds bytes; how they are split into calls is part of the hash only through 8-byte words.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = (self.0 ^ u64::from_le_bytes(word))
                .wrapping_mul(MULTIPLIER)
                .rotate_left(29);
        }
    }

    /// Hash of a row of floats, by their bits.
    pub(super) fn of_values(values: &[f32]) -> u64 {
        let mut hash = Self::new();
        for value in values {
            hash.update(&value.to_bits().to_le_bytes());
        }
        hash.finish()
    }

    pub(super) fn finish(&self) -> u64 {
        self.0
    }
}

/// Combines row hashes into the matrix's checksum.
pub(super) fn combine(row_hashes: impl Iterator<Item = u64>) -> u64 {
    row_hashes.enumerate().fold(0, |sum, (row, hash)| {
        let salt = (row as u64 + 1).wrapping_mul(MULTIPLIER) | 1;
        sum.wrapping_add((hash ^ (hash >> 31)).wrapping_mul(salt))
    })
}
