//! The arithmetic of Assay: every op as a scalar reference in the order of the numerics contract
//! (`docs/numerics.md`), with AVX2 and AVX-512 paths that give the same bits.
//!
//! Knows no model and no request. One folder per op; [`Compute`] carries the instruction set and the
//! thread pool, and neither can change a result.

pub mod attention;
pub mod compute;
pub mod cuda;
pub mod disjoint;
pub mod embed;
pub mod exp;
pub mod exp64;
pub mod float_matmul;
pub mod float_mode;
mod gate;
pub mod gelu_mul;
pub mod golden;
pub mod golden_ops;
pub mod isa;
pub mod log_softmax;
pub mod matmul;
pub mod numerics;
pub mod pool;
pub mod probe;
pub mod quantize;
pub mod residual;
pub mod rms_norm;
pub mod rope;
pub mod row_scores;
pub mod silu_mul;
mod simd;
pub mod softcap;
pub mod testing;
pub mod top_k;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use compute::Compute;
pub use golden::{SelfTestError, self_test};
pub use isa::Isa;
pub use pool::ThreadPool;
