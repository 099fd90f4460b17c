//! Matrices on a device and their products.
//!
//! A matrix is uploaded as it is packed: sixteen rows side by side is also what the tensor cores' operands want.

use assay_formats::DType;
use cudarc::driver::{CudaFunction, DeviceRepr};

use crate::cuda::{Cuda, CudaError, DeviceBuffer, Grid, MatrixKernels, ROOMY_SHARED_BYTES, launch};
use crate::quantize::cuda::{DeviceActivations, GROUP_TOKENS, TILE_TOKENS};

use super::formats::packed_format;
use super::packed::{LAYOUT_VERSION, PackedMatrix};
use super::quants::{BLOCK, PANEL_ROWS};

// `layout.cuh` describes this layout and no other.
const _: () = assert!(LAYOUT_VERSION == 1);

/// 32-blocks of 256 elements.
const BLOCKS_PER_STEP: usize = 8;
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
    /// Bytes of 256 elements of them; 0 of a float matrix.
    step_bytes: usize,
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
            step_bytes: packed_format(matrix.dtype())
                .map_or(0, |format| format.panel_bytes(BLOCKS_PER_STEP)),
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

/// Whether a product replaces what `out` holds or is added to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Store {
    Replace,
    Add,
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
    adds: i32,
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
            MatrixKernels::Blocks { .. } => {
                multiply_blocks(cuda, rows.len(), quantized, group, Store::Replace);
            }
            MatrixKernels::Floats { matmul, .. } => {
                for product in group {
                    multiply_floats(cuda, matmul, rows, product);
                }
            }
        }
        rest = others;
    }
}

/// Adds `W·x (+ bias)` of a quantised matrix to what the product's `out` holds.
///
/// # Panics
/// As [`matmul`], and if the matrix takes no integers.
pub fn matmul_add(cuda: &Cuda, quantized: &DeviceActivations, product: Product<'_>) {
    let Product { w, bias, out } = &product;
    assert!(w.takes_integers(), "a matrix of blocks");
    assert_eq!(quantized.k(), w.k, "shape of the integers");
    let num_tokens = quantized.num_tokens();
    assert_eq!(out.len(), num_tokens * w.n, "length of the output");
    assert!(
        bias.is_none_or(|bias| bias.len() == w.n),
        "length of the bias"
    );
    multiply_blocks(
        cuda,
        num_tokens * w.k,
        quantized,
        &mut [product],
        Store::Add,
    );
}

