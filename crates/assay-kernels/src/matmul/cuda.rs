//! Matrices on a device and their products.
//!
//! A matrix is uploaded as it is packed: sixteen rows side by side is also what the tensor cores' operands want.

use assay_formats::DType;
use cudarc::driver::{CudaFunction, DeviceRepr};

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
    dtype: DType,
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
            dtype: matrix.dtype(),
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

/// One of the matrices that multiply the same rows, and where its product goes.
#[derive(Debug)]
pub struct Product<'a> {
    /// `[n, k]`.
    pub w: &'a DeviceMatrix,
    /// `[n]`.
    pub bias: Option<&'a DeviceBuffer<f32>>,
    /// `[num_tokens, n]`.
    pub out: &'a mut DeviceBuffer<f32>,
}

/// Matrices of one launch at most.
const MAX_TARGETS: usize = 3;

/// `Targets` of the kernels.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Targets {
    panels: [u64; MAX_TARGETS],
    bias: [u64; MAX_TARGETS],
    out: [u64; MAX_TARGETS],
    n: [i32; MAX_TARGETS],
    end_panel: [i32; MAX_TARGETS],
}

// SAFETY: addresses and numbers in C order, as the kernels declare them.
unsafe impl DeviceRepr for Targets {}

/// Writes `W·x (+ bias)` of each of `products`: from the integers of `quantized` where the matrix takes integers, from
/// `rows` otherwise. Matrices of one type that multiply few rows share launches.
///
/// # Panics
/// When the shapes do not match.
pub fn matmul(
    cuda: &Cuda,
    rows: &DeviceBuffer<f32>,
    quantized: &DeviceActivations,
    products: &mut [Product<'_>],
) {
    for product in &*products {
        let (w, num_tokens) = (product.w, rows.len() / product.w.k);
        assert_eq!(rows.len(), num_tokens * w.k, "rows of the input");
        assert_eq!(product.out.len(), num_tokens * w.n, "length of the output");
        if let Some(bias) = product.bias {
            assert_eq!(bias.len(), w.n, "length of the bias");
        }
        if w.takes_integers() {
            assert_eq!(
                (quantized.num_tokens(), quantized.k()),
                (num_tokens, w.k),
                "shape of the integers"
            );
        }
    }
    let mut rest = products;
    while let Some(first) = rest.first() {
        let dtype = first.w.dtype;
        let alike = rest
            .iter()
            .take(MAX_TARGETS)
            .take_while(|product| product.w.dtype == dtype)
            .count();
        let (group, others) = rest.split_at_mut(alike);
        match &group[0].w.kernels {
            MatrixKernels::Blocks { .. } => multiply_blocks(cuda, rows.len(), quantized, group),
            MatrixKernels::Floats { matmul, .. } => {
                for product in group {
                    multiply_floats(cuda, matmul, rows, product);
                }
            }
        }
        rest = others;
    }
}

/// Products of one to three quantised matrices of one type; shapes are checked.
fn multiply_blocks(
    cuda: &Cuda,
    len: usize,
    quantized: &DeviceActivations,
    products: &mut [Product<'_>],
) {
    let w = products[0].w;
    let MatrixKernels::Blocks {
        gemv_1,
        gemv_4,
        gemm_8,
        ..
    } = &w.kernels
    else {
        return;
    };
    let (k, num_tokens) = (w.k, len / w.k);
    let panels_of = |product: &Product<'_>| product.w.n.div_ceil(PANEL_ROWS);
    let mut targets = Targets::default();
    let mut end_panel = 0;
    for (i, product) in products.iter().enumerate() {
        end_panel += panels_of(product);
        targets.panels[i] = product.w.bytes.ptr(cuda);
        targets.bias[i] = product.bias.map_or(0, |bias| bias.ptr(cuda));
        targets.out[i] = product.out.ptr(cuda);
        targets.n[i] = product.w.n as i32;
        targets.end_panel[i] = end_panel as i32;
    }
    for i in products.len()..MAX_TARGETS {
        targets.end_panel[i] = end_panel as i32;
    }
    let integers = quantized.integers(cuda);
    let plan = Plan::new(k, end_panel, num_tokens);
    let (panel_bytes, k, num_tokens) = (w.panel_bytes, k as i32, num_tokens as i32);
    let gemv = |kernel, grid: Grid| {
        // SAFETY: the panels are those of `[n, k]` matrices of the kernel's type, the integers were made for
        // `num_tokens` rows of `k` in whole tiles, outputs and biases have the lengths that `matmul` checked.
        unsafe { launch!(cuda, kernel, grid; targets, panel_bytes, k, num_tokens, integers) };
    };
    match plan {
        Plan::Gemv1(grid) => gemv(gemv_1, grid),
        Plan::Gemv4(grid) => gemv(gemv_4, grid),
        Plan::Gemm8 => {
            for (i, product) in products.iter().enumerate() {
                let grid = Grid {
                    blocks: [
                        panels_of(product).div_ceil(GEMM_WARPS),
                        (num_tokens as usize).div_ceil(8 * TILE_TOKENS),
                        1,
                    ],
                    ..Grid::new(0, 32 * GEMM_WARPS)
                };
                // SAFETY: as above.
                unsafe {
                    launch!(
                        cuda, gemm_8, grid;
                        targets.panels[i], panel_bytes, targets.n[i], k, num_tokens, integers,
                        targets.bias[i], targets.out[i],
                    );
                }
            }
        }
    }
}

/// The product of a float matrix; shapes are checked.
fn multiply_floats(
    cuda: &Cuda,
    kernel: &CudaFunction,
    rows: &DeviceBuffer<f32>,
    product: &mut Product<'_>,
) {
    let w = product.w;
    let grid = Grid {
        blocks: [w.n.div_ceil(128), rows.len() / w.k, 1],
        ..Grid::new(0, 128)
    };
    let bias = product.bias.map_or(0, |bias| bias.ptr(cuda));
    let (n, k) = (w.n as i32, w.k as i32);
    // SAFETY: the matrix is `[n, k]` in whole groups of rows; the other lengths were checked by `matmul`.
    unsafe {
        launch!(
            cuda, kernel, grid;
            w.bytes.ptr(cuda), n, k, rows.ptr(cuda), bias, product.out.ptr(cuda),
        );
    }
}

/// Warps of a block of threads that multiplies many rows; a panel each.
const GEMM_WARPS: usize = 4;

/// Which kernel multiplies, and with how many threads. Never moves a bit.
enum Plan {
    Gemv1(Grid),
    Gemv4(Grid),
    Gemm8,
}

impl Plan {
    fn new(k: usize, panels: usize, num_tokens: usize) -> Self {
        let steps = (k / BLOCK).div_ceil(8);
        let gemv = |tiles: usize, warps: usize| Grid {
            blocks: [panels, num_tokens.div_ceil(tiles * TILE_TOKENS), 1],
            threads: 32 * steps.min(warps),
            // The sums of every 256-block: two floats a lane and tile.
            shared_bytes: steps * tiles * 32 * 8,
        };
        let few = gemv(1, 16);
        let some = gemv(4, 8);
        if num_tokens <= TILE_TOKENS && few.shared_bytes <= SHARED_BYTES {
            Self::Gemv1(few)
        } else if num_tokens <= 16 && some.shared_bytes <= SHARED_BYTES {
            Self::Gemv4(some)
        } else {
            Self::Gemm8
        }
    }
}
