//! A weight matrix where it is computed, and the moment at which it is filled.

use std::sync::{Arc, OnceLock};

use crate::backend::{Backend, Product};

/// A weight matrix `[n, k]`, shared where two roles use the same tensor (a tied head is stored once).
#[derive(Debug)]
pub(crate) struct Matrix<B: Backend> {
    n: usize,
    k: usize,
    /// Filled once, before the model is handed out.
    stored: Arc<OnceLock<B::Matrix>>,
}

impl<B: Backend> Clone for Matrix<B> {
    fn clone(&self) -> Self {
        Self {
            stored: Arc::clone(&self.stored),
            ..*self
        }
    }
}

impl<B: Backend> Matrix<B> {
    /// A matrix to be filled.
    pub(crate) fn empty(n: usize, k: usize) -> Self {
        Self {
            n,
            k,
            stored: Arc::new(OnceLock::new()),
        }
    }

    /// Takes `stored`, of the same shape, as the weights.
    pub(crate) fn fill(&self, stored: B::Matrix) {
        // A tensor is asked for once, so a second fill cannot happen; if it did, the first would stand.
        self.stored.get_or_init(|| stored);
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
    pub(crate) fn get(&self) -> &B::Matrix {
        self.stored
            .get()
            .expect("loading fills every matrix before a model exists")
    }

    /// `out = W x + bias`, `[num_tokens, n]`; `out` has that length.
    pub(crate) fn forward(
        &self,
        backend: &B,
        x: &B::Input<'_>,
        bias: Option<&B::Vector>,
        out: &mut B::Rows,
    ) {
        let w = self.get();
        backend.matmul(x, &mut [Product { w, bias, out }]);
    }
}
