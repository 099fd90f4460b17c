//! AMX: whether this process may use the tile registers, and their shapes while a kernel runs.

use std::arch::x86_64::__cpuid_count;

/// Leaf 7, EDX.
const AMX_BF16: u32 = 1 << 22;
const AMX_TILE: u32 = 1 << 24;
const AMX_INT8: u32 = 1 << 25;

/// Whether the CPU has AMX tiles with BF16 and byte products and the system lets this process use them.
///
/// Linux grants the tile registers to a whole process, on request: threads that exist already get
/// them too. Asking again is harmless.
pub(crate) fn is_available() -> bool {
    const ALL: u32 = AMX_TILE | AMX_BF16 | AMX_INT8;
    __cpuid_count(7, 0).edx & ALL == ALL && request_tile_data()
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

/// The tile registers of this thread, shaped for products `C[rows, 16] += A[rows, k] · B[k, 16]`:
/// tiles 0–3 are C, 4 and 5 are A, 6 and 7 are B. Dropping it gives the registers back, so that a
/// thread between two kernels has no tile state for the system to save.
pub(crate) struct Tiles(());

impl Tiles {
    /// Shapes the tiles for products of 16 rows over `k` BF16 elements, an even number up to 32.
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
        // SAFETY: the caller's contract.
        unsafe { Self::shaped(16, 2 * k) }
    }

    /// Shapes the tiles for products of `rows` rows, up to 16, over `k` bytes, a multiple of 4 up to 64.
    ///
    /// # Safety
    /// As [`Tiles::new`].
    ///
    /// # Panics
    /// When `rows` or `k` is none of these.
    pub(crate) unsafe fn of_bytes(rows: usize, k: usize) -> Self {
        assert!(
            (1..=16).contains(&rows) && k.is_multiple_of(4) && (4..=64).contains(&k),
            "{rows} rows of {k} bytes"
        );
        // SAFETY: the caller's contract.
        unsafe { Self::shaped(rows, k) }
    }

    /// C and A of `rows` rows, A's of `row_bytes` bytes; B as that demands.
    ///
    /// # Safety
    /// As [`Tiles::new`]; at most 16 rows, of at most 64 bytes, a multiple of 4.
    unsafe fn shaped(rows: usize, row_bytes: usize) -> Self {
        let mut config = TileConfig {
            palette: 1,
            start_row: 0,
            reserved: [0; 14],
            row_bytes: [0; 16],
            rows: [0; 16],
        };
        let c = (rows as u8, 64);
        let a = (rows as u8, row_bytes as u16);
        let b = (row_bytes as u8 / 4, 64);
        let shapes = [c, c, c, c, a, a, b, b];
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
