//! TDPBF16PS on tiles: the four sums that the matmul keeps, two products each in turn.

use std::arch::asm;

use super::Loop;
use crate::x86::amx::Tiles;

const NUM_PRODUCTS: u64 = 4;
/// 16 × 16 sums over 32 elements; each product and its addition are two operations.
const OPS: u64 = 2 * 16 * 16 * 32;

pub(super) fn integer_loop() -> Loop {
    Loop {
        instruction: "TDPBF16PS tmm",
        ops_per_pass: NUM_PRODUCTS * OPS,
        run: |num_passes| {
            // SAFETY: `probe::integer_loop` comes here only for an `Isa` of kind Amx, which exists only where the
            // CPU has AMX with BF16 and the system lets this process use it; no kernel is running on this thread.
            unsafe { run(num_passes) }
        },
    }
}

/// # Safety
/// This process may use AMX tiles, and this thread holds none.
unsafe fn run(num_passes: u64) {
    // SAFETY: the caller's contract.
    let _tiles = unsafe { Tiles::new(32) };
    for _ in 0..num_passes {
        // SAFETY: the tiles are configured; nothing else is read or written. LDTILECFG made them zero.
        unsafe {
            asm!(
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                options(nostack, nomem, preserves_flags),
            );
        }
    }
}
