//! Loads and stores between arrays and vector registers, with their lengths in the types.
//!
//! These are the only pointer accesses most SIMD paths need, so those paths themselves stay safe code.

pub(crate) mod avx2;
pub(crate) mod avx512;
