//! The sums of one sub-block: activation tiles against weight tiles, into tiles of f32.
//!
//! Each kernel is one `asm!` block from its loads to its stores, so no tile's content has to live
//! outside it. The order of instructions was chosen by measurement: all loads of a token tile, then
//! its products, keeps most of the speed when a neighbour shares the core.

use super::product::Product;
use super::{GROUPS, Pass, Phase, Tile};
use crate::matmul::panel::BLOCKS_PER_STEP;
use crate::quantize::TILE_ROWS;
use std::arch::asm;

/// Bytes of a tile row.
const ROW: usize = 64;

impl<const SUB_BLOCK: usize, const HAS_OFFSET: bool> Pass<'_, SUB_BLOCK, HAS_OFFSET> {
    /// Sums sub-block `i` of the phase for two row groups and the token tiles at `words`.
    ///
    /// # Safety
    /// As `multiply`; `i` is a sub-block of the phase, `words` are its tiles' activations.
    #[inline(always)]
    pub(super) unsafe fn sum<P: Product, const T: usize>(
        &self,
        words: [*const u8; T],
        phase: Phase,
        i: usize,
    ) {
        let subs_per_block = Self::SUBS_PER_BLOCK;
        let sub = phase.first_sub + i;
        let block_in_step = sub / subs_per_block;
        // A half of a block is half of each activation row, and half of the weight rows.
        let part = sub % subs_per_block;
        let block = phase.step * BLOCKS_PER_STEP + block_in_step;
        let block_in_chunk = (phase.step - self.steps.start) * BLOCKS_PER_STEP + block_in_step;
        let tile_bytes = ROW * TILE_ROWS;
        let at = block * P::TILES_PER_BLOCK * tile_bytes + part * 2 * SUB_BLOCK;
        let a = words.map(|words| words.wrapping_add(at));
        // SAFETY: the caller's contract: blocks of the chunk are expanded; a missing second group repeats the first, and its sums are not used.
        unsafe {
            let b: [*const u8; GROUPS] = std::array::from_fn(|group| {
                let group = group.min(self.groups.len() - 1);
                let tile = &raw const (*self.scratch).weights[group][block_in_chunk];
                tile.cast::<u8>().wrapping_add(part * ROW * SUB_BLOCK / 2)
            });
            let c = (&raw mut (*self.scratch).sums[i]).cast::<f32>();
            match (P::WIDE, T) {
                (true, 2) => joined_2(a[0], a[T - 1], b, c),
                (true, _) => joined_1(a[0], b, c),
                (false, 2) => narrow_2(a[0], a[T - 1], b, c),
                (false, _) => narrow_1(a[0], b, c),
            }
        }
    }
}

/// Declares a kernel: its activation pointers, and its instructions after the weights are loaded.
macro_rules! kernel {
    ($(#[$doc:meta])* $name:ident($($a:ident),+): $($line:literal)+) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// The tiles are configured; every pointer has its tiles, `c` may be written.
        #[inline(always)]
        unsafe fn $name($($a: *const u8,)+ b: [*const u8; GROUPS], c: *mut f32) {
            // SAFETY: the caller's contract; nothing but tiles and `c` is written.
            unsafe {
                asm!(
                    "tileloadd tmm6, [{b0} + {row}]",
                    "tileloadd tmm7, [{b1} + {row}]",
                    $($line,)+
                    $($a = in(reg) $a,)+
                    b0 = in(reg) b[0],
                    b1 = in(reg) b[1],
                    c = in(reg) c,
                    row = in(reg) ROW,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack, preserves_flags),
                );
            }
        }
    };
}

// The displacements below are multiples of a tile.
const _: () = assert!(size_of::<Tile>() == 1024 && ROW * TILE_ROWS == 1024);

kernel! {
    /// Two token tiles, `256·hi` and `lo` into one sum.
    joined_2(a0, a1):
    "tileloadd tmm4, [{a0} + {row}]"
    "tileloadd tmm5, [{a0} + {row} + 1024]"
    "tilezero tmm0"
    "tilezero tmm1"
    "tdpbf16ps tmm0, tmm4, tmm6"
    "tdpbf16ps tmm0, tmm5, tmm6"
    "tdpbf16ps tmm1, tmm4, tmm7"
    "tdpbf16ps tmm1, tmm5, tmm7"
    "tilezero tmm2"
    "tilezero tmm3"
    "tileloadd tmm4, [{a1} + {row}]"
    "tileloadd tmm5, [{a1} + {row} + 1024]"
    "tdpbf16ps tmm2, tmm4, tmm6"
    "tdpbf16ps tmm2, tmm5, tmm6"
    "tdpbf16ps tmm3, tmm4, tmm7"
    "tdpbf16ps tmm3, tmm5, tmm7"
    "tilestored [{c} + {row}], tmm0"
    "tilestored [{c} + {row} + 1024], tmm1"
    "tilestored [{c} + {row} + 2048], tmm2"
    "tilestored [{c} + {row} + 3072], tmm3"
}

kernel! {
    /// One token tile, `256·hi` and `lo` into one sum.
    joined_1(a0):
    "tileloadd tmm4, [{a0} + {row}]"
    "tileloadd tmm5, [{a0} + {row} + 1024]"
    "tilezero tmm0"
    "tilezero tmm1"
    "tdpbf16ps tmm0, tmm4, tmm6"
    "tdpbf16ps tmm0, tmm5, tmm6"
    "tdpbf16ps tmm1, tmm4, tmm7"
    "tdpbf16ps tmm1, tmm5, tmm7"
    "tilestored [{c} + {row}], tmm0"
    "tilestored [{c} + {row} + 1024], tmm1"
}

kernel! {
    /// Two token tiles of 8-bit activations.
    narrow_2(a0, a1):
    "tileloadd tmm4, [{a0} + {row}]"
    "tileloadd tmm5, [{a1} + {row}]"
    "tilezero tmm0"
    "tilezero tmm1"
    "tilezero tmm2"
    "tilezero tmm3"
    "tdpbf16ps tmm0, tmm4, tmm6"
    "tdpbf16ps tmm1, tmm4, tmm7"
    "tdpbf16ps tmm2, tmm5, tmm6"
    "tdpbf16ps tmm3, tmm5, tmm7"
    "tilestored [{c} + {row}], tmm0"
    "tilestored [{c} + {row} + 1024], tmm1"
    "tilestored [{c} + {row} + 2048], tmm2"
    "tilestored [{c} + {row} + 3072], tmm3"
}

kernel! {
    /// One token tile of 8-bit activations.
    narrow_1(a0):
    "tileloadd tmm4, [{a0} + {row}]"
    "tilezero tmm0"
    "tilezero tmm1"
    "tdpbf16ps tmm0, tmm4, tmm6"
    "tdpbf16ps tmm1, tmm4, tmm7"
    "tilestored [{c} + {row}], tmm0"
    "tilestored [{c} + {row} + 1024], tmm1"
}
