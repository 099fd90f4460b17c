//! A weight matrix in the kernels' layout, and the moment at which it is filled.

use std::sync::{Arc, OnceLock};

use assay_formats::DType;
use assay_kernels::Compute;
use assay_kernels::matmul::{Activations, PackError, PackedMatrix, WeightArena, matmul};

/// A weight matrix `[n, k]`, shared where two roles use the same tensor (a tied head is stored once).
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    n: usize,
    k: usize,
    /// Filled once, before the model is handed out.
    packed: Arc<OnceLock<PackedMatrix>>,
}

impl Matrix {
    /// A matrix to be filled.
    pub(crate) fn empty(n: usize, k: usize) -> Self {
        Self {
            n,
            k,
            packed: Arc::new(OnceLock::new()),
        }
    }

    /// Packs `bytes`, `n` rows of `k` elements of `dtype`, into `arena`.
    pub(crate) fn pack(
        &self,
        arena: &mut WeightArena,
        cx: &Compute,
        dtype: DType,
        bytes: &[u8],
    ) -> Result<(), PackError> {
        let packed = PackedMatrix::pack_in(arena, cx, dtype, self.n, self.k, bytes)?;
        self.fill(packed);
        Ok(())
    }

    /// Takes `packed`, of the same shape, as the weights.
    pub(crate) fn fill(&self, packed: PackedMatrix) {
        // A tensor is asked for once, so a second fill cannot happen; if it did, the first would stand.
        self.packed.get_or_init(|| packed);
    }

    /// Outputs.
    pub(crate) fn n(&self) -> usize {
        self.n
    }

    /// Inputs.
    pub(crate) fn k(&self) -> usize {
        self.k
    }

    /// The weights, once they are filled.
    pub(crate) fn packed(&self) -> &PackedMatrix {
        self.packed
            .get()
            .expect("loading fills every matrix before a model exists")
    }

    /// Row `index` as f32.
    pub(crate) fn row_into(&self, index: usize, out: &mut [f32]) {
        self.packed().row_into(index, out);
    }

    /// `out = W x + bias`, `[num_tokens, n]`.
    pub(crate) fn forward(
        &self,
        cx: &Compute,
        x: &Activations<'_>,
        bias: Option<&[f32]>,
        out: &mut [f32],
    ) {
        matmul(cx, self.packed(), x, bias, out);
    }
}
