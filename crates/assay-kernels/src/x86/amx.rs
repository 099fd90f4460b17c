//! AMX: whether this process may use the tile registers, and their shapes while a kernel runs.

use std::arch::x86_64::__cpuid_count;

/// Leaf 7, EDX.
const AMX_BF16: u32 = 1 << 22;
const AMX_TILE: u32 = 1 << 24;

/// Whether the CPU has AMX tiles with BF16 products and the system lets this process use them.
///
/// Linux grants the tile registers to a whole process, on request: threads that exist already get
/// them too. Asking again is harmless.
pub(crate) fn is_available() -> bool {
    let features = __cpuid_count(7, 0).edx;
    features & AMX_TILE != 0 && features & AMX_BF16 != 0 && request_tile_data()
}

#[cfg(target_os = "linux")]
fn request_tile_data() -> bool {
    const ARCH_PRCTL: i64 = 158;
    const ARCH_REQ_XCOMP_PERM: i64 = 0x1023;
    const XFEATURE_XTILEDATA: i64 = 18;
    let result: i64;
    // SAFETY: the call reads no memory of ours and changes nothing but this process's permission; the
    // kernel clobbers rcx and r11 alone.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") ARCH_PRCTL => result,
            in("rdi") ARCH_REQ_XCOMP_PERM,
            in("rsi") XFEATURE_XTILEDATA,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result == 0
}

#[cfg(not(target_os = "linux"))]
fn request_tile_data() -> bool {
    false
}

/// The operand of LDTILECFG for palette 1: eight tiles of up to 16 rows of 64 bytes.
#[repr(C, align(64))]
struct TileConfig {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

/// The tile registers of this thread, shaped for products `C[16, 16] += A[16, k] · B[k, 16]`:
/// tiles 0–3 are C, 4 and 5 are A, 6 and 7 are B. Dropping it gives the registers back, so that a
/// thread between two kernels has no tile state for the system to save.
pub(crate) struct Tiles(());

impl Tiles {
    /// Shapes the tiles for products over `k` BF16 elements, an even number up to 32.
    ///
    /// # Safety
    /// [`is_available`] was true, and this thread holds no other `Tiles`.
    ///
    /// # Panics
    /// When `k` is odd, zero or above 32.
    pub(crate) unsafe fn new(k: usize) -> Self {
        assert!(
            k.is_multiple_of(2) && (2..=32).contains(&k),
            "{k} elements of a tile row"
        );
        let mut config = TileConfig {
            palette: 1,
            start_row: 0,
            reserved: [0; 14],
            row_bytes: [0; 16],
            rows: [0; 16],
        };
        let (a, b) = ((16, 2 * k as u16), (k as u8 / 2, 64));
        let shapes = [(16, 64), (16, 64), (16, 64), (16, 64), a, a, b, b];
        for (tile, (rows, row_bytes)) in shapes.into_iter().enumerate() {
            config.rows[tile] = rows;
            config.row_bytes[tile] = row_bytes;
        }
        // SAFETY: the caller vouches for the CPU and the permission; the shapes are within palette 1.
        unsafe {
            std::arch::asm!("ldtilecfg [{}]", in(reg) &raw const config, options(nostack, preserves_flags, readonly));
        }
        Self(())
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // SAFETY: this value exists only on a thread that configured its tiles.
        unsafe { std::arch::asm!("tilerelease", options(nostack, nomem, preserves_flags)) };
    }
}
