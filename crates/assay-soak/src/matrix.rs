//! The invariance matrix: every condition under which a reply could come out differently, crossed.
//!
//! A cell is run by [`bench::Bench::run`], which compares every reply with its reference and proves that the cell's
//! condition came about.

pub mod bench;
pub mod cell;
pub mod pairwise;
mod requests;

pub use bench::{Bench, CellBits, CellError};
pub use cell::{Cell, Chunk, Factors, Prefix};
