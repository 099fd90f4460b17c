//! Metadata values: the twelve scalar types of GGUF and arrays of them, held compactly.
//!
//! No value takes more memory than it takes in the file (plus one fixed header per entry): numbers are packed and
//! the strings of an array share one buffer. Arrays of arrays are refused: no model file we support has them.

use super::cursor::Cursor;
use super::error::{GgufError, Place, Problem};

/// A metadata value of any GGUF type.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "each variant is the Rust type it holds")]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    String(String),
    Array(Array),
    U64(u64),
    I64(i64),
    F64(f64),
}

/// An array of one GGUF scalar type.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "each variant is the Rust type it holds")]
pub enum Array {
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    F32(Vec<f32>),
    Bool(Vec<bool>),
    String(StringArray),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F64(Vec<f64>),
}

/// An array of strings in one buffer: as compact as in the file, indexable in constant time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StringArray {
    text: Box<str>,
    /// Where each string ends in `text`.
    ends: Box<[usize]>,
}

impl StringArray {
    /// Number of strings.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The string at `index`, or `None` past the end.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)?;
        let start = match index.checked_sub(1) {
            Some(previous) => *self.ends.get(previous)?,
            None => 0,
        };
        self.text.get(start..end)
    }

    /// The strings in order, borrowed.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        (0..self.len()).map(|index| self.get(index).unwrap_or_default())
    }
}

impl<S: AsRef<str>> FromIterator<S> for StringArray {
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> StringArray {
        let (mut text, mut ends) = (String::new(), Vec::new());
        for string in strings {
            text.push_str(string.as_ref());
            ends.push(text.len());
        }
        StringArray {
            text: text.into(),
            ends: ends.into(),
        }
    }
}

/// A GGUF value type number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueType {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    String,
    Array,
    U64,
    I64,
    F64,
}

impl ValueType {
    const BY_NUMBER: [ValueType; 13] = [
        ValueType::U8,
        ValueType::I8,
        ValueType::U16,
        ValueType::I16,
        ValueType::U32,
        ValueType::I32,
        ValueType::F32,
        ValueType::Bool,
        ValueType::String,
        ValueType::Array,
        ValueType::U64,
        ValueType::I64,
        ValueType::F64,
    ];

    fn read(cursor: &mut Cursor<'_>, place: impl Fn() -> Place) -> Result<ValueType, GgufError> {
        let at = cursor.offset();
        let found = cursor.u32(&place)?;
        let known = usize::try_from(found)
            .ok()
            .and_then(|number| ValueType::BY_NUMBER.get(number));
        known
            .copied()
            .ok_or_else(|| place().problem(at, Problem::ValueType { found }))
    }
}

