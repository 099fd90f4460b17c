//! Where a network's arithmetic runs. The architectures are written once, over [`Backend`]; the CPU and a CUDA device
//! each say how they hold weights and rows and which kernels they call. The kernels give the same bits on both, so the
//! choice moves none.

mod cpu;
mod cuda;
mod device_logits;

use std::fmt;

use assay_kernels::Compute;
use assay_kernels::attention::{AttentionParams, SequenceSpan};
use assay_kernels::matmul::PackedMatrix;
use assay_kernels::quantize::ActivationProfile;
use assay_kernels::rope::{RopeStyle, RopeTable};

pub(crate) use cuda::CudaBackend;
pub(crate) use device_logits::DeviceLogits;

use crate::error::ModelError;
use crate::forward::{ForwardError, KvBlockCopy, Logits, TokenId};
use crate::pass::Pass;

/// One of the matrices that multiply the same rows, and where its product goes.
#[derive(Debug)]
pub(crate) struct Product<'a, B: Backend> {
    pub(crate) w: &'a B::Matrix,
    pub(crate) bias: Option<&'a B::Vector>,
    /// `[num_tokens, n]`.
    pub(crate) out: &'a mut B::Rows,
}

/// Heads of a layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heads {
    pub(crate) num_heads: usize,
    pub(crate) num_kv_heads: usize,
    pub(crate) head_dim: usize,
}

