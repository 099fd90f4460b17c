//! All tensors of a file: look-up by name, file order, and the checks that need more than one description.

use super::cursor::Cursor;
use super::error::{GgufError, Ordinal, Problem};
use super::index::{name_at, ordinal, sort_by_name};
use super::tensor_info::{DataLayout, Description, TensorInfo};

/// Most tensors accepted. Real files have a few thousand; the cap bounds the time that sorting takes.
pub(super) const TENSORS_MAX: u64 = 262_144;

/// The least a description can take: name length, a byte of name, one dimension, type, offset. The index spends eight
/// bytes on each, and 24 more while overlaps are looked for.
pub(super) const TENSOR_BYTES_MIN: u64 = 8 + 1 + 4 + 8 + 4 + 8;

/// The tensors of a file: a view of its bytes, through an index sorted by name.
#[derive(Debug, Clone, Copy)]
pub struct Tensors<'a> {
    pub(super) bytes: &'a [u8],
    /// Where the first description begins.
    pub(super) first: u64,
    /// Where each description begins, sorted by name.
    pub(super) by_name: &'a [u64],
    pub(super) layout: &'a DataLayout,
}

impl<'a> Tensors<'a> {
    /// Tensors in file order.
    pub fn iter(self) -> impl Iterator<Item = TensorInfo<'a>> {
        let mut cursor = Cursor::at(self.bytes, self.first);
        let count = self.len();
        (0..count).map_while(move |index| {
            let found = Description::read(&mut cursor, Ordinal { index, count }).ok()?;
            found.resolve(self.layout).ok()
        })
    }

    /// Number of tensors.
    #[must_use]
    pub fn len(self) -> usize {
        self.by_name.len()
    }

    /// Whether there are no tensors.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.by_name.is_empty()
    }

    /// The tensor called `name`.
    #[must_use]
    pub fn get(self, name: &str) -> Option<TensorInfo<'a>> {
        let at = |&offset: &u64| name_at(self.bytes, offset).cmp(name.as_bytes());
        let found = self.by_name.binary_search_by(at).ok()?;
        // No error leaves here, so the ordinal need not be counted.
        let ordinal = Ordinal {
            index: 0,
            count: self.len(),
        };
        let mut cursor = Cursor::at(self.bytes, *self.by_name.get(found)?);
        let description = Description::read(&mut cursor, ordinal).ok()?;
        description.resolve(self.layout).ok()
    }
}

/// Checks `count` descriptions as far as one can be checked alone; answers with where each begins, in file order.
pub(super) fn index(cursor: &mut Cursor<'_>, count: usize) -> Result<Box<[u64]>, GgufError> {
    let mut offsets = Vec::with_capacity(count);
    for index in 0..count {
        offsets.push(cursor.offset());
        Description::read(cursor, Ordinal { index, count })?;
    }
    Ok(offsets.into_boxed_slice())
}

/// Sorts `offsets` by name; refuses duplicate names, data outside the file, and overlapping data.
pub(super) fn resolve(
    bytes: &[u8],
    offsets: &mut [u64],
    layout: &DataLayout,
) -> Result<(), GgufError> {
    let Some(&first) = offsets.first() else {
        return Ok(());
    };
    if let Some((first, second)) = sort_by_name(bytes, offsets) {
        let second = description_at(bytes, offsets, second)?;
        return Err(second.problem("name", second.at, Problem::Duplicate { first }));
    }
    let mut ranges = Vec::with_capacity(offsets.len());
    let mut cursor = Cursor::at(bytes, first);
    let count = offsets.len();
    for index in 0..count {
        let found = Description::read(&mut cursor, Ordinal { index, count })?;
        let tensor = found
            .resolve(layout)
            .map_err(|problem| found.problem("offset", found.offset_at, problem))?;
        ranges.push(Range {
            begin: tensor.byte_offset,
            end: tensor.byte_offset + tensor.byte_len,
            described_at: found.at,
        });
    }
    refuse_overlaps(bytes, offsets, &mut ranges)
}

/// Where a tensor's data lies, and where its description does.
struct Range {
    begin: u64,
    end: u64,
    described_at: u64,
}

/// Refuses tensors that share bytes.
fn refuse_overlaps(bytes: &[u8], offsets: &[u64], ranges: &mut [Range]) -> Result<(), GgufError> {
    ranges.sort_unstable_by_key(|range| (range.begin, range.described_at));
    for pair in ranges.windows(2) {
        if let [first, second] = pair
            && first.end > second.begin
        {
            let first = description_at(bytes, offsets, first.described_at)?;
            let second = description_at(bytes, offsets, second.described_at)?;
            let problem = Problem::Overlap {
                other: first.info.name.to_owned(),
            };
            return Err(second.problem("offset", second.offset_at, problem));
        }
    }
    Ok(())
}

/// The description at `offset`; walks all `offsets` for its ordinal, so for errors only.
fn description_at<'a>(
    bytes: &'a [u8],
    offsets: &[u64],
    offset: u64,
) -> Result<Description<'a>, GgufError> {
    Description::read(&mut Cursor::at(bytes, offset), ordinal(offsets, offset))
}