/// Products of one to three quantised matrices of one type; shapes are checked.
fn multiply_blocks(
    cuda: &Cuda,
    len: usize,
    quantized: &DeviceActivations,
    products: &mut [Product<'_>],
    store: Store,
) {
    let w = products[0].w;
    let MatrixKernels::Blocks {
        gemv_1,
        gemv_4,
        gemm_8,
        gemv_stream,
        gemv_single,
        gemm_wide,
        ..
    } = &w.kernels
    else {
        return;
    };
    let (k, num_tokens) = (w.k, len / w.k);
    let mut targets = Targets {
        adds: i32::from(store == Store::Add),
        ..Targets::default()
    };
    let mut end_panel = 0;
    for (i, product) in products.iter().enumerate() {
        end_panel += product.w.n.div_ceil(PANEL_ROWS);
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
    let steps = (k / BLOCK).div_ceil(BLOCKS_PER_STEP);
    let (panel_bytes, k, tokens) = (w.panel_bytes, k as i32, num_tokens as i32);
    let single = gemv_single.as_ref().filter(|_| num_tokens == 1);
    let single = single.and_then(|kernel| {
        let (plan, grid) = StreamPlan::of_single(cuda, w.step_bytes, steps, end_panel)?;
        Some((kernel, plan, grid))
    });
    let stream = gemv_stream
        .as_ref()
        .filter(|_| (1..=TILE_TOKENS).contains(&num_tokens));
    let stream = single.or_else(|| {
        let kernel = stream?;
        let (plan, grid) = StreamPlan::new(cuda, w.step_bytes, steps, end_panel, num_tokens);
        // Rows of some hundred thousand elements have more sums than a block of threads holds.
        (grid.shared_bytes <= ROOMY_SHARED_BYTES).then_some((kernel, plan, grid))
    });
    if let Some((kernel, plan, grid)) = stream {
        // SAFETY: the panels are those of `[n, k]` matrices of the kernel's type, the integers were made for
        // `num_tokens` rows of `k` in whole tiles, outputs and biases have the lengths that the callers checked.
        unsafe {
            launch!(cuda, kernel, grid; targets, panel_bytes, k, tokens, integers, plan);
        }
        return;
    }
    let few = gemv_grid(steps, end_panel, num_tokens, 1, 16);
    let some = gemv_grid(steps, end_panel, num_tokens, 4, 8);
    let (kernel, grid) = if num_tokens <= TILE_TOKENS && few.shared_bytes <= SHARED_BYTES {
        (gemv_1, few)
    } else if num_tokens <= 4 * TILE_TOKENS && some.shared_bytes <= SHARED_BYTES {
        (gemv_4, some)
    } else if let Some(kernel) = gemm_wide {
        (kernel, wide_grid(w.step_bytes, end_panel, num_tokens))
    } else {
        let grid = Grid {
            blocks: [
                end_panel.div_ceil(GEMM_WARPS),
                num_tokens.div_ceil(8 * TILE_TOKENS),
                1,
            ],
            ..Grid::new(0, 32 * GEMM_WARPS)
        };
        (gemm_8, grid)
    };
    // SAFETY: as above.
    unsafe { launch!(cuda, kernel, grid; targets, panel_bytes, k, tokens, integers) };
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

/// Warps of a block of threads that multiplies many rows, on cards that have nothing better; a panel each.
const GEMM_WARPS: usize = 4;

// ---- Which kernel multiplies, and with how many threads. Never moves a bit. ----

/// Threads of `gemv`: a block for each panel and `tiles` tiles.
fn gemv_grid(steps: usize, panels: usize, num_tokens: usize, tiles: usize, warps: usize) -> Grid {
    Grid {
        blocks: [panels, num_tokens.div_ceil(tiles * TILE_TOKENS), 1],
        threads: 32 * steps.min(warps),
        // The sums of every 256-block: two floats a lane and tile.
        shared_bytes: steps * tiles * 32 * 8,
    }
}

/// Warps of `gemm_wide`; a panel each.
const WIDE_WARPS: usize = 8;
/// Its shared memory without rings (`GemmShared`), and 256-blocks of a warp's ring.
const WIDE_BYTES: usize = 141_504;
const WIDE_SLOTS: usize = 2;

/// Threads of `gemm_wide`: a block for eight panels and a group of tokens.
fn wide_grid(step_bytes: usize, panels: usize, num_tokens: usize) -> Grid {
    let shared_bytes = WIDE_BYTES + WIDE_WARPS * WIDE_SLOTS * step_bytes;
    debug_assert!(shared_bytes <= ROOMY_SHARED_BYTES);
    Grid {
        blocks: [
            num_tokens.div_ceil(GROUP_TOKENS),
            panels.div_ceil(WIDE_WARPS),
            1,
        ],
        threads: 32 * WIDE_WARPS,
        shared_bytes,
    }
}

/// Warps of `gemv_stream`.
const STREAM_WARPS: usize = 8;
/// Shared memory of all rings on a multiprocessor.
const STREAM_RING_BYTES: usize = 170 << 10;
/// Shared memory of a block's sums.
const STREAM_PARTS_BYTES: usize = 12 << 10;
/// 256 elements of 16 rows in so many bytes are few.
const STREAM_SMALL_STEP: usize = 2560;

/// `StreamPlan` of the kernels.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct StreamPlan {
    slots: i32,
    batch_panels: i32,
}

// SAFETY: numbers in C order, as the kernels declare them.
unsafe impl DeviceRepr for StreamPlan {}

/// 256-blocks that a warp of `gemv_single` takes together, and its warps at most.
const GROUP_STEPS: usize = 4;
const SINGLE_WARPS: usize = 10;
/// Shared memory of a block's rings and of its sums; two blocks of threads share a multiprocessor.
const SINGLE_RING_BYTES: usize = 96 << 10;
const SINGLE_PARTS_BYTES: usize = 14 << 10;

impl StreamPlan {
    /// How one token streams `panels` panels of `steps` 256-blocks, four at a time; `None` where there are too few to
    /// keep every warp busy, or sums do not fit.
    fn of_single(
        cuda: &Cuda,
        step_bytes: usize,
        steps: usize,
        panels: usize,
    ) -> Option<(Self, Grid)> {
        let blocks = 2 * cuda.num_multiprocessors();
        let group_bytes = GROUP_STEPS * step_bytes;
        let warps = (SINGLE_RING_BYTES / group_bytes).min(SINGLE_WARPS);
        let panel_parts = 2 * steps * PANEL_ROWS * size_of::<f32>();
        let batch_panels = (SINGLE_PARTS_BYTES / panel_parts).min(panels.div_ceil(blocks));
        if steps < GROUP_STEPS
            || panels * steps < 16 * blocks / 2
            || warps == 0
            || batch_panels == 0
        {
            return None;
        }
        let plan = Self {
            slots: 1,
            batch_panels: batch_panels as i32,
        };
        let grid = Grid {
            blocks: [panels.min(blocks), 1, 1],
            threads: 32 * warps,
            shared_bytes: warps * (group_bytes + size_of::<u64>())
                + batch_panels * panel_parts
                + steps * size_of::<f32>(),
        };
        Some((plan, grid))
    }

    /// How up to four tokens stream `panels` panels of `steps` 256-blocks.
    fn new(
        cuda: &Cuda,
        step_bytes: usize,
        steps: usize,
        panels: usize,
        num_tokens: usize,
    ) -> (Self, Grid) {
        // Two blocks of threads a multiprocessor, or three where rings are small and every block gets a panel or more.
        let multiprocessors = cuda.num_multiprocessors();
        let blocks = match step_bytes <= STREAM_SMALL_STEP && panels > 2 * multiprocessors {
            true => 3,
            false => 2,
        };
        let slots = (STREAM_RING_BYTES / (blocks * STREAM_WARPS * step_bytes)).clamp(2, 4);
        // Sums of a panel, in two batches.
        let panel_parts = 2 * steps * num_tokens * PANEL_ROWS * size_of::<f32>();
        let batch_panels = (STREAM_PARTS_BYTES / panel_parts).clamp(1, 64usize.div_ceil(steps));
        let plan = Self {
            slots: slots as i32,
            batch_panels: batch_panels as i32,
        };
        let grid = Grid {
            blocks: [panels.min(blocks * multiprocessors), 1, 1],
            threads: 32 * STREAM_WARPS,
            shared_bytes: STREAM_WARPS * slots * (step_bytes + size_of::<u64>())
                + batch_panels * panel_parts
                + steps * num_tokens * size_of::<f32>(),
        };
        (plan, grid)
    }
}
