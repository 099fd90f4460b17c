//! The key-value section: ordered entries, look-up by key, and typed reads that name the key when they fail.
//!
//! It knows types, not meanings: which keys a model needs, and their ranges, belong to whoever reads them.

use std::borrow::Cow;

use super::cursor::Cursor;
use super::error::{GgufError, Ordinal, Place, Problem};
use super::value::{Array, StringArray, Value};

/// Longest key accepted, as the format says.
const KEY_BYTES_MAX: u64 = 65_535;

/// Most entries accepted. Real files have under a hundred; the cap bounds the fixed cost per entry.
pub(super) const ENTRIES_MAX: u64 = 65_536;

/// The least an entry can take: key length, one byte of key, value type, one byte of value.
pub(super) const ENTRY_BYTES_MIN: u64 = 8 + 1 + 4 + 1;

/// All metadata of a file, in file order.
#[derive(Debug, Clone, Default)]
pub struct Metadata {
    entries: Vec<Entry>,
    /// Positions in `entries`, sorted by key.
    by_key: Vec<u32>,
}

#[derive(Debug, Clone)]
struct Entry {
    key: String,
    value: Value,
    /// Where its value (from the type number on) begins.
    value_offset: u64,
}

impl Metadata {
    /// Reads `count` entries.
    pub(super) fn read(cursor: &mut Cursor<'_>, count: usize) -> Result<Metadata, GgufError> {
        let mut entries = Vec::with_capacity(count);
        for index in 0..count {
            entries.push(Entry::read(cursor, Ordinal { index, count })?);
        }
        let by_key = sorted_unique(&entries)?;
        Ok(Metadata { entries, by_key })
    }

