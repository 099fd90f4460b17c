//! What both sections of a header are indexed by: where each named item begins, sorted by name.
//!
//! An item (a metadata entry or a tensor's description) begins with its name, so that an offset of eight bytes is
//! all that the index keeps of it. The least item takes more than that in the file, which is why parsing never takes
//! more memory than the file has bytes.

use super::cursor::Cursor;
use super::error::{Ordinal, Place};

/// The name of the item at `offset`; empty if the file was rewritten since its header was checked.
pub(super) fn name_at(bytes: &[u8], offset: u64) -> &[u8] {
    let place = || Place::Header { field: "name" };
    let mut cursor = Cursor::at(bytes, offset);
    let name = cursor.u64(place).and_then(|len| cursor.take(len, place));
    name.unwrap_or_default()
}

/// Sorts the offsets of items by name. Answers with the offsets of two items of one name, the earlier one first, if
/// there are any.
pub(super) fn sort_by_name(bytes: &[u8], offsets: &mut [u64]) -> Option<(u64, u64)> {
    offsets.sort_unstable_by(|&a, &b| {
        name_at(bytes, a)
            .cmp(name_at(bytes, b))
            .then_with(|| a.cmp(&b))
    });
    offsets.windows(2).find_map(|pair| match *pair {
        [first, second] if name_at(bytes, first) == name_at(bytes, second) => Some((first, second)),
        _ => None,
    })
}

/// Which item, in file order, begins at `offset`.
pub(super) fn ordinal(offsets: &[u64], offset: u64) -> Ordinal {
    Ordinal {
        index: offsets.iter().filter(|&&other| other < offset).count(),
        count: offsets.len(),
    }
}
