//! What bytes on disk mean: GGUF over a memory map, element types, exact block formats.
//!
//! No compute beyond exact dequantisation, no knowledge of models. Every number read from a file is
//! untrusted: no input may panic, hang, or make us allocate more than its own size.
//!
//! ```no_run
//! use assay_formats::{GgufFile, quant};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let file = GgufFile::open("model.gguf".as_ref())?;
//! let architecture = file.metadata().str("general.architecture")?.unwrap_or("unnamed");
//! for tensor in file.tensors().iter() {
//!     println!("{architecture} {} {} {:?}", tensor.name, tensor.dtype, tensor.shape);
//! }
//! if let Some(norm) = file.tensor("output_norm.weight") {
//!     let mut values = vec![0.0; norm.num_elements() as usize];
//!     quant::dequantize(norm.dtype, file.tensor_bytes(&norm), &mut values)?;
//! }
//! # Ok(())
//! # }
//! ```

#![deny(unsafe_code)]

pub mod dtype;
pub mod gguf;
pub mod mmap;
pub mod packed_cache;
pub mod quant;

pub use dtype::DType;
pub use gguf::{GgufError, GgufFile, Metadata, TensorInfo};
