//! Writes GGUF files in memory, for tests: tiny models, vocabularies, and good files to damage.
//!
//! It writes what it is told and pads as the format says. Mistakes of the test's author (a size that does not match
//! the shape) panic with the tensor's name; deliberately bad files are made by editing the bytes.

use assay_formats::DType;

use crate::gguf_value::{Array, Value};

/// Builds a GGUF v3 file; entries and tensors keep the order in which they were added.
///
/// ```
/// use assay_testkit::gguf_writer::GgufWriter;
/// let bytes = GgufWriter::new()
///     .str("general.architecture", "llama")
///     .u32("llama.block_count", 2)
///     .tensor_f32("output_norm.weight", &[4], &[1.0; 4])
///     .build();
/// assert!(assay_formats::gguf::Gguf::parse(bytes).is_ok());
/// ```
#[derive(Debug, Clone)]
pub struct GgufWriter {
    entries: Vec<(String, Value)>,
    tensors: Vec<Tensor>,
    alignment: usize,
}

#[derive(Debug, Clone)]
struct Tensor {
    name: String,
    dtype: DType,
    shape: Vec<u64>,
    bytes: Vec<u8>,
}

impl Default for GgufWriter {
    fn default() -> GgufWriter {
        GgufWriter::new()
    }
}

impl GgufWriter {
    /// An empty file with the default alignment of 32.
    #[must_use]
    pub fn new() -> GgufWriter {
        GgufWriter {
            entries: Vec::new(),
            tensors: Vec::new(),
            alignment: 32,
        }
    }

    /// Adds an entry of any type.
    #[must_use]
    pub fn kv(mut self, key: &str, value: Value) -> GgufWriter {
        self.entries.push((key.to_owned(), value));
        self
    }

    /// Adds a string.
    #[must_use]
    pub fn str(self, key: &str, value: &str) -> GgufWriter {
        self.kv(key, Value::String(value.to_owned()))
    }

    /// Adds a u32.
    #[must_use]
    pub fn u32(self, key: &str, value: u32) -> GgufWriter {
        self.kv(key, Value::U32(value))
    }

    /// Adds an i32.
    #[must_use]
    pub fn i32(self, key: &str, value: i32) -> GgufWriter {
        self.kv(key, Value::I32(value))
    }

    /// Adds a u64.
    #[must_use]
    pub fn u64(self, key: &str, value: u64) -> GgufWriter {
        self.kv(key, Value::U64(value))
    }

    /// Adds an f32.
    #[must_use]
    pub fn f32(self, key: &str, value: f32) -> GgufWriter {
        self.kv(key, Value::F32(value))
    }

    /// Adds a bool.
    #[must_use]
    pub fn bool(self, key: &str, value: bool) -> GgufWriter {
        self.kv(key, Value::Bool(value))
    }

    /// Adds an array of strings.
    #[must_use]
    pub fn str_array<S: AsRef<str>>(
        self,
        key: &str,
        values: impl IntoIterator<Item = S>,
    ) -> GgufWriter {
        let strings = values.into_iter().map(|text| text.as_ref().to_owned());
        self.kv(key, Value::Array(Array::String(strings.collect())))
    }

    /// Adds an array of f32.
    #[must_use]
    pub fn f32_array(self, key: &str, values: &[f32]) -> GgufWriter {
        self.kv(key, Value::Array(Array::F32(values.to_vec())))
    }

    /// Adds an array of i32.
    #[must_use]
    pub fn i32_array(self, key: &str, values: &[i32]) -> GgufWriter {
        self.kv(key, Value::Array(Array::I32(values.to_vec())))
    }

    /// Adds an array of u32.
    #[must_use]
    pub fn u32_array(self, key: &str, values: &[u32]) -> GgufWriter {
        self.kv(key, Value::Array(Array::U32(values.to_vec())))
    }

    /// Sets the alignment of tensor data and adds the entry that says so.
    ///
    /// # Panics
    /// When `alignment` is zero.
    #[must_use]
    pub fn alignment(mut self, alignment: u32) -> GgufWriter {
        assert_ne!(alignment, 0, "the writer cannot align to zero");
        self.alignment = alignment as usize;
        self.u32("general.alignment", alignment)
    }

    /// Adds a tensor; `shape` is innermost first, `bytes` its data.
    ///
    /// # Panics
    /// When `bytes` is not the size that shape and type imply.
    #[must_use]
    pub fn tensor(mut self, name: &str, dtype: DType, shape: &[u64], bytes: &[u8]) -> GgufWriter {
        let row = shape.first().map_or(0, |&row| row as usize);
        let rows: u64 = shape.iter().skip(1).product();
        let expected = dtype
            .row_bytes(row)
            .map(|row_bytes| row_bytes * rows as usize);
        assert_eq!(
            Some(bytes.len()),
            expected,
            "bytes of tensor {name}, {dtype} {shape:?}"
        );
        self.tensors.push(Tensor {
            name: name.to_owned(),
            dtype,
            shape: shape.to_vec(),
            bytes: bytes.to_vec(),
        });
        self
    }