/// Makes the [`Place`] of a field of the current entry: the field's name and the element it concerns.
pub(super) trait EntryPlace: Fn(&'static str, Option<usize>) -> Place {}
impl<F: Fn(&'static str, Option<usize>) -> Place> EntryPlace for F {}

impl Value {
    /// Reads a value: its type number, then its bytes.
    pub(super) fn read(
        cursor: &mut Cursor<'_>,
        place: &impl EntryPlace,
    ) -> Result<Value, GgufError> {
        let value_type = ValueType::read(cursor, || place("value type", None))?;
        let here = || place("value", None);
        Ok(match value_type {
            ValueType::U8 => Value::U8(u8::from_le_bytes(cursor.array(here)?)),
            ValueType::I8 => Value::I8(i8::from_le_bytes(cursor.array(here)?)),
            ValueType::U16 => Value::U16(u16::from_le_bytes(cursor.array(here)?)),
            ValueType::I16 => Value::I16(i16::from_le_bytes(cursor.array(here)?)),
            ValueType::U32 => Value::U32(cursor.u32(here)?),
            ValueType::I32 => Value::I32(i32::from_le_bytes(cursor.array(here)?)),
            ValueType::F32 => Value::F32(f32::from_le_bytes(cursor.array(here)?)),
            ValueType::Bool => {
                let at = cursor.offset();
                let [byte] = cursor.array(here)?;
                Value::Bool(
                    bool_from(byte)
                        .ok_or_else(|| here().problem(at, Problem::Bool { found: byte }))?,
                )
            }
            ValueType::String => Value::String(cursor.str(here)?.to_owned()),
            ValueType::Array => Value::Array(Array::read(cursor, place)?),
            ValueType::U64 => Value::U64(cursor.u64(here)?),
            ValueType::I64 => Value::I64(i64::from_le_bytes(cursor.array(here)?)),
            ValueType::F64 => Value::F64(f64::from_le_bytes(cursor.array(here)?)),
        })
    }

    /// The type as errors and `inspect` print it, such as `u32` or `array of string`.
    #[must_use]
    pub fn type_name(&self) -> String {
        match self {
            Value::U8(_) => "u8".to_owned(),
            Value::I8(_) => "i8".to_owned(),
            Value::U16(_) => "u16".to_owned(),
            Value::I16(_) => "i16".to_owned(),
            Value::U32(_) => "u32".to_owned(),
            Value::I32(_) => "i32".to_owned(),
            Value::F32(_) => "f32".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            Value::String(_) => "string".to_owned(),
            Value::Array(array) => format!("array of {}", array.element_type_name()),
            Value::U64(_) => "u64".to_owned(),
            Value::I64(_) => "i64".to_owned(),
            Value::F64(_) => "f64".to_owned(),
        }
    }

    /// The value as an integer, whatever integer type holds it; `None` for other types.
    #[must_use]
    pub fn as_integer(&self) -> Option<i128> {
        match *self {
            Value::U8(v) => Some(v.into()),
            Value::I8(v) => Some(v.into()),
            Value::U16(v) => Some(v.into()),
            Value::I16(v) => Some(v.into()),
            Value::U32(v) => Some(v.into()),
            Value::I32(v) => Some(v.into()),
            Value::U64(v) => Some(v.into()),
            Value::I64(v) => Some(v.into()),
            Value::F32(_) | Value::F64(_) | Value::Bool(_) | Value::String(_) | Value::Array(_) => {
                None
            }
        }
    }
}

impl Array {
    /// Reads an array: element type number, u64 length, elements.
    fn read(cursor: &mut Cursor<'_>, place: &impl EntryPlace) -> Result<Array, GgufError> {
        let type_at = cursor.offset();
        let element_type = ValueType::read(cursor, || place("array element type", None))?;
        let len_at = cursor.offset();
        let len = cursor.u64(|| place("array length", None))?;
        Ok(match element_type {
            ValueType::U8 => Array::U8(numbers(cursor, len, len_at, place, u8::from_le_bytes)?),
            ValueType::I8 => Array::I8(numbers(cursor, len, len_at, place, i8::from_le_bytes)?),
            ValueType::U16 => Array::U16(numbers(cursor, len, len_at, place, u16::from_le_bytes)?),
            ValueType::I16 => Array::I16(numbers(cursor, len, len_at, place, i16::from_le_bytes)?),
            ValueType::U32 => Array::U32(numbers(cursor, len, len_at, place, u32::from_le_bytes)?),
            ValueType::I32 => Array::I32(numbers(cursor, len, len_at, place, i32::from_le_bytes)?),
            ValueType::F32 => Array::F32(numbers(cursor, len, len_at, place, f32::from_le_bytes)?),
            ValueType::U64 => Array::U64(numbers(cursor, len, len_at, place, u64::from_le_bytes)?),
            ValueType::I64 => Array::I64(numbers(cursor, len, len_at, place, i64::from_le_bytes)?),
            ValueType::F64 => Array::F64(numbers(cursor, len, len_at, place, f64::from_le_bytes)?),
            ValueType::Bool => Array::Bool(bools(cursor, len, len_at, place)?),
            ValueType::String => Array::String(strings(cursor, len, len_at, place)?),
            ValueType::Array => {
                return Err(
                    place("array element type", None).problem(type_at, Problem::NestedArray)
                );
            }
        })
    }

    /// The elements as integers, whatever integer type holds them; `None` for other types.
    pub(super) fn integers(&self) -> Option<Box<dyn Iterator<Item = i128> + '_>> {
        Some(match self {
            Array::U8(v) => Box::new(v.iter().map(|&n| n.into())),
            Array::I8(v) => Box::new(v.iter().map(|&n| n.into())),
            Array::U16(v) => Box::new(v.iter().map(|&n| n.into())),
            Array::I16(v) => Box::new(v.iter().map(|&n| n.into())),
            Array::U32(v) => Box::new(v.iter().map(|&n| n.into())),
            Array::I32(v) => Box::new(v.iter().map(|&n| n.into())),
            Array::U64(v) => Box::new(v.iter().map(|&n| n.into())),
            Array::I64(v) => Box::new(v.iter().map(|&n| n.into())),
            Array::F32(_) | Array::F64(_) | Array::Bool(_) | Array::String(_) => return None,
        })
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Array::U8(v) => v.len(),
            Array::I8(v) => v.len(),
            Array::U16(v) => v.len(),
            Array::I16(v) => v.len(),
            Array::U32(v) => v.len(),
            Array::I32(v) => v.len(),
            Array::F32(v) => v.len(),
            Array::Bool(v) => v.len(),
            Array::String(v) => v.len(),
            Array::U64(v) => v.len(),
            Array::I64(v) => v.len(),
            Array::F64(v) => v.len(),
        }
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element type as errors and `inspect` print it.
    #[must_use]
    pub fn element_type_name(&self) -> &'static str {
        match self {
            Array::U8(_) => "u8",
            Array::I8(_) => "i8",
            Array::U16(_) => "u16",
            Array::I16(_) => "i16",
            Array::U32(_) => "u32",
            Array::I32(_) => "i32",
            Array::F32(_) => "f32",
            Array::Bool(_) => "bool",
            Array::String(_) => "string",
            Array::U64(_) => "u64",
            Array::I64(_) => "i64",
            Array::F64(_) => "f64",
        }
    }
}

