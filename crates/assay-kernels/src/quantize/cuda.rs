//! 16-bit activations on a device, in the order of the tensor cores' operands.

use cudarc::driver::DeviceRepr;

use crate::cuda::{Cuda, CudaError, DeviceBuffer, Grid, launch};
use crate::golden_ops::QuantizedRow;

/// Tokens of a tile: the eight columns of a product are the upper and lower halves of four tokens.
pub(crate) const TILE_TOKENS: usize = 4;
/// Tokens whose scales and sums of a block lie together.
pub(crate) const GROUP_TOKENS: usize = 128;

/// Where a token's number of block `index` of `count` lies (`place_of` of the kernels).
fn place_of(token: usize, index: usize, count: usize) -> usize {
    let within = token % GROUP_TOKENS;
    let place = within / 16 * 16 + within % 4 * 4 + within / 4 % 4;
    (token / GROUP_TOKENS * count + index) * GROUP_TOKENS + place
}

/// Quantised rows `[num_tokens, k]`; a reusable buffer.
#[derive(Debug, Default)]
pub struct DeviceActivations {
    num_tokens: usize,
    k: usize,
    /// `[group][32-block][tile of the group][2][lane]`.
    words: DeviceBuffer<u32>,
    /// `[group][256-block][place]`.
    scales: DeviceBuffer<f32>,
    /// `[group][32-block][place]`, rounded.
    sums: DeviceBuffer<f32>,
    /// `[tile][16 elements][token of tile]`.
    sums16: DeviceBuffer<i32>,
    /// `[tile][32-block][token of tile]`.
    sums32: DeviceBuffer<i32>,
}

/// `Integers` of the kernels: where integers lie.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Integers {
    words: u64,
    scales: u64,
    sums: u64,
    sums16: u64,
    sums32: u64,
}

// SAFETY: five addresses in C order, as the kernels declare them.
unsafe impl DeviceRepr for Integers {}

impl Integers {
    /// No integers wanted.
    pub(crate) const NONE: Self = Self {
        words: 0,
        scales: 0,
        sums: 0,
        sums16: 0,
        sums32: 0,
    };
}

impl DeviceActivations {
    /// Quantises `x`, rows of `k`, replacing what was here.
    ///
    /// # Panics
    /// When `k` is not a positive multiple of 32, or `x` is not whole rows.
    pub fn quantize(&mut self, cuda: &Cuda, x: &DeviceBuffer<f32>, k: usize) {
        assert!(
            k > 0 && k.is_multiple_of(32) && x.len().is_multiple_of(k),
            "{} values are not rows of {k}, a multiple of 32",
            x.len()
        );
        let num_tokens = x.len() / k;
        let integers = self.place(cuda, num_tokens, k);
        let kernel = &cuda.kernels.quantize_a16;
        // Few rows need many blocks of threads, many rows need none of them to be small.
        let warps = if num_tokens < 64 { 1 } else { 4 };
        let grid = Grid {
            blocks: [k.div_ceil(256).div_ceil(warps), num_tokens, 1],
            threads: 32 * warps,
            shared_bytes: 0,
        };
        // SAFETY: `x` is `num_tokens` rows of `k`, and the integers have room for whole tiles of them.
        unsafe { launch!(cuda, kernel, grid; x.ptr(cuda), k as i32, integers) };
    }

    /// Makes room for `num_tokens` rows of `k`, which a kernel is to fill.
    ///
    /// # Panics
    /// When `k` is not a positive multiple of 32.
    pub(crate) fn place(&mut self, cuda: &Cuda, num_tokens: usize, k: usize) -> Integers {
        assert!(k > 0 && k.is_multiple_of(32), "rows of {k}");
        self.num_tokens = num_tokens;
        self.k = k;
        let (num_tiles, num_steps) = (num_tokens.div_ceil(TILE_TOKENS), k.div_ceil(256));
        let places = num_tiles * TILE_TOKENS;
        let grouped = num_tokens.next_multiple_of(GROUP_TOKENS);
        self.words.sized(cuda, grouped * (k / 2));
        self.scales.sized(cuda, grouped * num_steps);
        self.sums.sized(cuda, grouped * (k / 32));
        self.sums16.sized(cuda, places * (k / 16));
        self.sums32.sized(cuda, places * (k / 32));
        self.integers(cuda)
    }

    /// Where they lie.
    pub(crate) fn integers(&self, cuda: &Cuda) -> Integers {
        Integers {
            words: self.words.ptr(cuda),
            scales: self.scales.ptr(cuda),
            sums: self.sums.ptr(cuda),
            sums16: self.sums16.ptr(cuda),
            sums32: self.sums32.ptr(cuda),
        }
    }

    /// Rows.
    pub fn num_tokens(&self) -> usize {
        self.num_tokens
    }

    /// Elements of a row.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The integers of each row and its scale of every 32-block, on the host.
    ///
    /// # Errors
    /// The device's first fault.
    pub fn read_rows(&self, cuda: &Cuda) -> Result<Vec<QuantizedRow>, CudaError> {
        let words = self.words.read(cuda, 0, self.words.len())?;
        let scales = self.scales.read(cuda, 0, self.scales.len())?;
        let (num_blocks, num_steps) = (self.k / 32, self.k.div_ceil(256));
        let row = |token: usize| {
            let (tile, place) = (token / TILE_TOKENS, token % TILE_TOKENS);
            let integer = |i: usize| {
                let (block, within) = (i / 32, i % 32);
                let lane = 8 * place + within / 8;
                let tiles = GROUP_TOKENS / TILE_TOKENS;
                let group = (tile / tiles * num_blocks + block) * tiles;
                let at = (group + tile % tiles) * 64 + within % 8 / 4 * 32 + lane;
                let byte = |word: u32| i32::from((word >> (8 * (within % 4))) as u8 as i8);
                256 * byte(words[at]) + byte(words[at + 4])
            };
            let scale = |block: usize| scales[place_of(token, block / 8, num_steps)];
            (
                (0..self.k).map(integer).collect(),
                (0..num_blocks).map(scale).collect(),
            )
        };
        Ok((0..self.num_tokens).map(row).collect())
    }
}
