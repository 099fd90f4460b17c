//! The key-value section: look-up by key, entries in file order, and typed reads that name the key when they fail.
//!
//! It knows types, not meanings: which keys a model needs, and their ranges, belong to whoever reads them.

use super::array::{Array, Strings};
use super::cursor::Cursor;
use super::error::{GgufError, Ordinal, Place, Problem};
use super::index::{name_at, ordinal, sort_by_name};
use super::value::Value;

/// Longest key accepted, as the format says.
const KEY_BYTES_MAX: u64 = 65_535;

/// Most entries accepted. Real files have under a hundred; the cap bounds the time that sorting takes.
pub(super) const ENTRIES_MAX: u64 = 65_536;

/// The least an entry can take: key length, one byte of key, value type, one byte of value. The index spends eight
/// bytes on each.
pub(super) const ENTRY_BYTES_MIN: u64 = 8 + 1 + 4 + 1;

/// Where the first entry stands: magic, version and the two counts come before it.
const ENTRIES_OFFSET: u64 = 4 + 4 + 8 + 8;

/// All metadata of a file: a view of its bytes, through an index sorted by key.
#[derive(Debug, Clone, Copy)]
pub struct Metadata<'a> {
    pub(super) bytes: &'a [u8],
    /// Where each entry begins, sorted by key.
    pub(super) by_key: &'a [u64],
}

/// One entry as it lies in the file.
struct Entry<'a> {
    key: &'a str,
    value: Value<'a>,
    /// Where its value (from the type number on) begins.
    value_offset: u64,
}

/// Checks `count` entries and returns where each begins, sorted by key.
pub(super) fn index(cursor: &mut Cursor<'_>, count: usize) -> Result<Box<[u64]>, GgufError> {
    let mut offsets = Vec::with_capacity(count);
    for index in 0..count {
        offsets.push(cursor.offset());
        Entry::read(cursor, Ordinal { index, count })?;
    }
    sort_by_key(cursor.bytes(), &mut offsets)?;
    Ok(offsets.into_boxed_slice())
}

