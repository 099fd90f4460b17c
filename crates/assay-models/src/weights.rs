//! Tensor names to typed weights: every shape is checked, every problem is reported at once, then the matrices
//! are packed on all threads.
//!
//! An architecture asks a `WeightLoader` for each tensor by its GGUF name and gets the typed weight at once; its
//! matrices are filled by `WeightLoader::finish`, which first refuses files with missing, misshapen or unknown
//! tensors. Knows nothing of what a tensor is for.

use std::collections::BTreeSet;
use std::fmt;
use std::iter::repeat_with;

use assay_formats::{DType, GgufFile, TensorInfo, quant};
use assay_kernels::matmul::{PackedMatrix, WeightArena};
use assay_kernels::rope::RopeTable;

use crate::backend::Backend;
use crate::config::ModelConfig;
use crate::error::{ModelError, TensorProblem, TensorProblems};
use crate::layers::linear::{Linear, ScaleOrder};
use crate::layers::matrix::Matrix;
use crate::layers::norm::RmsNorm;
use crate::packed_cache::{PackedCache, Shaped};
use crate::split::Part;

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
pub(crate) struct WeightLoader<'a, B: Backend> {
    file: &'a GgufFile,
    backend: &'a B,
    claimed: BTreeSet<String>,
    problems: Vec<TensorProblem>,
    pending: Vec<Pending<'a, B>>,
    /// Why the backend could not take a vector, if it could not.
    refused: Option<ModelError>,
    part: Part,
    /// Whether what is asked for now belongs to the part.
    is_here: bool,
}

/// A matrix that is checked and not yet packed.
struct Pending<'a, B: Backend> {
    tensor: TensorInfo<'a>,
    matrix: Matrix<B>,
}

impl<'a, B: Backend> Pending<'a, B> {
    fn shaped(&self) -> Shaped<'a> {
        Shaped {
            tensor: self.tensor,
            n: self.matrix.n(),
            k: self.matrix.k(),
        }
    }
}

/// Counts the bytes of finished matrices for whoever shows them.
struct Progress<'a> {
    show: Option<ProgressFn<'a>>,
    state: LoadProgress,
}

impl<'a> Progress<'a> {
    fn new<B: Backend>(pending: &[Pending<'_, B>], show: Option<ProgressFn<'a>>) -> Self {
        let total_bytes = pending.iter().map(|pending| pending.tensor.byte_len).sum();
        let state = LoadProgress {
            done_bytes: 0,
            total_bytes,
        };
        Self { show, state }
    }

    fn add(&mut self, tensor: &TensorInfo<'_>) {
        self.state.done_bytes += tensor.byte_len;
        if let Some(show) = self.show {
            show(self.state);
        }
    }

    fn restart(&mut self) {
        self.state.done_bytes = 0;
    }
}

impl<B: Backend> fmt::Debug for WeightLoader<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeightLoader")
            .field("problems", &self.problems)
            .finish_non_exhaustive()
    }
}

impl<'a, B: Backend> WeightLoader<'a, B> {
    pub(crate) fn new(file: &'a GgufFile, backend: &'a B, part: Part) -> Self {
        Self {
            file,
            backend,
            claimed: BTreeSet::new(),
            problems: Vec::new(),
            pending: Vec::new(),
            refused: None,
            part,
            is_here: true,
        }
    }

    /// What is asked for next belongs to the embedding, which a head without a matrix of its own shares.
    pub(crate) fn at_embedding(&mut self) {
        let is_tied = self.file.tensor("output.weight").is_none();
        self.is_here = self.part.is_first() || (self.part.is_last() && is_tied);
    }

    /// What is asked for next belongs to layer `index`.
    pub(crate) fn at_layer(&mut self, index: usize) {
        self.is_here = self.part.layers.contains(&index);
    }

    /// What is asked for next belongs to the head.
    pub(crate) fn at_head(&mut self) {
        self.is_here = self.part.is_last();
    }

    /// Matrix `name`, `[n, k]`: `n` outputs of `k` inputs.
    pub(crate) fn matrix(&mut self, name: &str, n: usize, k: usize) -> Matrix<B> {
        let matrix = Matrix::empty(n, k);
        if let Some(tensor) = self.required(name, &[k as u64, n as u64])
            && self.is_here
        {
            self.pending.push(Pending {
                tensor,
                matrix: matrix.clone(),
            });
        }
        matrix
    }

    /// Matrix `name`, or `otherwise` where the file lacks it.
    pub(crate) fn matrix_or(&mut self, name: &str, otherwise: &Matrix<B>) -> Matrix<B> {
        if self.file.tensor(name).is_none() {
            return otherwise.clone();
        }
        self.matrix(name, otherwise.n(), otherwise.k())
    }

    /// Matrix `name.weight` with the bias and the scale that the file gives it.
    pub(crate) fn linear(
        &mut self,
        name: &str,
        n: usize,
        k: usize,
        order: ScaleOrder,
    ) -> Linear<B> {
        Linear {
            weight: self.matrix(&format!("{name}.weight"), n, k),
            bias: self.vector_if_present(&format!("{name}.bias"), n),
            scale: self
                .floats_if_present(&format!("{name}.scale"), 1)
                .and_then(|scale| scale.first().copied()),
            order,
        }
    }

    /// Vector `name`, `[len]`; empty when it is missing or wrong, which [`Self::finish`] reports.
    pub(crate) fn vector(&mut self, name: &str, len: usize) -> B::Vector {
        let values = self.floats_of(name, len);
        self.take(values)
    }

