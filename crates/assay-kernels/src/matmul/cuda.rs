//! Matrices on a device and their products.
//!
//! A matrix is uploaded as it is packed: sixteen rows side by side is also what the tensor cores' operands want.

use crate::cuda::{Cuda, CudaError, DeviceBuffer, Grid, MatrixKernels, launch};
use crate::quantize::cuda::{DeviceActivations, TILE_TOKENS};

use super::packed::{LAYOUT_VERSION, PackedMatrix};
use super::quants::{BLOCK, PANEL_ROWS};

// `layout.cuh` describes this layout and no other.
const _: () = assert!(LAYOUT_VERSION == 1);

/// Shared memory that a block of threads has without asking for more.
const SHARED_BYTES: usize = 48 << 10;

/// A weight matrix `[n, k]` on a device.
#[derive(Debug)]
pub struct DeviceMatrix {
    n: usize,
    k: usize,
    kernels: MatrixKernels,
    bytes: DeviceBuffer<u8>,
    /// Bytes of 16 rows.
    panel_bytes: usize,
}

impl DeviceMatrix {
    /// Copies `matrix`.
    ///
    /// # Errors
    /// [`CudaError`] when the device has no memory for it.
    pub fn upload(cuda: &Cuda, matrix: &PackedMatrix) -> Result<Self, CudaError> {
        let (bytes, is_float) = match matrix.panels() {
            Some(panels) => (DeviceBuffer::upload(cuda, panels)?, false),
            None => (DeviceBuffer::upload(cuda, &matrix.float_bytes())?, true),
        };
        let (n, k) = (matrix.n(), matrix.k());
        Ok(Self {
            n,
            k,
            kernels: MatrixKernels::find(cuda, matrix.dtype(), is_float)?,
            panel_bytes: bytes.len() / n.div_ceil(PANEL_ROWS),
            bytes,
        })
    }

    /// Outputs.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Inputs.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Whether its products take quantised rows.
    pub fn takes_integers(&self) -> bool {
        matches!(self.kernels, MatrixKernels::Blocks { .. })
    }

    /// Writes row `token_ids[t]` to row t of `out`, `[num_tokens, k]`. The caller vouches that every id is below `n`.
    ///
    /// # Panics
    /// If `out` is not `num_tokens` rows.
    pub(crate) fn embed(
        &self,
        cuda: &Cuda,
        token_ids: &DeviceBuffer<u32>,
        out: &mut DeviceBuffer<f32>,
    ) {
        assert_eq!(out.len(), token_ids.len() * self.k, "embeddings");
        let grid = Grid::new(token_ids.len(), 256);
        let (bytes, ids, to) = (self.bytes.ptr(cuda), token_ids.ptr(cuda), out.ptr(cuda));
        let (k, panel_bytes) = (self.k as i32, self.panel_bytes);
        match &self.kernels {
            // SAFETY: the matrix has a row for each id by the caller's word, and `out` a row of `k` for each token.
            MatrixKernels::Blocks { embed, .. } => unsafe {
                launch!(cuda, embed, grid; bytes, panel_bytes, k, ids, to);
            },
            // SAFETY: as above.
            MatrixKernels::Floats { embed, .. } => unsafe {
                launch!(cuda, embed, grid; bytes, k, ids, to);
            },
        }
    }
}

/// Writes `W·x (+ bias)` to `out`, `[num_tokens, n]`: from the integers of `quantized` if the matrix takes integers,
/// from `rows` otherwise.
///
/// # Panics
/// When the shapes do not match.
pub fn matmul(
    cuda: &Cuda,
    w: &DeviceMatrix,
    rows: &DeviceBuffer<f32>,
    quantized: &DeviceActivations,
    bias: Option<&DeviceBuffer<f32>>,
    out: &mut DeviceBuffer<f32>,
) {
    let num_tokens = rows.len() / w.k;
    assert_eq!(rows.len(), num_tokens * w.k, "rows of the input");
    assert_eq!(out.len(), num_tokens * w.n, "length of the output");
    if let Some(bias) = bias {
        assert_eq!(bias.len(), w.n, "length of the bias");
    }
    let bias = bias.map_or(0, |bias| bias.ptr(cuda));
    let (bytes, to) = (w.bytes.ptr(cuda), out.ptr(cuda));
    let (n, k) = (w.n as i32, w.k as i32);
    match &w.kernels {
        MatrixKernels::Blocks {
            gemv_1,
            gemv_4,
            gemm_8,
            ..
        } => {
            assert_eq!(
                (quantized.num_tokens(), quantized.k()),
                (num_tokens, w.k),
                "shape of the integers"
            );
            let (kernel, grid) = match Plan::new(cuda, w, num_tokens) {
                Plan::Gemv1(grid) => (gemv_1, grid),
                Plan::Gemv4(grid) => (gemv_4, grid),
                Plan::Gemm8(grid) => (gemm_8, grid),
            };
            // SAFETY: the panels are those of an `[n, k]` matrix of the kernel's type, the integers were made for
            // `num_tokens` rows of `k` in whole tiles, and `out` and `bias` have the lengths checked above.
            unsafe {
                launch!(
                    cuda, kernel, grid;
                    bytes, w.panel_bytes, n, k, num_tokens as i32, quantized.words.ptr(cuda),
                    quantized.scales.ptr(cuda), quantized.sums16.ptr(cuda), quantized.sums32.ptr(cuda), bias, to,
                );
            }
        }
        MatrixKernels::Floats { matmul, .. } => {
            let grid = Grid {
                blocks: [w.n.div_ceil(128), num_tokens, 1],
                threads: 128,
                shared_bytes: 0,
            };
            // SAFETY: the matrix is `[n, k]` in whole groups of rows; the other lengths were checked above.
            unsafe { launch!(cuda, matmul, grid; bytes, n, k, rows.ptr(cuda), bias, to) };
        }
    }
}

/// Which kernel multiplies, and with how many threads. Never moves a bit.
enum Plan {
    Gemv1(Grid),
    Gemv4(Grid),
    Gemm8(Grid),
}

impl Plan {
    fn new(_cuda: &Cuda, w: &DeviceMatrix, num_tokens: usize) -> Self {
        let panels = w.n.div_ceil(PANEL_ROWS);
        let steps = (w.k / BLOCK).div_ceil(8);
        let gemv = |tiles: usize| Grid {
            blocks: [panels, num_tokens.div_ceil(tiles * TILE_TOKENS), 1],
            threads: 32 * steps.min(if tiles == 1 { 16 } else { 8 }),
            // The sums of every 256-block: two floats a lane and tile.
            shared_bytes: steps * tiles * 32 * 8,
        };
        let few = gemv(1);
        let some = gemv(4);
        if num_tokens <= TILE_TOKENS && few.shared_bytes <= SHARED_BYTES {
            Self::Gemv1(few)
        } else if num_tokens <= 16 && some.shared_bytes <= SHARED_BYTES {
            Self::Gemv4(some)
        } else {
            const WARPS: usize = 4;
            Self::Gemm8(Grid {
                blocks: [
                    panels.div_ceil(WARPS),
                    num_tokens.div_ceil(8 * TILE_TOKENS),
                    1,
                ],
                threads: 32 * WARPS,
                shared_bytes: 0,
            })
        }
    }
}
