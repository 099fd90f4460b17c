//! Every op on every instruction set and thread count against the scalar reference, bit for bit.
//!
//! One file per op: data plus one `check_*` helper. Shapes include empty ones, single elements, tails and
//! unaligned starts; values include subnormals, signed zeros, infinities and NaN.

mod activation;
mod attention;
mod float_matmul;
mod log_softmax;
mod residual;
mod rms_norm;
mod rope;
mod top_k;

use assay_kernels::testing::SeededGenerator;
use assay_kernels::{Compute, Isa, ThreadPool};
use std::num::NonZeroUsize;

/// Contexts to compare with [`reference`]: every instruction set of this machine, one and several threads.
pub fn contexts() -> Vec<(String, Compute)> {
    let mut contexts = Vec::new();
    for isa in Isa::available() {
        for num_threads in [1, 3] {
            let pool = ThreadPool::new(NonZeroUsize::new(num_threads).expect("one or three"));
            contexts.push((
                format!("{} with {num_threads} threads", isa.name()),
                Compute::new(isa, pool),
            ));
        }
    }
    contexts
}

/// The scalar reference on one thread.
pub fn reference() -> Compute {
    Compute::new(Isa::SCALAR, ThreadPool::new(NonZeroUsize::MIN))
}

/// Kinds of values to run each shape with.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// Magnitudes spread over many binades.
    Spread,
    /// Subnormals and their neighbours: what FTZ and DAZ would change.
    Subnormal,
    /// Ordinary values with zeros of both signs, infinities and NaN among them.
    Special,
}

impl Values {
    /// Each kind once.
    pub const ALL: [Self; 3] = [Self::Spread, Self::Subnormal, Self::Special];

    /// `len` values of this kind; all follow from `seed` and `len`.
    pub fn make(self, seed: u64, len: usize) -> Vec<f32> {
        let mut generator = SeededGenerator::new(seed ^ len as u64);
        match self {
            Self::Spread => generator.spread(len, 24),
            Self::Subnormal => (0..len)
                .map(|_| f32::from_bits(generator.next_u32() & 0x80FF_FFFF))
                .collect(),
            Self::Special => (0..len)
                .map(|_| match generator.next_u32() % 97 {
                    0 => f32::INFINITY,
                    1 => f32::NEG_INFINITY,
                    2 => f32::NAN,
                    3..=9 => -0.0,
                    10..=16 => 0.0,
                    17 => f32::MAX,
                    _ => generator.next_unit(),
                })
                .collect(),
        }
    }
}