fn bool_from(byte: u8) -> Option<bool> {
    match byte {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// Reads `len` packed numbers of `N` bytes each.
fn numbers<T, const N: usize>(
    cursor: &mut Cursor<'_>,
    len: u64,
    len_at: u64,
    place: &impl EntryPlace,
    from_le_bytes: fn([u8; N]) -> T,
) -> Result<Vec<T>, GgufError> {
    let len = cursor.check_count(len, N as u64, len_at, || place("array length", None))?;
    let bytes = cursor.take((len * N) as u64, || place("array", None))?;
    let (elements, _) = bytes.as_chunks::<N>();
    Ok(elements.iter().copied().map(from_le_bytes).collect())
}

fn bools(
    cursor: &mut Cursor<'_>,
    len: u64,
    len_at: u64,
    place: &impl EntryPlace,
) -> Result<Vec<bool>, GgufError> {
    let len = cursor.check_count(len, 1, len_at, || place("array length", None))?;
    let start = cursor.offset();
    let bytes = cursor.take(len as u64, || place("array", None))?;
    let mut truths = Vec::with_capacity(len);
    for (index, &byte) in bytes.iter().enumerate() {
        let truth = bool_from(byte).ok_or_else(|| {
            let at = start + index as u64;
            place("value", Some(index)).problem(at, Problem::Bool { found: byte })
        })?;
        truths.push(truth);
    }
    Ok(truths)
}

/// Reads `len` strings in two passes, so that the buffers are exactly as large as needed.
fn strings(
    cursor: &mut Cursor<'_>,
    len: u64,
    len_at: u64,
    place: &impl EntryPlace,
) -> Result<StringArray, GgufError> {
    const LENGTH_BYTES: u64 = 8;
    let len = cursor.check_count(len, LENGTH_BYTES, len_at, || place("array length", None))?;
    let mut measure = cursor.clone();
    let mut text_bytes = 0;
    for index in 0..len {
        let bytes = measure.u64(|| place("string length", Some(index)))?;
        text_bytes += measure.take(bytes, || place("string", Some(index)))?.len();
    }
    let (mut text, mut ends) = (String::with_capacity(text_bytes), Vec::with_capacity(len));
    for index in 0..len {
        text.push_str(cursor.str(|| place("string", Some(index)))?);
        ends.push(text.len());
    }
    Ok(StringArray {
        text: text.into(),
        ends: ends.into(),
    })
}
