//! The kernels by name: those of every op, found once, and those of one matrix type.

use std::sync::Arc;

use assay_formats::DType;
use cudarc::driver::{CudaFunction, CudaModule};

use super::device::roomy;
use super::{Cuda, CudaError};
use crate::rms_norm::cuda::ROW_BYTES;

macro_rules! kernels {
    ($($name:ident,)*) => {
        /// The kernels that are the same for every model.
        #[derive(Debug)]
        pub(crate) struct Kernels {
            $(pub(crate) $name: CudaFunction,)*
        }

        impl Kernels {
            pub(super) fn load(module: &Arc<CudaModule>, is_hopper: bool) -> Result<Self, CudaError> {
                let find = |name: &str| {
                    let found = module.load_function(name);
                    found.map_err(CudaError::driver("finding a kernel"))
                };
                let kernels = Self {
                    $($name: find(stringify!($name))?,)*
                };
                roomy(&kernels.rms_norm, ROW_BYTES)?;
                if is_hopper {
                    for kernel in kernels.with_much_shared_memory() {
                        roomy(kernel, ATTENTION_SHARED_BYTES)?;
                    }
                }
                Ok(kernels)
            }
        }
    };
}

kernels! {
    attention_decode,
    attention_join,
    attention_split_4,
    attention_split_8,
    attention_split_16,
    attention_staged_4,
    attention_staged_8,
    attention_staged_16,
    attention_whole_16,
    attention_wide_64,
    attention_wide_128,
    exp64_all,
    exp_all,
    gelu_mul,
    kv_write,
    ln64_all,
    quantize_a16,
    residual_add,
    residual_bias,
    residual_gather,
    residual_scale,
    rms_norm,
    rope,
    rope_kv_write,
    row_scores_finish,
    row_scores_ids,
    row_scores_slices,
    row_scores_sums,
    silu_mul,
    softcap,
    top_k_merge,
    top_k_slices,
}

/// Shared memory that kernels of attention ask for at most, beside what they declare.
const ATTENTION_SHARED_BYTES: usize = 160 << 10;

impl Kernels {
    fn with_much_shared_memory(&self) -> [&CudaFunction; 6] {
        [
            &self.attention_decode,
            &self.attention_staged_4,
            &self.attention_staged_8,
            &self.attention_staged_16,
            &self.attention_wide_64,
            &self.attention_wide_128,
        ]
    }
}

/// The kernels that read one type of matrix.
#[derive(Debug)]
pub(crate) enum MatrixKernels {
    /// Quantised blocks in panels.
    Blocks {
        embed: CudaFunction,
        /// Up to 4 tokens a block of threads.
        gemv_1: CudaFunction,
        /// Up to 16.
        gemv_4: CudaFunction,
        /// Up to 32, all of K in one warp.
        gemm_8: CudaFunction,
        /// Up to 4, on compute capability 9.0.
        gemv_stream: Option<CudaFunction>,
        /// One of long rows, on compute capability 9.0.
        gemv_single: Option<CudaFunction>,
        /// Up to 128, on compute capability 9.0.
        gemm_wide: Option<CudaFunction>,
    },
    /// Floats, interleaved.
    Floats {
        embed: CudaFunction,
        matmul: CudaFunction,
    },
}

impl MatrixKernels {
    /// The kernels of matrices of type `dtype`, which `is_float` tells apart.
    pub(crate) fn find(cuda: &Cuda, dtype: DType, is_float: bool) -> Result<Self, CudaError> {
        let name = dtype.name().to_lowercase();
        let function = |kind: &str| cuda.function(&format!("{kind}_{name}"));
        Ok(if is_float {
            Self::Floats {
                embed: function("embed")?,
                matmul: function("float_matmul")?,
            }
        } else {
            let roomy = |kind: &str, is_there: bool| {
                let found = is_there.then(|| cuda.roomy_function(&format!("{kind}_{name}")));
                found.transpose()
            };
            Self::Blocks {
                // Offsets of 16 elements have no sums in the layout of the widest kernel.
                gemm_wide: roomy("gemm_wide", cuda.is_hopper() && dtype != DType::Q2K)?,
                gemv_single: roomy("gemv_single", cuda.is_hopper())?,
                gemv_stream: roomy("gemv_stream", cuda.is_hopper())?,
                embed: function("embed")?,
                gemv_1: function("gemv_1")?,
                gemv_4: function("gemv_4")?,
                gemm_8: function("gemm_8")?,
            }
        })
    }
}
