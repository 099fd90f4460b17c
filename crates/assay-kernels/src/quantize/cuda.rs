//! 16-bit activations on a device, in the order of the tensor cores' operands.

use crate::cuda::{Cuda, CudaError, DeviceBuffer, Grid, launch};

/// Tokens of a tile: the eight columns of a product are the upper and lower halves of four tokens.
pub(crate) const TILE_TOKENS: usize = 4;

/// Quantised rows `[num_tokens, k]`; a reusable buffer.
#[derive(Debug, Default)]
pub struct DeviceActivations {
    num_tokens: usize,
    k: usize,
    /// `[tile][32-block][lane][2]`.
    pub(crate) words: DeviceBuffer<u32>,
    /// `[tile][256-block][token of tile]`.
    pub(crate) scales: DeviceBuffer<f32>,
    /// `[tile][16 elements][token of tile]`.
    pub(crate) sums16: DeviceBuffer<i32>,
    /// `[tile][32-block][token of tile]`.
    pub(crate) sums32: DeviceBuffer<i32>,
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
        self.num_tokens = x.len() / k;
        self.k = k;
        let (num_tiles, num_steps) = (self.num_tokens.div_ceil(TILE_TOKENS), k.div_ceil(256));
        let places = num_tiles * TILE_TOKENS;
        self.words.sized(cuda, num_tiles * (k / 32) * 64);
        self.scales.sized(cuda, places * num_steps);
        self.sums16.sized(cuda, places * (k / 16));
        self.sums32.sized(cuda, places * (k / 32));
        let kernel = &cuda.kernels.quantize_a16;
        // Few rows need many blocks of threads, many rows need none of them to be small.
        let warps = if self.num_tokens < 64 { 1 } else { 4 };
        let grid = Grid {
            blocks: [num_steps.div_ceil(warps), places, 1],
            threads: 32 * warps,
            shared_bytes: 0,
        };
        // SAFETY: `x` is `num_tokens` rows of `k`, and the four outputs were sized for whole tiles of them.
        unsafe {
            launch!(
                cuda, kernel, grid;
                x.ptr(cuda), self.num_tokens as i32, k as i32, self.words.ptr(cuda), self.scales.ptr(cuda),
                self.sums16.ptr(cuda), self.sums32.ptr(cuda),
            );
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
    pub fn read_rows(&self, cuda: &Cuda) -> Result<Vec<(Vec<i32>, Vec<f32>)>, CudaError> {
        let words = self.words.read(cuda, 0, self.words.len())?;
        let scales = self.scales.read(cuda, 0, self.scales.len())?;
        let (num_blocks, num_steps) = (self.k / 32, self.k.div_ceil(256));
        let row = |token: usize| {
            let (tile, place) = (token / TILE_TOKENS, token % TILE_TOKENS);
            let integer = |i: usize| {
                let (block, within) = (i / 32, i % 32);
                let lane = 8 * place + within / 8;
                let at = ((tile * num_blocks + block) * 32 + lane) * 2 + within % 8 / 4;
                let byte = |word: u32| i32::from((word >> (8 * (within % 4))) as u8 as i8);
                256 * byte(words[at]) + byte(words[at + 8])
            };
            let scale = |block: usize| scales[(tile * num_steps + block / 8) * TILE_TOKENS + place];
            (
                (0..self.k).map(integer).collect(),
                (0..num_blocks).map(scale).collect(),
            )
        };
        Ok((0..self.num_tokens).map(row).collect())
    }
}