    /// Adds an F32 tensor; `shape` is innermost first.
    ///
    /// # Panics
    /// When the number of values is not the product of the dimensions.
    #[must_use]
    pub fn tensor_f32(self, name: &str, shape: &[u64], values: &[f32]) -> GgufWriter {
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        self.tensor(name, DType::F32, shape, &bytes)
    }

    /// The file's bytes.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(b"GGUF");
        out.extend_from_slice(&3_u32.to_le_bytes());
        out.extend_from_slice(&(self.tensors.len() as u64).to_le_bytes());
        out.extend_from_slice(&(self.entries.len() as u64).to_le_bytes());
        for (key, value) in &self.entries {
            push_str(&mut out, key);
            push_value(&mut out, value);
        }
        let mut data_len = 0;
        for tensor in &self.tensors {
            push_str(&mut out, &tensor.name);
            out.extend_from_slice(&(tensor.shape.len() as u32).to_le_bytes());
            for size in &tensor.shape {
                out.extend_from_slice(&size.to_le_bytes());
            }
            out.extend_from_slice(&tensor.dtype.ggml_id().to_le_bytes());
            out.extend_from_slice(&(data_len as u64).to_le_bytes());
            data_len += tensor.bytes.len().next_multiple_of(self.alignment);
        }
        for tensor in &self.tensors {
            out.resize(out.len().next_multiple_of(self.alignment), 0);
            out.extend_from_slice(&tensor.bytes);
        }
        out.resize(out.len().next_multiple_of(self.alignment), 0);
        out
    }
}

fn push_str(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn push_value(out: &mut Vec<u8>, value: &Value) {
    macro_rules! scalar {
        ($number:literal, $bytes:expr) => {{
            out.extend_from_slice(&u32::to_le_bytes($number));
            out.extend_from_slice($bytes);
        }};
    }
    match value {
        Value::U8(v) => scalar!(0, &v.to_le_bytes()),
        Value::I8(v) => scalar!(1, &v.to_le_bytes()),
        Value::U16(v) => scalar!(2, &v.to_le_bytes()),
        Value::I16(v) => scalar!(3, &v.to_le_bytes()),
        Value::U32(v) => scalar!(4, &v.to_le_bytes()),
        Value::I32(v) => scalar!(5, &v.to_le_bytes()),
        Value::F32(v) => scalar!(6, &v.to_le_bytes()),
        Value::Bool(v) => scalar!(7, &[u8::from(*v)]),
        Value::String(v) => {
            scalar!(8, &[]);
            push_str(out, v);
        }
        Value::Array(array) => {
            scalar!(9, &[]);
            push_array(out, array);
        }
        Value::U64(v) => scalar!(10, &v.to_le_bytes()),
        Value::I64(v) => scalar!(11, &v.to_le_bytes()),
        Value::F64(v) => scalar!(12, &v.to_le_bytes()),
    }
}

fn push_array(out: &mut Vec<u8>, array: &Array) {
    macro_rules! numbers {
        ($number:literal, $values:expr) => {{
            out.extend_from_slice(&u32::to_le_bytes($number));
            out.extend_from_slice(&($values.len() as u64).to_le_bytes());
            out.extend($values.iter().flat_map(|v| v.to_le_bytes()));
        }};
    }
    match array {
        Array::U8(v) => numbers!(0, v),
        Array::I8(v) => numbers!(1, v),
        Array::U16(v) => numbers!(2, v),
        Array::I16(v) => numbers!(3, v),
        Array::U32(v) => numbers!(4, v),
        Array::I32(v) => numbers!(5, v),
        Array::F32(v) => numbers!(6, v),
        Array::Bool(v) => {
            out.extend_from_slice(&7_u32.to_le_bytes());
            out.extend_from_slice(&(v.len() as u64).to_le_bytes());
            out.extend(v.iter().map(|&truth| u8::from(truth)));
        }
        Array::String(v) => {
            out.extend_from_slice(&8_u32.to_le_bytes());
            out.extend_from_slice(&(v.len() as u64).to_le_bytes());
            v.iter().for_each(|text| push_str(out, text));
        }
        Array::U64(v) => numbers!(10, v),
        Array::I64(v) => numbers!(11, v),
        Array::F64(v) => numbers!(12, v),
    }
}