impl<'a> Metadata<'a> {
    /// Keys and values in file order; walks every value, so look-ups are cheaper.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        let mut cursor = Cursor::at(self.bytes, ENTRIES_OFFSET);
        let count = self.len();
        (0..count).map_while(move |index| {
            let entry = Entry::read(&mut cursor, Ordinal { index, count }).ok()?;
            Some((entry.key, entry.value))
        })
    }

    /// Number of entries.
    #[must_use]
    pub fn len(self) -> usize {
        self.by_key.len()
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.by_key.is_empty()
    }

    /// The value of `key`, whatever its type.
    #[must_use]
    pub fn get(self, key: &str) -> Option<Value<'a>> {
        self.entry(key).map(|entry| entry.value)
    }

    fn entry(self, key: &str) -> Option<Entry<'a>> {
        let at = |&offset: &u64| name_at(self.bytes, offset).cmp(key.as_bytes());
        let found = self.by_key.binary_search_by(at).ok()?;
        Entry::at(self.bytes, *self.by_key.get(found)?)
    }

    /// The text of `key`; `Ok(None)` when absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`] when it is not a string.
    pub fn str(self, key: &str) -> Result<Option<&'a str>, GgufError> {
        self.typed(key, "string", |value| match value {
            Value::String(text) => Some(text),
            _ => None,
        })
    }

    /// The truth value of `key`; `Ok(None)` when absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`] when it is not a bool.
    pub fn bool(self, key: &str) -> Result<Option<bool>, GgufError> {
        self.typed(key, "bool", |value| match value {
            Value::Bool(truth) => Some(truth),
            _ => None,
        })
    }

    /// The integer of `key` as u32, whatever integer type holds it; `Ok(None)` when absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`] when it is not an integer, [`GgufError::OutOfRange`] when it does not fit.
    pub fn u32(self, key: &str) -> Result<Option<u32>, GgufError> {
        self.integer(key, "an integer that fits u32")
    }

    /// The integer of `key` as u64, whatever integer type holds it; `Ok(None)` when absent.
    ///
    /// # Errors
    /// As [`Metadata::u32`].
    pub fn u64(self, key: &str) -> Result<Option<u64>, GgufError> {
        self.integer(key, "an integer that fits u64")
    }

    /// The integer of `key` as i32, whatever integer type holds it; `Ok(None)` when absent.
    ///
    /// # Errors
    /// As [`Metadata::u32`].
    pub fn i32(self, key: &str) -> Result<Option<i32>, GgufError> {
        self.integer(key, "an integer that fits i32")
    }

    /// The finite f32 of `key`; `Ok(None)` when absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`] when it is not an f32, [`GgufError::OutOfRange`] when it is infinite or not a number.
    pub fn f32(self, key: &str) -> Result<Option<f32>, GgufError> {
        let number = self.typed(key, "f32", |value| match value {
            Value::F32(number) => Some(number),
            _ => None,
        })?;
        match number {
            Some(number) if !number.is_finite() => {
                Err(self.out_of_range(key, number.to_string(), "a finite f32"))
            }
            number => Ok(number),
        }
    }

    /// The strings of `key`; `Ok(None)` when absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`] when it is not an array of strings.
    pub fn str_array(self, key: &str) -> Result<Option<Strings<'a>>, GgufError> {
        self.array(key, "array of string", |array| array.strings())
    }

    /// The numbers of `key`, NaN and infinities included; `Ok(None)` when absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`] when it is not an array of f32.
    pub fn f32_array(
        self,
        key: &str,
    ) -> Result<Option<impl ExactSizeIterator<Item = f32> + Clone + use<'a>>, GgufError> {
        self.array(key, "array of f32", |array| array.f32s())
    }

    /// The truth values of `key`; `Ok(None)` when absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`] when it is not an array of bool.
    pub fn bool_array(
        self,
        key: &str,
    ) -> Result<Option<impl ExactSizeIterator<Item = bool> + Clone + use<'a>>, GgufError> {
        self.array(key, "array of bool", |array| array.bools())
    }

    /// The bytes of `key` (an array of u8 or i8, as normaliser tables are stored); `Ok(None)` when absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`] when it is not an array of bytes.
    pub fn byte_array(self, key: &str) -> Result<Option<&'a [u8]>, GgufError> {
        self.array(key, "array of u8", |array| array.bytes())
    }

    /// The integers of `key` as i32, whatever integer type holds them; `Ok(None)` when absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`] when it is not an array of integers, [`GgufError::OutOfRange`] when one does not fit.
    pub fn i32_array(
        self,
        key: &str,
    ) -> Result<Option<impl ExactSizeIterator<Item = i32> + Clone + use<'a>>, GgufError> {
        self.integers(key, "an integer that fits i32")
    }

    /// The integers of `key` as u32, whatever integer type holds them; `Ok(None)` when absent.
    ///
    /// # Errors
    /// As [`Metadata::i32_array`].
    pub fn u32_array(
        self,
        key: &str,
    ) -> Result<Option<impl ExactSizeIterator<Item = u32> + Clone + use<'a>>, GgufError> {
        self.integers(key, "an integer that fits u32")
    }

    fn typed<T>(
        self,
        key: &str,
        expected: &'static str,
        read: impl FnOnce(Value<'a>) -> Option<T>,
    ) -> Result<Option<T>, GgufError> {
        let Some(entry) = self.entry(key) else {
            return Ok(None);
        };
        match read(entry.value) {
            Some(value) => Ok(Some(value)),
            None => Err(GgufError::WrongType {
                key: key.to_owned(),
                offset: entry.value_offset,
                expected,
                found: entry.value.type_name(),
            }),
        }
    }

    fn array<T>(
        self,
        key: &str,
        expected: &'static str,
        read: impl FnOnce(Array<'a>) -> Option<T>,
    ) -> Result<Option<T>, GgufError> {
        self.typed(key, expected, |value| match value {
            Value::Array(array) => read(array),
            _ => None,
        })
    }

    fn integer<T: TryFrom<i128>>(
        self,
        key: &str,
        expected: &'static str,
    ) -> Result<Option<T>, GgufError> {
        let Some(number) = self.typed(key, expected, |value| value.as_integer())? else {
            return Ok(None);
        };
        match T::try_from(number) {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(self.out_of_range(key, number.to_string(), expected)),
        }
    }

    /// The integers of an array once every one is known to fit: checked in one pass, decoded in a second, so that
    /// nothing is allocated.
    fn integers<T: TryFrom<i128> + Default>(
        self,
        key: &str,
        expected: &'static str,
    ) -> Result<Option<impl ExactSizeIterator<Item = T> + Clone + use<'a, T>>, GgufError> {
        let Some(integers) = self.array(key, "array of integers", |array| array.integers())? else {
            return Ok(None);
        };
        let mut numbered = integers.clone().enumerate();
        if let Some((index, number)) = numbered.find(|&(_, number)| T::try_from(number).is_err()) {
            return Err(self.out_of_range(key, format!("element {index}, {number},"), expected));
        }
        Ok(Some(
            integers.map(|number| T::try_from(number).unwrap_or_default()),
        ))
    }

    fn out_of_range(self, key: &str, value: String, expected: &'static str) -> GgufError {
        let offset = self.entry(key).map_or(0, |entry| entry.value_offset);
        GgufError::OutOfRange {
            key: key.to_owned(),
            offset,
            value,
            expected,
        }
    }

    /// The ordinal, offset and value of `key`, for checks made while the header is read.
    pub(super) fn locate(self, key: &str) -> Option<(Ordinal, u64, Value<'a>)> {
        let entry = self.entry(key)?;
        let ordinal = ordinal(self.by_key, entry.offset());
        Some((ordinal, entry.value_offset, entry.value))
    }
}

