//! VPMADDWD and the addition after it, on registers: what the AVX2 matmul is made of.

use std::arch::asm;
use std::arch::x86_64::*;
use std::hint::black_box;

use super::Loop;

const NUM_SUMS: usize = 12;
/// 16-bit values multiplied by one instruction; each product and its addition are two operations.
const OPS: u64 = 2 * 16;

pub(super) fn integer_loop() -> Loop {
    Loop {
        instruction: "VPMADDWD + VPADDD ymm",
        ops_per_pass: NUM_SUMS as u64 * OPS,
        run: |num_passes| {
            // SAFETY: `probe::integer_loop` comes here only for an `Isa` of kind Avx2, which exists only on a CPU with
            // AVX2.
            unsafe { run(num_passes) }
        },
    }
}

#[target_feature(enable = "avx2")]
fn run(num_passes: u64) {
    let (a, b) = (_mm256_set1_epi16(3), _mm256_set1_epi16(5));
    let mut sums = [_mm256_setzero_si256(); NUM_SUMS];
    for _ in 0..num_passes {
        for sum in &mut sums {
            // SAFETY: both instructions are AVX2 and touch only the registers named. Written out, since a compiler
            // multiplies two constants once.
            unsafe {
                asm!(
                    "vpmaddwd {product}, {a}, {b}",
                    "vpaddd {sum}, {sum}, {product}",
                    a = in(ymm_reg) a,
                    b = in(ymm_reg) b,
                    product = out(ymm_reg) _,
                    sum = inout(ymm_reg) *sum,
                    options(nomem, nostack, preserves_flags),
                );
            }
        }
    }
    black_box(sums);
}

/// Reads `bytes` once by aligned lines, one stream, prefetched a few pages ahead.
///
/// # Safety
/// The CPU has AVX2.
#[target_feature(enable = "avx2")]
pub(super) fn read(bytes: &[u8]) {
    const PREFETCH_BYTES: usize = 8192;
    let mut sums = [_mm256_setzero_si256(); 4];
    for lines in bytes.chunks_exact(128) {
        let ahead = lines.as_ptr().wrapping_add(PREFETCH_BYTES);
        _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
        _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(64).cast());
        for (index, sum) in sums.iter_mut().enumerate() {
            // SAFETY: four 32-byte loads inside the 128 bytes of `lines`; they need no alignment.
            let half = unsafe { _mm256_loadu_si256(lines.as_ptr().add(32 * index).cast()) };
            *sum = _mm256_xor_si256(*sum, half);
        }
    }
    black_box(sums);
}
