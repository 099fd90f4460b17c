//! Bytes of a GGUF file, field by field, with nothing checked: the generator of bad files.
//!
//! Unlike the test kit's writer it can say anything, and it remembers where the offending field stands.

/// A file under construction.
#[derive(Clone)]
pub(crate) struct Raw {
    pub(crate) bytes: Vec<u8>,
    /// Offset that the error must name.
    pub(crate) marked: Option<usize>,
}

impl Raw {
    pub(crate) fn of(bytes: &[u8]) -> Raw {
        Raw {
            bytes: bytes.to_vec(),
            marked: None,
        }
    }

    /// The fixed header: magic, version 3, counts.
    pub(crate) fn header(tensors: u64, entries: u64) -> Raw {
        Raw::of(b"GGUF").u32(3).u64(tensors).u64(entries)
    }

    /// A file with this one entry's fields to follow.
    pub(crate) fn entry(key: &str, value_type: u32) -> Raw {
        Raw::header(0, 1).str(key).u32(value_type)
    }

    /// A file with one array entry, its elements to follow.
    pub(crate) fn array(key: &str, element_type: u32, len: u64) -> Raw {
        Raw::entry(key, 9).u32(element_type).u64(len)
    }

    /// The next field is the offending one.
    pub(crate) fn mark(mut self) -> Raw {
        self.marked = Some(self.bytes.len());
        self
    }

    /// The error is to name the place `back` bytes before this one.
    pub(crate) fn mark_back(mut self, back: usize) -> Raw {
        self.marked = Some(self.bytes.len() - back);
        self
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Raw {
        self.bytes.extend_from_slice(bytes);
        self
    }

    pub(crate) fn u32(self, value: u32) -> Raw {
        self.raw(&value.to_le_bytes())
    }

    pub(crate) fn u64(self, value: u64) -> Raw {
        self.raw(&value.to_le_bytes())
    }

    pub(crate) fn str(self, text: &str) -> Raw {
        self.u64(text.len() as u64).raw(text.as_bytes())
    }

    /// A tensor's fields up to its dimensions.
    pub(crate) fn tensor(self, name: &str, shape: &[u64]) -> Raw {
        let raw = self.str(name).u32(shape.len() as u32);
        shape.iter().fold(raw, |raw, &size| raw.u64(size))
    }

    /// A tensor's type and offset.
    pub(crate) fn data(self, dtype: u32, offset: u64) -> Raw {
        self.u32(dtype).u64(offset)
    }

    /// Pads to the default alignment, then adds `len` bytes of tensor data.
    pub(crate) fn section(mut self, len: usize) -> Raw {
        let start = self.bytes.len().next_multiple_of(32);
        self.bytes.resize(start + len, 0x5a);
        self
    }
}