/// What a pass needs of the machine that runs it. Shapes are those of the kernels: rows of a known width, row-major.
///
/// A machine that can fail does so once and for all: later ops do nothing, and [`Backend::check`] tells.
pub(crate) trait Backend: fmt::Debug + Send + Sized + 'static {
    /// Weights `[n, k]`.
    type Matrix: fmt::Debug + Send + Sync;
    /// Small f32 weights: norms, biases.
    type Vector: Default + fmt::Debug + Send;
    /// f32 rows that keep their memory between passes.
    type Rows: Default + fmt::Debug + Send;
    /// Integers of rows; reused memory.
    type Quantized: Default + fmt::Debug + Send;
    /// Rows as the input of one or more matrices.
    type Input<'x>;
    /// Cosines and sines.
    type RopeTable: fmt::Debug + Send + Sync;
    /// Keys and values of one layer.
    type KvLayer: fmt::Debug + Send;
    /// What a batch looks like where it is computed.
    type Batch: Default + fmt::Debug + Send;

    /// The host's instruction set and threads.
    fn compute(&self) -> &Compute;

    /// Rows of a small pass that are multiplied together.
    fn rows_at_once(&self) -> usize;

    /// Takes a packed matrix.
    fn load_matrix(&self, packed: PackedMatrix) -> Result<Self::Matrix, ModelError>;
    /// Longest row that is normalised.
    fn max_norm_len(&self) -> usize;
    /// Takes a vector.
    fn load_vector(&self, values: Vec<f32>) -> Result<Self::Vector, ModelError>;
    /// Takes a rotation table.
    fn load_rope_table(&self, table: RopeTable) -> Result<Self::RopeTable, ModelError>;
    /// Storage of one layer's keys and values.
    fn kv_layer(
        &self,
        num_blocks: usize,
        num_kv_heads: usize,
        head_dim: usize,
    ) -> Result<Self::KvLayer, ModelError>;
    /// Copies one block of a layer over another.
    fn copy_block(&self, layer: &mut Self::KvLayer, copy: KvBlockCopy);

    /// Makes `batch` what the pass's ops read beside the pass itself.
    fn begin(
        &self,
        batch: &mut Self::Batch,
        token_ids: &[TokenId],
        spans: &[SequenceSpan<'_>],
        logit_rows: &[u32],
    );
    /// Runs `work`, the layers of `pass`. A machine may replay what an earlier pass of the same shape launched, so nothing
    /// but ops happens in `work`, and lengths of rows are set anew afterwards.
    fn run(&self, pass: &Pass<'_, Self>, work: impl FnOnce());
    /// The first fault, if there was one; work may still be under way.
    fn check(&self) -> Result<(), ForwardError>;

    /// Makes `rows` `len` elements of unspecified values, to be overwritten.
    fn resize(&self, rows: &mut Self::Rows, len: usize);
    /// Makes `rows` these values of the host's.
    fn bring(&self, values: Vec<f32>, rows: &mut Self::Rows);
    /// The values of `rows`, on the host; NaN after a fault.
    fn fetch(&self, rows: &Self::Rows) -> Vec<f32>;
    /// The rows as logits, `[num_rows, vocab_size]`; `rows` is left without them.
    fn logits(&self, rows: &mut Self::Rows, vocab_size: usize) -> Logits;
    /// Copies the rows whose logits are wanted from `x`, rows of `n`.
    fn gather_wanted(&self, pass: &Pass<'_, Self>, x: &Self::Rows, n: usize, out: &mut Self::Rows);
    /// Copies rows `start..start + num_rows` of `x`, rows of `n`.
    fn copy_rows(
        &self,
        x: &Self::Rows,
        n: usize,
        start: usize,
        num_rows: usize,
        out: &mut Self::Rows,
    );

    /// Rows of `table` for the pass's tokens.
    fn embed(&self, pass: &Pass<'_, Self>, table: &Self::Matrix, out: &mut Self::Rows);
    /// `x *= factor`.
    fn scale(&self, x: &mut Self::Rows, factor: f32);
    /// `x[t] += bias`.
    fn add_bias(&self, x: &mut Self::Rows, bias: &Self::Vector);
    /// `out += x`.
    fn add(&self, out: &mut Self::Rows, x: &Self::Rows);
    /// RMSNorm of rows as long as `weight`.
    fn rms_norm(&self, x: &Self::Rows, weight: &Self::Vector, eps: f32, out: &mut Self::Rows);
    /// RMSNorm of rows, or heads, where they stand.
    fn rms_norm_in_place(&self, x: &mut Self::Rows, weight: &Self::Vector, eps: f32);
    /// Rows of `k` as the input of matrices; `buffer` comes back by [`Backend::into_buffer`].
    fn input<'x>(
        &'x self,
        x: &'x Self::Rows,
        k: usize,
        profile: ActivationProfile,
        buffer: Self::Quantized,
    ) -> Self::Input<'x>;
    /// The memory of an input.
    fn into_buffer(input: Self::Input<'_>) -> Self::Quantized;
    /// Each product's `out = W x + bias`.
    fn matmul(&self, x: &Self::Input<'_>, products: &mut [Product<'_, Self>]);
    /// `onto += W x + bias`. `scratch` has the length of `onto`; its values are lost.
    fn matmul_add(
        &self,
        x: &Self::Input<'_>,
        w: &Self::Matrix,
        bias: Option<&Self::Vector>,
        onto: &mut Self::Rows,
        scratch: &mut Self::Rows,
    ) {
        let out = &mut *scratch;
        self.matmul(x, &mut [Product { w, bias, out }]);
        self.add(onto, scratch);
    }
    /// Rotation of q and k to the pass's positions, where they stand, then the storage of k and v.
    fn rope_kv_write(
        &self,
        pass: &Pass<'_, Self>,
        rotary: (&Self::RopeTable, RopeStyle),
        layer: &mut Self::KvLayer,
        heads: Heads,
        qk: [&mut Self::Rows; 2],
        v: &Self::Rows,
    );
    /// Attention of the pass's rows over what is stored.
    fn attention(
        &self,
        pass: &Pass<'_, Self>,
        params: &AttentionParams<'_>,
        layer: &Self::KvLayer,
        q: &Self::Rows,
        out: &mut Self::Rows,
    );
    /// `silu(gate) * up`, rows of `n`.
    fn silu_mul(&self, gate: &Self::Rows, up: &Self::Rows, n: usize, out: &mut Self::Rows);
    /// `gelu(gate) * up`, rows of `n`.
    fn gelu_mul(&self, gate: &Self::Rows, up: &Self::Rows, n: usize, out: &mut Self::Rows);
    /// Soft-cap where the values stand.
    fn softcap(&self, x: &mut Self::Rows, cap: f32);
}
