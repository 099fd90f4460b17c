//! VPDPBUSD on registers: twelve independent sums hide its latency.

use std::arch::x86_64::*;
use std::hint::black_box;

use super::Loop;

const NUM_SUMS: usize = 12;
/// Bytes multiplied by one instruction; each product and its addition are two operations.
const OPS: u64 = 2 * 64;

pub(super) fn integer_loop() -> Loop {
    Loop {
        instruction: "VPDPBUSD zmm",
        ops_per_pass: NUM_SUMS as u64 * OPS,
        run: |num_passes| {
            // SAFETY: `probe::integer_loop` comes here only for an `Isa` of kind Avx512, which exists only on a CPU
            // with AVX-512 F and VNNI.
            unsafe { run(num_passes) }
        },
    }
}

#[target_feature(enable = "avx512f,avx512vnni")]
fn run(num_passes: u64) {
    let (a, b) = (
        black_box(_mm512_set1_epi8(3)),
        black_box(_mm512_set1_epi8(5)),
    );
    let mut sums = [_mm512_setzero_si512(); NUM_SUMS];
    for _ in 0..num_passes {
        for sum in &mut sums {
            *sum = _mm512_dpbusd_epi32(*sum, a, b);
        }
    }
    black_box(sums);
}

/// Reads `bytes` once by aligned lines, in the way of the matrix kernels: one stream, prefetched a few pages ahead.
///
/// # Safety
/// The CPU has AVX-512 F.
#[target_feature(enable = "avx512f")]
pub(super) fn read(bytes: &[u8]) {
    const PREFETCH_BYTES: usize = 8192;
    let mut sums = [_mm512_setzero_si512(); 4];
    for lines in bytes.chunks_exact(256) {
        let ahead = lines.as_ptr().wrapping_add(PREFETCH_BYTES);
        for (index, sum) in sums.iter_mut().enumerate() {
            _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(64 * index).cast());
            // SAFETY: four 64-byte loads inside the 256 bytes of `lines`; they need no alignment.
            let line = unsafe { _mm512_loadu_si512(lines.as_ptr().add(64 * index).cast()) };
            *sum = _mm512_xor_si512(*sum, line);
        }
    }
    black_box(sums);
}
