//! Tensor names to typed weights: every shape is checked, every problem is reported at once, then the matrices
//! are packed on all threads.
//!
//! An architecture asks a `WeightLoader` for each tensor by its GGUF name and gets the typed weight at once; its
//! matrices are filled by `WeightLoader::finish`, which first refuses files with missing, misshapen or unknown
//! tensors. Knows nothing of what a tensor is for.

use std::collections::BTreeSet;
use std::fmt;

use assay_formats::{DType, GgufFile, TensorInfo, quant};
use assay_kernels::Compute;
use assay_kernels::matmul::WeightArena;

use crate::config::ModelConfig;
use crate::error::{ModelError, TensorProblem, TensorProblems};
use crate::layers::linear::{Linear, ScaleOrder};
use crate::layers::matrix::Matrix;

/// How much of the weights has been packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadProgress {
    /// Bytes of the file whose matrices are ready.
    pub done_bytes: u64,
    /// Bytes of all matrices.
    pub total_bytes: u64,
}

/// Called after each matrix, from one thread at a time.
pub type ProgressFn<'a> = &'a (dyn Fn(LoadProgress) + Sync);

/// Element types of norms, biases and other small tensors.
const FLOAT_TYPES: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

/// Hands out the weights of one file and remembers what was asked and what was wrong.
pub(crate) struct WeightLoader<'a> {
    file: &'a GgufFile,
    claimed: BTreeSet<String>,
    problems: Vec<TensorProblem>,
    pending: Vec<Pending<'a>>,
}

/// A matrix that is checked and not yet packed.
struct Pending<'a> {
    tensor: &'a TensorInfo,
    matrix: Matrix,
}

impl fmt::Debug for WeightLoader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeightLoader")
            .field("problems", &self.problems)
            .finish_non_exhaustive()
    }
}

impl<'a> WeightLoader<'a> {
    pub(crate) fn new(file: &'a GgufFile) -> Self {
        Self {
            file,
            claimed: BTreeSet::new(),
            problems: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// Matrix `name`, `[n, k]`: `n` outputs of `k` inputs.
    pub(crate) fn matrix(&mut self, name: &str, n: usize, k: usize) -> Matrix {
        let matrix = Matrix::empty(n, k);
        if let Some(tensor) = self.required(name, &[k as u64, n as u64]) {
            self.pending.push(Pending {
                tensor,
                matrix: matrix.clone(),
            });
        }
        matrix
    }

    /// Matrix `name`, or `otherwise` where the file lacks it.
    pub(crate) fn matrix_or(&mut self, name: &str, otherwise: &Matrix) -> Matrix {
        if self.file.tensor(name).is_none() {
            return otherwise.clone();
        }
        self.matrix(name, otherwise.n(), otherwise.k())
    }

    /// Matrix `name.weight` with the bias and the scale that the file gives it.
    pub(crate) fn linear(&mut self, name: &str, n: usize, k: usize, order: ScaleOrder) -> Linear {
        Linear {
            weight: self.matrix(&format!("{name}.weight"), n, k),
            bias: self.vector_if_present(&format!("{name}.bias"), n),
            scale: self
                .vector_if_present(&format!("{name}.scale"), 1)
                .and_then(|scale| scale.first().copied()),
            order,
        }
    }

    /// Vector `name`, `[len]`; empty when it is missing or wrong, which [`Self::finish`] reports.
    pub(crate) fn vector(&mut self, name: &str, len: usize) -> Vec<f32> {
        match self.required(name, &[len as u64]) {
            Some(tensor) => self.floats(tensor, len),
            None => Vec::new(),
        }
    }

    /// Vector `name`, `[len]`, where the file has it.
    pub(crate) fn vector_if_present(&mut self, name: &str, len: usize) -> Option<Vec<f32>> {
        self.file.tensor(name)?;
        Some(self.vector(name, len))
    }

    /// Accepts tensor `name` without reading it.
    pub(crate) fn ignore(&mut self, name: &str) {
        self.claimed.insert(name.to_owned());
    }

    /// Packs every matrix asked for.
    ///
    /// # Errors
    /// [`ModelError::Tensors`] with every problem met, [`ModelError::Pack`] when the kernels refuse a matrix.
    pub(crate) fn finish(
        mut self,
        cx: &Compute,
        progress: Option<ProgressFn<'_>>,
    ) -> Result<(), ModelError> {
        for tensor in self.file.tensors() {
            if !self.claimed.contains(&tensor.name) {
                self.problems.push(TensorProblem::Unexpected {
                    name: tensor.name.clone(),
                });
            }
        }
        if !self.problems.is_empty() {
            return Err(ModelError::Tensors(TensorProblems(self.problems)));
        }
        let total_bytes = self
            .pending
            .iter()
            .map(|pending| pending.tensor.byte_len)
            .sum();
        // One arena for the whole model, so that its pages are huge and its matrices lie side by side.
        let mut arena = WeightArena::new();
        let mut done_bytes = 0;
        for pending in self.pending {
            let tensor = pending.tensor;
            let bytes = self.file.tensor_bytes(tensor);
            pending
                .matrix
                .fill(&mut arena, cx, tensor.dtype, bytes)
                .map_err(|source| ModelError::Pack {
                    tensor: tensor.name.clone(),
                    source,
                })?;
            done_bytes += tensor.byte_len;
            if let Some(progress) = progress {
                progress(LoadProgress {
                    done_bytes,
                    total_bytes,
                });
            }
        }
        Ok(())
    }

    /// Tensor `name` if it is there with this shape; otherwise the problem is noted.
    fn required(&mut self, name: &str, expected: &[u64]) -> Option<&'a TensorInfo> {
        self.claimed.insert(name.to_owned());
        let Some(tensor) = self.file.tensor(name) else {
            self.problems.push(TensorProblem::Missing {
                name: name.to_owned(),
                expected: expected.to_vec(),
            });
            return None;
        };
        // Writers may leave trailing dimensions of 1.
        let mut found = tensor.shape.as_slice();
        while let [rest @ .., 1] = found
            && rest.len() >= expected.len()
        {
            found = rest;
        }
        if found != expected {
            self.problems.push(TensorProblem::Shape {
                name: name.to_owned(),
                expected: expected.to_vec(),
                found: tensor.shape.clone(),
            });
            return None;
        }
        Some(tensor)
    }

    fn floats(&mut self, tensor: &TensorInfo, len: usize) -> Vec<f32> {
        let mut values = Vec::new();
        if FLOAT_TYPES.contains(&tensor.dtype) {
            values.resize(len, 0.0);
            let bytes = self.file.tensor_bytes(tensor);
            if quant::dequantize(tensor.dtype, bytes, &mut values).is_ok() {
                return values;
            }
        }
        self.problems.push(TensorProblem::Type {
            name: tensor.name.clone(),
            found: tensor.dtype.name().to_owned(),
        });
        values
    }
}

/// Accepts the tensors that writers add to every block and no forward pass of ours reads.
pub(crate) fn ignore_known(loader: &mut WeightLoader<'_>, config: &ModelConfig) {
    const PROJECTIONS: [&str; 7] = [
        "attn_q",
        "attn_k",
        "attn_v",
        "attn_output",
        "ffn_gate",
        "ffn_up",
        "ffn_down",
    ];
    for layer in 0..config.num_hidden_layers {
        for projection in PROJECTIONS {
            // Calibration for 4-bit float activations, which are not used here.
            loader.ignore(&format!("blk.{layer}.{projection}.input_scale"));
        }
        // Inverse frequencies, implied by the rope keys.
        loader.ignore(&format!("blk.{layer}.attn_rot_embd.weight"));
    }
}
