//! The tile instructions: products of one sub-block, while the sums of the one before it are stored.
//!
//! Sub-blocks take the sum tiles 0 and 1, or 2 and 3, in turn: tile registers are not renamed, so a product into a
//! tile that is being stored would wait for it. Sums therefore stay in the tiles from one `asm!` block to the next.
//! That holds as it does for the tiles' shapes: nothing but this crate's `asm!` touches tile registers, this thread runs
//! only the kernel between `Tiles::of_bytes` and its drop, and the system keeps the tiles over interrupts.

use super::super::GROUPS;
use super::pass::{ROW, SUMS_BYTES, TOKENS};
use crate::matmul::quants::BLOCK;
use std::arch::asm;

/// What one product multiplies: a tile of activations, whose rows lie a block apart, with one of weights of each group.
#[derive(Clone, Copy)]
pub(super) struct Factors {
    pub(super) words: *const u8,
    pub(super) weights: [*const u8; GROUPS],
}

/// An `asm!` block that loads `$factors`, multiplies them by `$product` into the tiles `$c0` and `$c1`, and ends with
/// the lines `$store`, which store to `$sums`.
macro_rules! block {
    ($factors:ident, $sums:ident, $product:literal, $c0:literal, $c1:literal, [$($store:literal)*]) => {
        asm!(
            "tileloadd tmm4, [{words} + {word_row}]",
            "tileloadd tmm6, [{first} + {row}]",
            "tileloadd tmm7, [{second} + {row}]",
            concat!("tilezero ", $c0),
            concat!("tilezero ", $c1),
            concat!($product, " ", $c0, ", tmm4, tmm6"),
            concat!($product, " ", $c1, ", tmm4, tmm7"),
            $($store,)*
            "/* {sums} */",
            words = in(reg) $factors.words,
            word_row = in(reg) BLOCK,
            first = in(reg) $factors.weights[0],
            second = in(reg) $factors.weights[1],
            row = in(reg) ROW,
            sums = in(reg) $sums,
            options(nostack, preserves_flags),
        )
    };
}

const _: () = assert!(SUMS_BYTES == 1024 && GROUPS == 2 && 2 * TOKENS * ROW == SUMS_BYTES);

/// Multiplies the first sub-block: its sums stay in the first pair of tiles.
///
/// # Safety
/// The tiles are configured; the factors have their tiles.
#[inline(always)]
pub(super) unsafe fn multiply_first<const SIGNED: bool>(factors: Factors) {
    let sums = std::ptr::null_mut::<u8>();
    // SAFETY: the caller's contract; nothing but tiles is written.
    unsafe {
        if SIGNED {
            block!(factors, sums, "tdpbssd", "tmm0", "tmm1", []);
        } else {
            block!(factors, sums, "tdpbsud", "tmm0", "tmm1", []);
        }
    }
}

/// Multiplies a sub-block and stores the sums of the one before it, a tile of each group, to `sums`. Sub-blocks are
/// counted from 0; `is_odd` is of the one that is stored.
///
/// # Safety
/// As [`multiply_first`]; the sub-block before was multiplied last, and `sums` may be written.
#[inline(always)]
pub(super) unsafe fn multiply_next<const SIGNED: bool>(
    is_odd: bool,
    factors: Factors,
    sums: *mut u8,
) {
    // SAFETY: the caller's contract; nothing but tiles and `sums` is written.
    unsafe {
        match (is_odd, SIGNED) {
            (false, false) => block!(factors, sums, "tdpbsud", "tmm2", "tmm3", [
                "tilestored [{sums} + {row}], tmm0"
                "tilestored [{sums} + {row} + 1024], tmm1"
            ]),
            (false, true) => block!(factors, sums, "tdpbssd", "tmm2", "tmm3", [
                "tilestored [{sums} + {row}], tmm0"
                "tilestored [{sums} + {row} + 1024], tmm1"
            ]),
            (true, false) => block!(factors, sums, "tdpbsud", "tmm0", "tmm1", [
                "tilestored [{sums} + {row}], tmm2"
                "tilestored [{sums} + {row} + 1024], tmm3"
            ]),
            (true, true) => block!(factors, sums, "tdpbssd", "tmm0", "tmm1", [
                "tilestored [{sums} + {row}], tmm2"
                "tilestored [{sums} + {row} + 1024], tmm3"
            ]),
        }
    }
}

/// Stores the sums of the last sub-block.
///
/// # Safety
/// As [`multiply_next`].
#[inline(always)]
pub(super) unsafe fn store_last(is_odd: bool, sums: *mut u8) {
    // SAFETY: the caller's contract; nothing but `sums` is written.
    unsafe {
        if is_odd {
            asm!(
                "tilestored [{sums} + {row}], tmm2",
                "tilestored [{sums} + {row} + 1024], tmm3",
                row = in(reg) ROW,
                sums = in(reg) sums,
                options(nostack, preserves_flags),
            );
        } else {
            asm!(
                "tilestored [{sums} + {row}], tmm0",
                "tilestored [{sums} + {row} + 1024], tmm1",
                row = in(reg) ROW,
                sums = in(reg) sums,
                options(nostack, preserves_flags),
            );
        }
    }
}
