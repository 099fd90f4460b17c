//! Random words for seeds and names that need not be secret, from the keys the standard library draws for
//! its hash maps.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A random word.
pub(crate) fn random_u64() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A seed that survives clients whose numbers are doubles: below 2^53.
pub(crate) fn random_seed() -> i64 {
    i64::try_from(random_u64() >> 11).expect("53 bits fit an i64")
}
