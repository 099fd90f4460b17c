//! Metadata values as they lie in the file: scalars decoded, strings and arrays borrowed.
//!
//! Nothing here allocates. An array is a view of the file's bytes whose every element was checked when the header
//! was parsed; elements are decoded as they are asked for. Arrays of arrays are refused: no model file we support
//! has them.

use super::array::{Array, ElementType};
use super::cursor::Cursor;
use super::error::{GgufError, Place, Problem};

/// A metadata value of any GGUF type; text and arrays borrow the file.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs, reason = "each variant is the Rust type it holds")]
pub enum Value<'a> {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    String(&'a str),
    Array(Array<'a>),
    U64(u64),
    I64(i64),
    F64(f64),
}

/// A GGUF value type number.
enum ValueType {
    Element(ElementType),
    Array,
}

impl ValueType {
    const ARRAY: u32 = 9;

    fn read(cursor: &mut Cursor<'_>, place: impl Fn() -> Place) -> Result<ValueType, GgufError> {
        let at = cursor.offset();
        match cursor.u32(&place)? {
            ValueType::ARRAY => Ok(ValueType::Array),
            found => match ElementType::from_gguf(found) {
                Some(element_type) => Ok(ValueType::Element(element_type)),
                None => Err(place().problem(at, Problem::ValueType { found })),
            },
        }
    }
}

/// Makes the [`Place`] of a field of the current entry: the field's name and the element it concerns.
pub(super) trait EntryPlace: Fn(&'static str, Option<usize>) -> Place {}
impl<F: Fn(&'static str, Option<usize>) -> Place> EntryPlace for F {}

impl<'a> Value<'a> {
    /// Reads a value, its type number first, and checks every byte of it; `cursor` ends behind it.
    pub(super) fn read(
        cursor: &mut Cursor<'a>,
        place: &impl EntryPlace,
    ) -> Result<Value<'a>, GgufError> {
        let value = Value::view(cursor, place)?;
        if let Value::Array(array) = value {
            array.check(cursor, place)?;
        }
        Ok(value)
    }

    /// As [`Value::read`], but leaves `cursor` before an array's elements, which are neither checked nor walked: a
    /// look-up takes the same time whatever the value's length.
    pub(super) fn view(
        cursor: &mut Cursor<'a>,
        place: &impl EntryPlace,
    ) -> Result<Value<'a>, GgufError> {
        let here = || place("value", None);
        let element_type = match ValueType::read(cursor, || place("value type", None))? {
            ValueType::Element(element_type) => element_type,
            ValueType::Array => return Array::view(cursor, place).map(Value::Array),
        };
        Ok(match element_type {
            ElementType::U8 => Value::U8(u8::from_le_bytes(cursor.array(here)?)),
            ElementType::I8 => Value::I8(i8::from_le_bytes(cursor.array(here)?)),
            ElementType::U16 => Value::U16(u16::from_le_bytes(cursor.array(here)?)),
            ElementType::I16 => Value::I16(i16::from_le_bytes(cursor.array(here)?)),
            ElementType::U32 => Value::U32(cursor.u32(here)?),
            ElementType::I32 => Value::I32(i32::from_le_bytes(cursor.array(here)?)),
            ElementType::F32 => Value::F32(f32::from_le_bytes(cursor.array(here)?)),
            ElementType::Bool => {
                let at = cursor.offset();
                let [byte] = cursor.array(here)?;
                let truth = bool_from(byte);
                Value::Bool(truth.ok_or_else(|| here().problem(at, Problem::Bool { found: byte }))?)
            }
            ElementType::String => Value::String(cursor.str(here)?),
            ElementType::U64 => Value::U64(cursor.u64(here)?),
            ElementType::I64 => Value::I64(i64::from_le_bytes(cursor.array(here)?)),
            ElementType::F64 => Value::F64(f64::from_le_bytes(cursor.array(here)?)),
        })
    }

    /// The type as errors and `inspect` print it, such as `u32` or `array of string`.
    #[must_use]
    pub fn type_name(&self) -> String {
        let element_type = match self {
            Value::U8(_) => ElementType::U8,
            Value::I8(_) => ElementType::I8,
            Value::U16(_) => ElementType::U16,
            Value::I16(_) => ElementType::I16,
            Value::U32(_) => ElementType::U32,
            Value::I32(_) => ElementType::I32,
            Value::F32(_) => ElementType::F32,
            Value::Bool(_) => ElementType::Bool,
            Value::String(_) => ElementType::String,
            Value::Array(array) => return format!("array of {}", array.element_type().name()),
            Value::U64(_) => ElementType::U64,
            Value::I64(_) => ElementType::I64,
            Value::F64(_) => ElementType::F64,
        };
        element_type.name().to_owned()
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

pub(super) fn bool_from(byte: u8) -> Option<bool> {
    match byte {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}
