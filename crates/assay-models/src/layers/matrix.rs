//! A weight matrix in the kernels' layout, whichever kernel reads its type.

use std::sync::{Arc, OnceLock};

use assay_formats::DType;
use assay_kernels::Compute;
use assay_kernels::float_matmul::{FloatMatrix, FloatMatrixError, FloatType, float_matmul};
use assay_kernels::matmul::{Activations, PackError, PackedMatrix, WeightArena, matmul};
use thiserror::Error;

/// A weight matrix `[n, k]`, shared where two roles use the same tensor (a tied head is stored once).
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    n: usize,
    k: usize,
    /// Filled once, before the model is handed out.
    stored: Arc<OnceLock<Stored>>,
}

#[derive(Debug)]
enum Stored {
    /// Blocks of integers; activations are quantised.
    Blocks(PackedMatrix),
    /// Floats; activations stay f32.
    Floats(FloatMatrix),
}

/// Why the kernels refused a matrix.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MatrixError {
    /// A block format.
    #[error(transparent)]
    Blocks(#[from] PackError),
    /// A float type.
    #[error(transparent)]
    Floats(#[from] FloatMatrixError),
}

impl Matrix {
    /// A matrix to be filled.
    pub(crate) fn empty(n: usize, k: usize) -> Self {
        Self {
            n,
            k,
            stored: Arc::new(OnceLock::new()),
        }
    }

    /// Packs `bytes`, `n` rows of `k` elements of `dtype`, into `arena`.
    pub(crate) fn fill(
        &self,
        arena: &mut WeightArena,
        cx: &Compute,
        dtype: DType,
        bytes: &[u8],
    ) -> Result<(), MatrixError> {
        let (n, k) = (self.n, self.k);
        let float_type = match dtype {
            DType::F32 => Some(FloatType::F32),
            DType::F16 => Some(FloatType::F16),
            DType::BF16 => Some(FloatType::BF16),
            _ => None,
        };
        let stored = match float_type {
            Some(float_type) => {
                Stored::Floats(FloatMatrix::from_le_bytes(float_type, n, k, bytes)?)
            }
            None => Stored::Blocks(PackedMatrix::pack_in(arena, cx, dtype, n, k, bytes)?),
        };
        // A tensor is asked for once, so a second fill cannot happen; if it did, the first would stand.
        self.stored.get_or_init(|| stored);
        Ok(())
    }

    /// Outputs.
    pub(crate) fn n(&self) -> usize {
        self.n
    }

    /// Inputs.
    pub(crate) fn k(&self) -> usize {
        self.k
    }

    fn stored(&self) -> &Stored {
        self.stored
            .get()
            .expect("loading fills every matrix before a model exists")
    }

    /// Row `index` as f32.
    pub(crate) fn row_into(&self, index: usize, out: &mut [f32]) {
        match self.stored() {
            Stored::Blocks(matrix) => matrix.row_into(index, out),
            Stored::Floats(matrix) => matrix.copy_row(index, out),
        }
    }

    /// `out = W x + bias`, `[num_tokens, n]`.
    pub(crate) fn forward(
        &self,
        cx: &Compute,
        x: &Activations<'_>,
        bias: Option<&[f32]>,
        out: &mut [f32],
    ) {
        match self.stored() {
            Stored::Blocks(matrix) => matmul(cx, matrix, x, bias, out),
            Stored::Floats(matrix) => float_matmul(cx, matrix, x.rows(), bias, out),
        }
    }
}
