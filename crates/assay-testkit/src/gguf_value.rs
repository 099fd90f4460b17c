//! Metadata values that own what they hold: what a test writes to a file, and what it compares with what was read.

use assay_formats::gguf;

/// A metadata value of any GGUF type, owned.
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

/// An array of one GGUF scalar type, owned.
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
    String(Vec<String>),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F64(Vec<f64>),
}

impl From<gguf::Value<'_>> for Value {
    fn from(value: gguf::Value<'_>) -> Value {
        match value {
            gguf::Value::U8(v) => Value::U8(v),
            gguf::Value::I8(v) => Value::I8(v),
            gguf::Value::U16(v) => Value::U16(v),
            gguf::Value::I16(v) => Value::I16(v),
            gguf::Value::U32(v) => Value::U32(v),
            gguf::Value::I32(v) => Value::I32(v),
            gguf::Value::F32(v) => Value::F32(v),
            gguf::Value::Bool(v) => Value::Bool(v),
            gguf::Value::String(v) => Value::String(v.to_owned()),
            gguf::Value::Array(v) => Value::Array(v.into()),
            gguf::Value::U64(v) => Value::U64(v),
            gguf::Value::I64(v) => Value::I64(v),
            gguf::Value::F64(v) => Value::F64(v),
        }
    }
}

impl From<gguf::Array<'_>> for Array {
    fn from(array: gguf::Array<'_>) -> Array {
        use gguf::ElementType;
        match array.element_type() {
            ElementType::U8 => Array::U8(integers(array)),
            ElementType::I8 => Array::I8(integers(array)),
            ElementType::U16 => Array::U16(integers(array)),
            ElementType::I16 => Array::I16(integers(array)),
            ElementType::U32 => Array::U32(integers(array)),
            ElementType::I32 => Array::I32(integers(array)),
            ElementType::U64 => Array::U64(integers(array)),
            ElementType::I64 => Array::I64(integers(array)),
            ElementType::F32 => Array::F32(array.f32s().into_iter().flatten().collect()),
            ElementType::F64 => Array::F64(array.f64s().into_iter().flatten().collect()),
            ElementType::Bool => Array::Bool(array.bools().into_iter().flatten().collect()),
            ElementType::String => {
                let strings = array.strings().into_iter().flatten();
                Array::String(strings.map(str::to_owned).collect())
            }
        }
    }
}

fn integers<T: TryFrom<i128>>(array: gguf::Array<'_>) -> Vec<T> {
    let integers = array.integers().into_iter().flatten();
    integers
        .filter_map(|number| T::try_from(number).ok())
        .collect()
}