    /// Keys and values in file order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.entries
            .iter()
            .map(|entry| (entry.key.as_str(), &entry.value))
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value of `key`, whatever its type.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entry(key).map(|entry| &entry.value)
    }

    fn entry(&self, key: &str) -> Option<&Entry> {
        let entry_at = |&position: &u32| self.entries.get(position as usize);
        let found = self.by_key.binary_search_by(|position| {
            entry_at(position)
                .map_or("", |entry| entry.key.as_str())
                .cmp(key)
        });
        found
            .ok()
            .and_then(|found| self.by_key.get(found))
            .and_then(entry_at)
    }

    /// The text of `key`; `Ok(None)` when absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`] when it is not a string.
    pub fn str(&self, key: &str) -> Result<Option<&str>, GgufError> {
        self.typed(key, "string", |value| match value {
            Value::String(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// The truth value of `key`; `Ok(None)` when absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`] when it is not a bool.
    pub fn bool(&self, key: &str) -> Result<Option<bool>, GgufError> {
        self.typed(key, "bool", |value| match value {
            Value::Bool(truth) => Some(*truth),
            _ => None,
        })
    }

    /// The integer of `key` as u32, whatever integer type holds it; `Ok(None)` when absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`] when it is not an integer, [`GgufError::OutOfRange`] when it does not fit.
    pub fn u32(&self, key: &str) -> Result<Option<u32>, GgufError> {
        self.integer(key, "an integer that fits u32")
    }

    /// The integer of `key` as u64, whatever integer type holds it; `Ok(None)` when absent.
    ///
    /// # Errors
    /// As [`Metadata::u32`].
    pub fn u64(&self, key: &str) -> Result<Option<u64>, GgufError> {
        self.integer(key, "an integer that fits u64")
    }

    /// The integer of `key` as i32, whatever integer type holds it; `Ok(None)` when absent.
    ///
    /// # Errors
    /// As [`Metadata::u32`].
    pub fn i32(&self, key: &str) -> Result<Option<i32>, GgufError> {
        self.integer(key, "an integer that fits i32")
    }

    /// The finite f32 of `key`; `Ok(None)` when absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`] when it is not an f32, [`GgufError::OutOfRange`] when it is infinite or not a number.
    pub fn f32(&self, key: &str) -> Result<Option<f32>, GgufError> {
        let number = self.typed(key, "f32", |value| match value {
            Value::F32(number) => Some(*number),
            _ => None,
        })?;
        match number {
            Some(number) if !number.is_finite() => {
                Err(self.out_of_range(key, number.to_string(), "a finite f32"))
            }
            number => Ok(number),
        }
    }

    /// The strings of `key`, borrowed; `Ok(None)` when absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`] when it is not an array of strings.
    pub fn str_array(&self, key: &str) -> Result<Option<&StringArray>, GgufError> {
        self.typed(key, "array of string", |value| match value {
            Value::Array(Array::String(strings)) => Some(strings),
            _ => None,
        })
    }

    /// The numbers of `key`, borrowed, NaN and infinities included; `Ok(None)` when absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`] when it is not an array of f32.
    pub fn f32_array(&self, key: &str) -> Result<Option<&[f32]>, GgufError> {
        self.typed(key, "array of f32", |value| match value {
            Value::Array(Array::F32(numbers)) => Some(numbers.as_slice()),
            _ => None,
        })
    }

    /// The truth values of `key`, borrowed; `Ok(None)` when absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`] when it is not an array of bool.
    pub fn bool_array(&self, key: &str) -> Result<Option<&[bool]>, GgufError> {
        self.typed(key, "array of bool", |value| match value {
            Value::Array(Array::Bool(truths)) => Some(truths.as_slice()),
            _ => None,
        })
    }

    /// The bytes of `key` (an array of u8 or i8, as normaliser tables are stored), copied only from i8; `Ok(None)`
    /// when absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`] when it is not an array of bytes.
    pub fn byte_array(&self, key: &str) -> Result<Option<Cow<'_, [u8]>>, GgufError> {
        self.typed(key, "array of u8", |value| match value {
            Value::Array(Array::U8(bytes)) => Some(Cow::Borrowed(bytes.as_slice())),
            Value::Array(Array::I8(bytes)) => {
                Some(bytes.iter().map(|byte| byte.cast_unsigned()).collect())
            }
            _ => None,
        })
    }

    /// The integers of `key` as i32, borrowed when the file holds i32; `Ok(None)` when absent.
    ///
    /// # Errors
    /// [`GgufError::WrongType`] when it is not an array of integers, [`GgufError::OutOfRange`] when one does not fit.
    pub fn i32_array(&self, key: &str) -> Result<Option<Cow<'_, [i32]>>, GgufError> {
        match self.get(key) {
            Some(Value::Array(Array::I32(numbers))) => Ok(Some(Cow::Borrowed(numbers))),
            _ => Ok(self
                .integers(key, "an integer that fits i32")?
                .map(Cow::Owned)),
        }
    }

    /// The integers of `key` as u32, borrowed when the file holds u32; `Ok(None)` when absent.
    ///
    /// # Errors
    /// As [`Metadata::i32_array`].
    pub fn u32_array(&self, key: &str) -> Result<Option<Cow<'_, [u32]>>, GgufError> {
        match self.get(key) {
            Some(Value::Array(Array::U32(numbers))) => Ok(Some(Cow::Borrowed(numbers))),
            _ => Ok(self
                .integers(key, "an integer that fits u32")?
                .map(Cow::Owned)),
        }
    }

    fn typed<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, GgufError> {
        let Some(entry) = self.entry(key) else {
            return Ok(None);
        };
        match read(&entry.value) {
            Some(value) => Ok(Some(value)),
            None => Err(GgufError::WrongType {
                key: key.to_owned(),
                offset: entry.value_offset,
                expected,
                found: entry.value.type_name(),
            }),
        }
    }

    fn integer<T: TryFrom<i128>>(
        &self,
        key: &str,
        expected: &'static str,
    ) -> Result<Option<T>, GgufError> {
        let Some(number) = self.typed(key, expected, Value::as_integer)? else {
            return Ok(None);
        };
        match T::try_from(number) {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(self.out_of_range(key, number.to_string(), expected)),
        }
    }

    fn integers<T: TryFrom<i128>>(
        &self,
        key: &str,
        expected: &'static str,
    ) -> Result<Option<Vec<T>>, GgufError> {
        let Some(array) = self.typed(key, "array of integers", |value| match value {
            Value::Array(array) => array.integers(),
            _ => None,
        })?
        else {
            return Ok(None);
        };
        let convert = |(index, number): (usize, i128)| {
            T::try_from(number).map_err(|_| {
                self.out_of_range(key, format!("element {index}, {number},"), expected)
            })
        };
        array
            .enumerate()
            .map(convert)
            .collect::<Result<_, _>>()
            .map(Some)
    }

    fn out_of_range(&self, key: &str, value: String, expected: &'static str) -> GgufError {
        let offset = self.entry(key).map_or(0, |entry| entry.value_offset);
        GgufError::OutOfRange {
            key: key.to_owned(),
            offset,
            value,
            expected,
        }
    }

    /// The entry's offset and value, for checks made while the header is read.
    pub(super) fn locate(&self, key: &str) -> Option<(u64, &Value)> {
        self.entry(key)
            .map(|entry| (entry.value_offset, &entry.value))
    }
}

impl Entry {
    /// Where the entry begins in the file: a u64 length and the key stand before the value.
    fn offset(&self) -> u64 {
        self.value_offset - self.key.len() as u64 - 8
    }

    fn read(cursor: &mut Cursor<'_>, ordinal: Ordinal) -> Result<Entry, GgufError> {
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
            key: key.to_owned(),
            value,
            value_offset,
        })
    }
}

/// Positions of `entries` sorted by key; an error when a key occurs twice.
fn sorted_unique(entries: &[Entry]) -> Result<Vec<u32>, GgufError> {
    let at = |position: u32| entries.get(position as usize);
    let key_at = |position| at(position).map_or("", |entry| entry.key.as_str());
    let mut sorted: Vec<u32> = (0..).zip(entries).map(|(position, _)| position).collect();
    sorted.sort_unstable_by(|&a, &b| key_at(a).cmp(key_at(b)).then(a.cmp(&b)));
    for pair in sorted.windows(2) {
        if let &[first, second] = pair
            && let (Some(first), Some(repeated)) = (at(first), at(second))
            && first.key == repeated.key
        {
            let ordinal = Ordinal {
                index: second as usize,
                count: entries.len(),
            };
            let key = Some(repeated.key.clone());
            let place = Place::Key {
                ordinal,
                key,
                field: "key",
                element: None,
            };
            let problem = Problem::Duplicate {
                first: first.offset(),
            };
            return Err(place.problem(repeated.offset(), problem));
        }
    }
    Ok(sorted)
}