    /// Norm of rows as long as vector `name`, `[len]`.
    pub(crate) fn norm(&mut self, name: &str, len: usize, eps: f32) -> RmsNorm<B> {
        let max = self.backend.max_norm_len();
        if len > max && self.is_here {
            let tensor = name.to_owned();
            let refused = ModelError::NormTooLong { tensor, len, max };
            self.refused.get_or_insert(refused);
        }
        let weight = self.vector(name, len);
        RmsNorm { weight, eps }
    }

    /// Vector `name`, `[len]`, where the file has it.
    pub(crate) fn vector_if_present(&mut self, name: &str, len: usize) -> Option<B::Vector> {
        let values = self.floats_if_present(name, len)?;
        Some(self.take(values))
    }

    /// Vector `name`, `[len]`, on the host, where the file has it.
    pub(crate) fn floats_if_present(&mut self, name: &str, len: usize) -> Option<Vec<f32>> {
        self.file.tensor(name)?;
        Some(self.floats_of(name, len))
    }

    /// `table`, where it is computed.
    pub(crate) fn rope_table(&self, table: RopeTable) -> Result<B::RopeTable, ModelError> {
        self.backend.load_rope_table(table)
    }

    fn floats_of(&mut self, name: &str, len: usize) -> Vec<f32> {
        match self.required(name, &[len as u64]) {
            Some(tensor) => self.floats(tensor, len),
            None => Vec::new(),
        }
    }

    fn take(&mut self, values: Vec<f32>) -> B::Vector {
        if !self.is_here {
            return B::Vector::default();
        }
        match self.backend.load_vector(values) {
            Ok(vector) => vector,
            Err(error) => {
                self.refused.get_or_insert(error);
                B::Vector::default()
            }
        }
    }

    /// Accepts tensor `name` without reading it.
    pub(crate) fn ignore(&mut self, name: &str) {
        self.claimed.insert(name.to_owned());
    }

    /// Packs every matrix asked for, or takes it from `cache`, which is written when it could not be read.
    ///
    /// # Errors
    /// [`ModelError::Tensors`] with every problem met, [`ModelError::Pack`] when the kernels refuse a matrix.
    pub(crate) fn finish(
        mut self,
        progress: Option<ProgressFn<'_>>,
        cache: Option<&PackedCache<'_>>,
    ) -> Result<(), ModelError> {
        for tensor in self.file.tensors().iter() {
            if !self.claimed.contains(tensor.name) {
                self.problems.push(TensorProblem::Unexpected {
                    name: tensor.name.to_owned(),
                });
            }
        }
        if !self.problems.is_empty() {
            return Err(ModelError::Tensors(TensorProblems(self.problems)));
        }
        if let Some(refused) = self.refused {
            return Err(refused);
        }
        let cx = self.backend.compute();
        let mut progress = Progress::new(&self.pending, progress);
        let tensors: Vec<Shaped<'_>> = self.pending.iter().map(Pending::shaped).collect();
        let cached = cache.and_then(|cache| {
            let cached = cache.read(cx, &tensors, |shaped| progress.add(&shaped.tensor));
            if cached.is_none() {
                progress.restart();
            }
            cached
        });
        let is_cached = cached.is_some();
        let cached = cached.unwrap_or_default().into_iter();
        // One arena for the whole model, so that its pages are huge and its matrices lie side by side.
        let mut arena = WeightArena::new();
        let mut matrices = Vec::with_capacity(self.pending.len());
        for (shaped, cached) in tensors.iter().zip(cached.chain(repeat_with(|| None))) {
            let tensor = shaped.tensor;
            if let Some(packed) = cached {
                matrices.push(packed);
                continue;
            }
            let bytes = self.file.tensor_bytes(&tensor);
            let packed =
                PackedMatrix::pack_in(&mut arena, cx, tensor.dtype, shaped.n, shaped.k, bytes);
            matrices.push(packed.map_err(|source| ModelError::Pack {
                tensor: tensor.name.to_owned(),
                source,
            })?);
            progress.add(&tensor);
        }
        if let Some(cache) = cache
            && !is_cached
        {
            cache.write(&tensors, &matrices.iter().collect::<Vec<_>>());
        }
        for (pending, packed) in self.pending.iter().zip(matrices) {
            pending.matrix.fill(self.backend.load_matrix(packed)?);
        }
        Ok(())
    }

    /// Tensor `name` if it is there with this shape; otherwise the problem is noted.
    fn required(&mut self, name: &str, expected: &[u64]) -> Option<TensorInfo<'a>> {
        self.claimed.insert(name.to_owned());
        let Some(tensor) = self.file.tensor(name) else {
            self.problems.push(TensorProblem::Missing {
                name: name.to_owned(),
                expected: expected.to_vec(),
            });
            return None;
        };
        // Writers may leave trailing dimensions of 1.
        let mut found = &*tensor.shape;
        while let [rest @ .., 1] = found
            && rest.len() >= expected.len()
        {
            found = rest;
        }
        if found != expected {
            self.problems.push(TensorProblem::Shape {
                name: name.to_owned(),
                expected: expected.to_vec(),
                found: tensor.shape.to_vec(),
            });
            return None;
        }
        Some(tensor)
    }

    fn floats(&mut self, tensor: TensorInfo<'_>, len: usize) -> Vec<f32> {
        let mut values = Vec::new();
        if FLOAT_TYPES.contains(&tensor.dtype) {
            values.resize(len, 0.0);
            let bytes = self.file.tensor_bytes(&tensor);
            if quant::dequantize(tensor.dtype, bytes, &mut values).is_ok() {
                return values;
            }
        }
        self.problems.push(TensorProblem::Type {
            name: tensor.name.to_owned(),
            found: tensor.dtype.name().to_owned(),
        });
        values
    }
}

/// Accepts the tensors that writers add to every block and no forward pass of ours reads.
pub(crate) fn ignore_known<B: Backend>(loader: &mut WeightLoader<'_, B>, config: &ModelConfig) {
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