impl<'a> Entry<'a> {
    /// Where the entry begins in the file: a u64 length and the key stand before the value.
    fn offset(&self) -> u64 {
        self.value_offset - self.key.len() as u64 - 8
    }

    /// Reads and checks the entry at `cursor`, which ends behind it.
    fn read(cursor: &mut Cursor<'a>, ordinal: Ordinal) -> Result<Entry<'a>, GgufError> {
        let key_place = |field| {
            move || Place::Key {
                ordinal,
                key: None,
                field,
                element: None,
            }
        };
        let key = cursor.name(KEY_BYTES_MAX, key_place("key length"), key_place("key"))?;
        let place = |field, element| Place::Key {
            ordinal,
            key: Some(key.to_owned()),
            field,
            element,
        };
        let value_offset = cursor.offset();
        let value = Value::read(cursor, &place)?;
        Ok(Entry {
            key,
            value,
            value_offset,
        })
    }

    /// The entry at `offset`, checked when the header was parsed; `None` if the file was rewritten since then.
    fn at(bytes: &'a [u8], offset: u64) -> Option<Entry<'a>> {
        let place = |field, _| Place::Header { field };
        let mut cursor = Cursor::at(bytes, offset);
        let key = cursor.str(|| place("key", None)).ok()?;
        let value_offset = cursor.offset();
        let value = Value::view(&mut cursor, &place).ok()?;
        Some(Entry {
            key,
            value,
            value_offset,
        })
    }
}

/// Sorts entry offsets by key; an error when a key occurs twice.
fn sort_by_key(bytes: &[u8], offsets: &mut [u64]) -> Result<(), GgufError> {
    let Some((first, repeated)) = sort_by_name(bytes, offsets) else {
        return Ok(());
    };
    let key = String::from_utf8_lossy(name_at(bytes, repeated)).into_owned();
    let place = Place::Key {
        ordinal: ordinal(offsets, repeated),
        key: Some(key),
        field: "key",
        element: None,
    };
    Err(place.problem(repeated, Problem::Duplicate { first }))
}
