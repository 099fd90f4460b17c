//! A bounded reader over untrusted bytes: every read either fits or says where it did not.
//!
//! It knows little-endian numbers and the GGUF string, nothing of keys or tensors; callers attach the [`Place`].

use super::error::{GgufError, Place, Problem};

/// Position in the file's bytes; only moves forward.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, offset: 0 }
    }

    /// A cursor at `offset`, or at the end when the bytes are fewer.
    pub(super) fn at(bytes: &'a [u8], offset: u64) -> Cursor<'a> {
        let offset = usize::try_from(offset).map_or(bytes.len(), |at| at.min(bytes.len()));
        Cursor { bytes, offset }
    }

    /// Bytes read so far, which is the file offset of the next read.
    pub(super) fn offset(&self) -> u64 {
        self.offset as u64
    }

    pub(super) fn left(&self) -> u64 {
        (self.bytes.len() - self.offset) as u64
    }

    /// All bytes, those already read too.
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Everything that is left.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.offset..).unwrap_or_default()
    }

    /// The next `len` bytes; `place` names them when they do not all exist.
    pub(super) fn take(
        &mut self,
        len: u64,
        place: impl FnOnce() -> Place,
    ) -> Result<&'a [u8], GgufError> {
        let rest = self.rest();
        let taken = usize::try_from(len).ok().and_then(|len| rest.get(..len));
        let Some(taken) = taken else {
            return Err(place().problem(
                self.offset(),
                Problem::PastEnd {
                    needed: len,
                    left: self.left(),
                },
            ));
        };
        self.offset += taken.len();
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(
        &mut self,
        place: impl FnOnce() -> Place,
    ) -> Result<[u8; N], GgufError> {
        let taken = self.take(N as u64, place)?;
        let mut array = [0; N];
        array.copy_from_slice(taken);
        Ok(array)
    }

    pub(super) fn u32(&mut self, place: impl FnOnce() -> Place) -> Result<u32, GgufError> {
        self.array(place).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, place: impl FnOnce() -> Place) -> Result<u64, GgufError> {
        self.array(place).map(u64::from_le_bytes)
    }

    /// A GGUF string: u64 length, then that many bytes of UTF-8 (no terminator). Borrowed from the file.
    pub(super) fn str(&mut self, place: impl Fn() -> Place) -> Result<&'a str, GgufError> {
        self.text(&place, &place)
    }

    /// As [`Cursor::str`], with a place of its own for the length.
    pub(super) fn text(
        &mut self,
        length_place: impl FnOnce() -> Place,
        place: impl Fn() -> Place,
    ) -> Result<&'a str, GgufError> {
        let len = self.u64(length_place)?;
        let start = self.offset();
        let bytes = self.take(len, &place)?;
        str::from_utf8(bytes).map_err(|error| {
            place().problem(
                start + error.valid_up_to() as u64,
                Problem::NotUtf8 {
                    valid_bytes: error.valid_up_to(),
                },
            )
        })
    }

    /// A GGUF string that must not be empty nor longer than `limit` bytes: a key or a tensor's name.
    pub(super) fn name(
        &mut self,
        limit: u64,
        length_place: impl Fn() -> Place,
        text_place: impl Fn() -> Place,
    ) -> Result<&'a str, GgufError> {
        let at = self.offset();
        let len = self.clone().u64(&length_place)?;
        match len {
            0 => Err(length_place().problem(at, Problem::Empty)),
            len if len > limit => {
                Err(length_place().problem(at, Problem::Limit { value: len, limit }))
            }
            _ => self.str(text_place),
        }
    }

    /// Checks a count read just before `self` against the bytes that are left, given the least one element takes.
    /// This is what keeps every later allocation below the file's size.
    pub(super) fn check_count(
        &self,
        count: u64,
        min_element_bytes: u64,
        at: u64,
        place: impl FnOnce() -> Place,
    ) -> Result<usize, GgufError> {
        let fits = count
            .checked_mul(min_element_bytes)
            .is_some_and(|needed| needed <= self.left());
        match usize::try_from(count) {
            Ok(count) if fits => Ok(count),
            _ => Err(place().problem(
                at,
                Problem::Count {
                    count,
                    min_element_bytes,
                    left: self.left(),
                },
            )),
        }
    }
}
