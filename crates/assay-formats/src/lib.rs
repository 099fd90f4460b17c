//! What bytes on disk mean: GGUF over a memory map, element types, exact block formats.
//!
//! No compute beyond exact dequantisation, no knowledge of models. Every number read from a file is
//! untrusted: no input may panic, hang, or make us allocate more than a small multiple of the file's own size.

#![deny(unsafe_code)]

pub mod dtype;
pub mod gguf;
pub mod mmap;
pub mod quant;

pub use dtype::DType;
pub use gguf::{GgufError, GgufFile, Metadata, TensorInfo};
