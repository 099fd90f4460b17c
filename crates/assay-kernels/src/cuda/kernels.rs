//! The kernels by name: those of every op, found once, and those of one matrix type.

use std::sync::Arc;

use assay_formats::DType;
use cudarc::driver::{CudaFunction, CudaModule};

use super::{Cuda, CudaError};

macro_rules! kernels {
    ($($name:ident,)*) => {
        /// The kernels that are the same for every model.
        #[derive(Debug)]
        pub(crate) struct Kernels {
            $(pub(crate) $name: CudaFunction,)*
        }

        impl Kernels {
            pub(super) fn load(module: &Arc<CudaModule>) -> Result<Self, CudaError> {
                Ok(Self {
                    $($name: module
                        .load_function(stringify!($name))
                        .map_err(CudaError::driver("finding a kernel"))?,)*
                })
            }
        }
    };
}

kernels! {
    attention_join,
    attention_split_4,
    attention_split_8,
    attention_split_16,
    attention_whole_16,
    exp64_all,
    exp_all,
    gelu_mul,
    kv_write,
    ln64_all,
    log_softmax_finish,
    log_softmax_max,
    log_softmax_sums,
    quantize_a16,
    residual_add,
    residual_bias,
    residual_gather,
    residual_scale,
    rms_norm,
    rope,
    rope_kv_write,
    silu_mul,
    softcap,
    top_k_merge,
    top_k_slices,
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
            Self::Blocks {
                embed: function("embed")?,
                gemv_1: function("gemv_1")?,
                gemv_4: function("gemv_4")?,
                gemm_8: function("gemm_8")?,
            }
        })
    }
}
