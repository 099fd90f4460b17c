//! Loads and stores between arrays and vector registers, with their lengths in the types; and AMX's
//! permission and configuration.
//!
//! These are the only pointer accesses most SIMD paths need, so those paths themselves stay safe code.

pub(crate) mod amx;
pub(crate) mod avx2;
pub(crate) mod avx512;
