//! The floating-point mode of the current thread: subnormals kept, round to nearest, exceptions masked.
//!
//! Foreign code in the process (a plug-in, a BLAS) may leave flush-to-zero set in a thread it shares with
//! us, which changes bits silently. Every worker checks when it starts, and the caller at every run.

/// MXCSR as the contract wants it: all exceptions masked, round to nearest, FTZ and DAZ off.
pub const DEFAULT_MXCSR: u32 = 0x1F80;

/// The control bits of MXCSR; the lower six are sticky exception flags and move freely.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const MXCSR_CONTROL: u32 = 0xFFC0;

/// Restores the default mode if this thread left it; returns whether it had to.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub fn ensure_default() -> bool {
    let mut mxcsr = 0u32;
    // SAFETY: `stmxcsr` writes four bytes to the local it is given and needs only SSE, which x86_64 has.
    unsafe {
        std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut mxcsr, options(nostack, preserves_flags));
    }
    if mxcsr & MXCSR_CONTROL == DEFAULT_MXCSR {
        return false;
    }
    let wanted = DEFAULT_MXCSR;
    // SAFETY: the value loaded is the default that Rust code assumes; no reserved bit is set.
    unsafe {
        std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const wanted, options(nostack, preserves_flags, readonly));
    }
    true
}

/// Other machines start threads in the default mode and we have no path that leaves it.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub fn ensure_default() -> bool {
    false
}

/// Whether this thread computes with subnormals: the only inputs on which FTZ or DAZ shows.
pub fn keeps_subnormals() -> bool {
    let smallest = std::hint::black_box(f32::from_bits(1));
    let normal = std::hint::black_box(f32::MIN_POSITIVE);
    // The first fails under DAZ, the second under FTZ.
    (smallest * std::hint::black_box(2.0)).to_bits() == 2
        && (normal * std::hint::black_box(0.5)).to_bits() == 0x0040_0000
}

#[cfg(all(test, target_arch = "x86_64", not(miri)))]
mod tests {
    use super::*;

    fn set_mxcsr(value: u32) {
        // SAFETY: only FTZ, DAZ and sticky flags differ from the default, and the test restores it.
        unsafe {
            std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack));
        }
    }

    #[test]
    fn flush_to_zero_and_denormals_are_zero_are_undone() {
        assert!(keeps_subnormals());
        for bits in [0x8000, 0x0040, 0x8040] {
            set_mxcsr(DEFAULT_MXCSR | bits);
            let seen = keeps_subnormals();
            let changed = ensure_default();
            assert!(!seen, "mode {bits:#x} must show on subnormals");
            assert!(changed, "mode {bits:#x} must be found");
            assert!(keeps_subnormals(), "mode {bits:#x} must be undone");
            assert!(!ensure_default());
        }
    }
}
