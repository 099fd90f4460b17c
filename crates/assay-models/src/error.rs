//! What can be wrong with a model file, by what its reader can do about it: the key, or the tensors.

use std::fmt;

use assay_formats::GgufError;
use assay_kernels::cuda::CudaError;
use assay_kernels::matmul::PackError;
use assay_kernels::rope::RopeTableError;
use thiserror::Error;

/// Why a model could not be loaded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A metadata value has another type than its key needs, or does not fit it.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// The file's architecture is not one of ours.
    #[error(
        "architecture {found:?} (key `general.architecture`) is not supported by assay {}: it runs {supported}",
        env!("CARGO_PKG_VERSION")
    )]
    UnsupportedArchitecture {
        /// The name in the file.
        found: String,
        /// Names of the supported ones.
        supported: String,
    },
    /// A key that the architecture needs is absent.
    #[error("metadata key `{key}` is missing")]
    MissingKey {
        /// The key.
        key: String,
    },
    /// A value no model can have.
    #[error("metadata key `{key}` is {found}: expected {expected}")]
    InvalidValue {
        /// The key.
        key: String,
        /// The value in the file.
        found: String,
        /// What would have been accepted.
        expected: String,
    },
    /// A value that a model can have and this version cannot run.
    #[error(
        "metadata key `{key}` is {found}, which assay {} does not support for this architecture",
        env!("CARGO_PKG_VERSION")
    )]
    UnsupportedValue {
        /// The key.
        key: String,
        /// The value in the file.
        found: String,
    },
    /// Tensors that are missing, misshapen or unknown; every one of them.
    #[error("{0}")]
    Tensors(TensorProblems),
    /// The device cannot hold or run the model.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// A norm over more elements than a device's kernel keeps.
    #[error(
        "`{tensor}` normalises rows of {len} elements; a CUDA device has kernels for at most {max}; use --device cpu"
    )]
    NormTooLong {
        /// The tensor's name.
        tensor: String,
        /// Elements of a row.
        len: usize,
        /// Elements that the kernel keeps.
        max: usize,
    },
    /// The fast profile on a device, which has no kernels for it.
    #[error(
        "--numerics fast has no CUDA kernels; leave it out for the exact profile, or use --device cpu"
    )]
    FastOnCuda,
    /// A weight matrix could not be brought into the kernels' layout.
    #[error("tensor `{tensor}`: {source}")]
    Pack {
        /// The tensor.
        tensor: String,
        /// What the kernels said.
        #[source]
        source: PackError,
    },
    /// The rotation table cannot be made from the file's parameters.
    #[error("rotary positions (keys `rope.*`, tensor `rope_freqs.weight`): {0}")]
    Rope(#[from] RopeTableError),
    /// The system has no room for the KV cache asked for.
    #[error(
        "a KV cache of {num_kv_blocks} blocks for {num_layers} layers of {num_kv_heads} heads of {head_dim} is too large"
    )]
    KvCacheTooLarge {
        /// Blocks asked for.
        num_kv_blocks: usize,
        /// Layers of the model.
        num_layers: usize,
        /// KV heads of a layer.
        num_kv_heads: usize,
        /// Elements of a head.
        head_dim: usize,
    },
    /// The context asked for is longer than the model's.
    #[error(
        "a context of {requested} tokens was asked for, but the model's is {max_position_embeddings} (key `{key}`)"
    )]
    ContextTooLong {
        /// Tokens asked for.
        requested: usize,
        /// Tokens the model was made for.
        max_position_embeddings: usize,
        /// The key that says so.
        key: String,
    },
    /// An option of the load itself makes no sense.
    #[error("{option} must be at least 1")]
    ZeroOption {
        /// The option's name.
        option: &'static str,
    },
}

/// One thing wrong with one tensor.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TensorProblem {
    /// The architecture needs it and the file lacks it.
    #[error("`{name}` is missing (expected shape {})", Shape(expected))]
    Missing {
        /// The tensor.
        name: String,
        /// Its dimensions, innermost first.
        expected: Vec<u64>,
    },
    /// It has other dimensions than the metadata implies.
    #[error("`{name}` has shape {}, expected {}", Shape(found), Shape(expected))]
    Shape {
        /// The tensor.
        name: String,
        /// Dimensions implied, innermost first.
        expected: Vec<u64>,
        /// Dimensions in the file, innermost first.
        found: Vec<u64>,
    },
    /// Its element type cannot hold what it is for.
    #[error("`{name}` has type {found}, expected F32, F16 or BF16")]
    Type {
        /// The tensor.
        name: String,
        /// The type in the file.
        found: String,
    },
    /// No part of the architecture reads it, so the model would not be the file's.
    #[error("`{name}` is not part of this architecture")]
    Unexpected {
        /// The tensor.
        name: String,
    },
}

/// Every problem found, in the order of the architecture and then of the file; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorProblems(pub Vec<TensorProblem>);

/// Problems spelled out in a message; the rest are counted.
const SHOWN_PROBLEMS: usize = 40;

impl fmt::Display for TensorProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tensor problem(s)", self.0.len())?;
        for (index, problem) in self.0.iter().take(SHOWN_PROBLEMS).enumerate() {
            write!(f, "{} {problem}", if index == 0 { ":" } else { ";" })?;
        }
        match self.0.len().saturating_sub(SHOWN_PROBLEMS) {
            0 => Ok(()),
            rest => write!(f, "; and {rest} more"),
        }
    }
}

/// `[576, 49152]`.
struct Shape<'a>(&'a [u64]);

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}
