//! Arrays of one scalar type, as views of the file's bytes.

use super::cursor::Cursor;
use super::error::{GgufError, Place, Problem};
use super::value::{EntryPlace, bool_from};

/// The type of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is named as in the format")]
pub enum ElementType {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    String,
    U64,
    I64,
    F64,
}

/// Bytes of a string's length, the least that a string takes.
const LENGTH_BYTES: usize = 8;

impl ElementType {
    /// The type with this number in the file; `None` for arrays and numbers that do not exist.
    pub(super) fn from_gguf(number: u32) -> Option<ElementType> {
        Some(match number {
            0 => ElementType::U8,
            1 => ElementType::I8,
            2 => ElementType::U16,
            3 => ElementType::I16,
            4 => ElementType::U32,
            5 => ElementType::I32,
            6 => ElementType::F32,
            7 => ElementType::Bool,
            8 => ElementType::String,
            10 => ElementType::U64,
            11 => ElementType::I64,
            12 => ElementType::F64,
            _ => return None,
        })
    }

    /// The name that errors and `inspect` print.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ElementType::U8 => "u8",
            ElementType::I8 => "i8",
            ElementType::U16 => "u16",
            ElementType::I16 => "i16",
            ElementType::U32 => "u32",
            ElementType::I32 => "i32",
            ElementType::F32 => "f32",
            ElementType::Bool => "bool",
            ElementType::String => "string",
            ElementType::U64 => "u64",
            ElementType::I64 => "i64",
            ElementType::F64 => "f64",
        }
    }

    /// Bytes of an element; for strings the least one takes.
    fn bytes(self) -> usize {
        match self {
            ElementType::U8 | ElementType::I8 | ElementType::Bool => 1,
            ElementType::U16 | ElementType::I16 => 2,
            ElementType::U32 | ElementType::I32 | ElementType::F32 => 4,
            ElementType::U64 | ElementType::I64 | ElementType::F64 => 8,
            ElementType::String => LENGTH_BYTES,
        }
    }
}

/// An array of one scalar type, borrowed from the file. The readers answer `None` for other element types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Array<'a> {
    element_type: ElementType,
    len: usize,
    /// The elements; of strings, everything from the first one to the end of the file.
    bytes: &'a [u8],
}

impl<'a> Array<'a> {
    /// Reads element type and length; `cursor` stays before the elements.
    pub(super) fn view(
        cursor: &mut Cursor<'a>,
        place: &impl EntryPlace,
    ) -> Result<Array<'a>, GgufError> {
        let type_place = || place("array element type", None);
        let type_at = cursor.offset();
        let found = cursor.u32(type_place)?;
        let element_type = ElementType::from_gguf(found).ok_or_else(|| {
            let problem = match found {
                9 => Problem::NestedArray,
                found => Problem::ValueType { found },
            };
            type_place().problem(type_at, problem)
        })?;
        let len_place = || place("array length", None);
        let len_at = cursor.offset();
        let len = cursor.u64(len_place)?;
        let len = cursor.check_count(len, element_type.bytes() as u64, len_at, len_place)?;
        let rest = cursor.rest();
        let bytes = match element_type {
            ElementType::String => rest,
            _ => rest.get(..len * element_type.bytes()).unwrap_or_default(),
        };
        Ok(Array {
            element_type,
            len,
            bytes,
        })
    }

    /// Checks every element; `cursor` moves from the first to behind the last.
    pub(super) fn check(
        &self,
        cursor: &mut Cursor<'a>,
        place: &impl EntryPlace,
    ) -> Result<(), GgufError> {
        if self.element_type == ElementType::String {
            for index in 0..self.len {
                cursor.text(
                    || place("string length", Some(index)),
                    || place("string", Some(index)),
                )?;
            }
            return Ok(());
        }
        let start = cursor.offset();
        let bytes = cursor.take(self.bytes.len() as u64, || place("array", None))?;
        if self.element_type == ElementType::Bool
            && let Some(index) = bytes.iter().position(|&byte| bool_from(byte).is_none())
        {
            let found = bytes.get(index).copied().unwrap_or_default();
            let place = place("value", Some(index));
            return Err(place.problem(start + index as u64, Problem::Bool { found }));
        }
        Ok(())
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The type of the elements.
    #[must_use]
    pub fn element_type(&self) -> ElementType {
        self.element_type
    }

    /// The elements of an array of strings.
    #[must_use]
    pub fn strings(&self) -> Option<Strings<'a>> {
        self.bytes_of(ElementType::String).map(|bytes| Strings {
            cursor: Cursor::new(bytes),
            left: self.len,
        })
    }

    /// The elements of an array of bool.
    pub fn bools(&self) -> Option<impl ExactSizeIterator<Item = bool> + Clone + use<'a>> {
        let bytes = self.bytes_of(ElementType::Bool)?;
        Some(bytes.iter().map(|&byte| byte != 0))
    }

    /// The elements of an array of f32, NaN and infinities included.
    pub fn f32s(&self) -> Option<impl ExactSizeIterator<Item = f32> + Clone + use<'a>> {
        let (numbers, _) = self.bytes_of(ElementType::F32)?.as_chunks();
        Some(numbers.iter().map(|&bytes| f32::from_le_bytes(bytes)))
    }

    /// The elements of an array of f64, NaN and infinities included.
    pub fn f64s(&self) -> Option<impl ExactSizeIterator<Item = f64> + Clone + use<'a>> {
        let (numbers, _) = self.bytes_of(ElementType::F64)?.as_chunks();
        Some(numbers.iter().map(|&bytes| f64::from_le_bytes(bytes)))
    }

    /// The elements as integers, whatever integer type holds them.
    pub fn integers(&self) -> Option<impl ExactSizeIterator<Item = i128> + Clone + use<'a>> {
        let signed = match self.element_type {
            ElementType::U8 | ElementType::U16 | ElementType::U32 | ElementType::U64 => false,
            ElementType::I8 | ElementType::I16 | ElementType::I32 | ElementType::I64 => true,
            ElementType::F32 | ElementType::F64 | ElementType::Bool | ElementType::String => {
                return None;
            }
        };
        let numbers = self.bytes.chunks_exact(self.element_type.bytes());
        Some(numbers.map(move |bytes| extended(bytes, signed)))
    }

    /// The elements of an array of u8 or i8, as bytes.
    #[must_use]
    pub fn bytes(&self) -> Option<&'a [u8]> {
        self.bytes_of(ElementType::U8)
            .or(self.bytes_of(ElementType::I8))
    }

    fn bytes_of(&self, element_type: ElementType) -> Option<&'a [u8]> {
        (self.element_type == element_type).then_some(self.bytes)
    }
}

/// The little-endian integer in `bytes` (at most eight), sign-extended when it is `signed`.
fn extended(bytes: &[u8], signed: bool) -> i128 {
    let negative = signed && bytes.last().is_some_and(|&top| top >= 0x80);
    let mut wide = [if negative { 0xff } else { 0 }; 16];
    for (place, &byte) in wide.iter_mut().zip(bytes) {
        *place = byte;
    }
    i128::from_le_bytes(wide)
}

/// The strings of an array, in order, borrowed from the file.
#[derive(Debug, Clone)]
pub struct Strings<'a> {
    cursor: Cursor<'a>,
    left: usize,
}

impl<'a> Iterator for Strings<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.left = self.left.checked_sub(1)?;
        // Checked when the header was parsed; a file rewritten since then reads as empty strings.
        let place = || Place::Header { field: "string" };
        Some(self.cursor.str(place).unwrap_or_default())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Strings<'_> {}
