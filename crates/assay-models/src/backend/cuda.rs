//! A CUDA device: weights, rows and cache lie there; token ids and tables go over, rows of logits come back.

use std::cell::{OnceCell, RefCell};
use std::sync::Arc;

use assay_kernels::Compute;
use assay_kernels::attention::cuda::{DeviceKvLayer, DeviceSpans, attention, kv_write};
use assay_kernels::attention::{AttentionParams, SequenceSpan};
use assay_kernels::cuda::{Cuda, DeviceBuffer, Recordings};
use assay_kernels::embed::cuda::{DeviceTokenIds, embed, gather_rows};
use assay_kernels::gelu_mul::cuda::gelu_mul;
use assay_kernels::matmul::PackedMatrix;
use assay_kernels::matmul::cuda::{DeviceMatrix, matmul};
use assay_kernels::quantize::ActivationProfile;
use assay_kernels::quantize::cuda::DeviceActivations;
use assay_kernels::residual::cuda as residual;
use assay_kernels::rms_norm::cuda::{rms_norm, rms_norm_in_place};
use assay_kernels::rope::cuda::{DeviceRopeTable, rope};
use assay_kernels::rope::{RopeStyle, RopeTable};
use assay_kernels::silu_mul::cuda::silu_mul;
use assay_kernels::softcap::cuda::softcap;

use super::Backend;
use crate::error::ModelError;
use crate::forward::{ForwardError, KvBlockCopy, TokenId};
use crate::pass::Pass;

/// A device, and the host that packs for it and reads its logits.
#[derive(Debug)]
pub(crate) struct CudaBackend {
    cuda: Arc<Cuda>,
    host: Compute,
    /// Passes of few rows, by what decides their launches.
    recordings: RefCell<Recordings<[usize; 3]>>,
}

impl CudaBackend {
    pub(crate) fn new(cuda: Arc<Cuda>, host: Compute) -> Self {
        Self {
            cuda,
            host,
            recordings: RefCell::default(),
        }
    }
}

/// Rows of a pass that is worth recording: those of longer ones take longer than their launches.
const MAX_RECORDED_ROWS: usize = 32;

type Rows = DeviceBuffer<f32>;

/// A pass's batch on the device.
#[derive(Debug, Default)]
pub(crate) struct DeviceBatch {
    token_ids: DeviceTokenIds,
    logit_rows: DeviceTokenIds,
    /// With the scratch that attention uses.
    spans: RefCell<DeviceSpans>,
}

/// Rows and, once a matrix asks, their integers.
pub(crate) struct DeviceInput<'x> {
    cuda: &'x Cuda,
    rows: &'x Rows,
    k: usize,
    spare: RefCell<DeviceActivations>,
    quantized: OnceCell<DeviceActivations>,
}

impl DeviceInput<'_> {
    fn quantized(&self) -> &DeviceActivations {
        self.quantized.get_or_init(|| {
            let mut quantized = self.spare.take();
            quantized.quantize(self.cuda, self.rows, self.k);
            quantized
        })
    }
}

impl Backend for CudaBackend {
    type Matrix = DeviceMatrix;
    type Vector = Rows;
    type Rows = Rows;
    type Quantized = DeviceActivations;
    type Input<'x> = DeviceInput<'x>;
    type RopeTable = DeviceRopeTable;
    type KvLayer = DeviceKvLayer;
    type Batch = DeviceBatch;

    fn compute(&self) -> &Compute {
        &self.host
    }

    fn load_matrix(&self, packed: PackedMatrix) -> Result<DeviceMatrix, ModelError> {
        Ok(DeviceMatrix::upload(&self.cuda, &packed)?)
    }

    fn load_vector(&self, values: Vec<f32>) -> Result<Rows, ModelError> {
        Ok(DeviceBuffer::upload(&self.cuda, &values)?)
    }

    fn load_rope_table(&self, table: RopeTable) -> Result<DeviceRopeTable, ModelError> {
        Ok(DeviceRopeTable::upload(&self.cuda, &table)?)
    }

    fn kv_layer(
        &self,
        num_blocks: usize,
        num_kv_heads: usize,
        head_dim: usize,
    ) -> Result<DeviceKvLayer, ModelError> {
        let layer = DeviceKvLayer::new(&self.cuda, num_blocks, num_kv_heads, head_dim);
        Ok(layer?)
    }

    fn copy_block(&self, layer: &mut DeviceKvLayer, copy: KvBlockCopy) {
        layer.copy_block(&self.cuda, copy.from.0, copy.to.0);
    }

    fn begin(
        &self,
        batch: &mut DeviceBatch,
        token_ids: &[TokenId],
        spans: &[SequenceSpan<'_>],
        logit_rows: &[u32],
    ) {
        batch.token_ids.set(&self.cuda, token_ids);
        batch.logit_rows.set(&self.cuda, logit_rows);
        batch.spans.get_mut().set(&self.cuda, spans);
    }

    fn run(&self, pass: &Pass<'_, Self>, work: impl FnOnce()) {
        let shape = pass.batch.spans.borrow().launch_shape();
        match shape {
            Some(shape) if pass.num_tokens() <= MAX_RECORDED_ROWS => {
                let mut recordings = self.recordings.borrow_mut();
                recordings.run(&self.cuda, shape, work);
            }
            _ => work(),
        }
    }

    fn check(&self) -> Result<(), ForwardError> {
        self.cuda
            .fault()
            .map_or(Ok(()), |fault| Err(ForwardError::Device(fault.to_string())))
    }

    fn resize(&self, rows: &mut Rows, len: usize) {
        rows.sized(&self.cuda, len);
    }

    fn take(&self, rows: &mut Rows) -> Vec<f32> {
        // After a fault every row is NaN: whoever scores one fails, and the next pass tells why.
        rows.read(&self.cuda, 0, rows.len())
            .unwrap_or_else(|_| vec![f32::NAN; rows.len()])
    }

    fn gather_wanted(&self, pass: &Pass<'_, Self>, x: &Rows, n: usize, out: &mut Rows) {
        gather_rows(&self.cuda, x, &pass.batch.logit_rows, n, out);
    }

    fn copy_rows(&self, x: &Rows, n: usize, start: usize, num_rows: usize, out: &mut Rows) {
        out.copy_part(&self.cuda, x, start * n, num_rows * n);
    }

    fn embed(&self, pass: &Pass<'_, Self>, table: &DeviceMatrix, out: &mut Rows) {
        embed(&self.cuda, table, &pass.batch.token_ids, out);
    }

    fn scale(&self, x: &mut Rows, factor: f32) {
        residual::scale(&self.cuda, x, factor);
    }

    fn add_bias(&self, x: &mut Rows, bias: &Rows) {
        residual::add_bias(&self.cuda, x, bias);
    }

    fn add(&self, out: &mut Rows, x: &Rows) {
        residual::add(&self.cuda, out, x);
    }

    fn rms_norm(&self, x: &Rows, weight: &Rows, eps: f32, out: &mut Rows) {
        rms_norm(&self.cuda, x, weight, eps, out);
    }

    fn rms_norm_in_place(&self, x: &mut Rows, weight: &Rows, eps: f32) {
        rms_norm_in_place(&self.cuda, x, weight, eps);
    }

    fn input<'x>(
        &'x self,
        x: &'x Rows,
        k: usize,
        _profile: ActivationProfile,
        buffer: DeviceActivations,
    ) -> DeviceInput<'x> {
        DeviceInput {
            cuda: &self.cuda,
            rows: x,
            k,
            spare: RefCell::new(buffer),
            quantized: OnceCell::new(),
        }
    }

    fn into_buffer(input: DeviceInput<'_>) -> DeviceActivations {
        let spare = input.spare.into_inner();
        input.quantized.into_inner().unwrap_or(spare)
    }

    fn matmul(&self, w: &DeviceMatrix, x: &DeviceInput<'_>, bias: Option<&Rows>, out: &mut Rows) {
        let spare = x.spare.borrow();
        let quantized = match w.takes_integers() {
            true => {
                drop(spare);
                x.quantized()
            }
            false => &*spare,
        };
        matmul(&self.cuda, w, x.rows, quantized, bias, out);
    }

    fn rope(
        &self,
        pass: &Pass<'_, Self>,
        table: &DeviceRopeTable,
        style: RopeStyle,
        x: &mut Rows,
        heads: [usize; 2],
    ) {
        let spans = pass.batch.spans.borrow();
        let (positions, end) = (spans.positions(), spans.end_position());
        rope(&self.cuda, table, style, positions, end, x, heads);
    }

    fn kv_write(&self, pass: &Pass<'_, Self>, layer: &mut DeviceKvLayer, k: &Rows, v: &Rows) {
        kv_write(&self.cuda, layer, &pass.batch.spans.borrow(), k, v);
    }

    fn attention(
        &self,
        pass: &Pass<'_, Self>,
        params: &AttentionParams<'_>,
        layer: &DeviceKvLayer,
        q: &Rows,
        out: &mut Rows,
    ) {
        let spans = &mut pass.batch.spans.borrow_mut();
        attention(&self.cuda, params, None, layer, spans, q, out);
    }

    fn silu_mul(&self, gate: &Rows, up: &Rows, out: &mut Rows) {
        silu_mul(&self.cuda, gate, up, out);
    }

    fn gelu_mul(&self, gate: &Rows, up: &Rows, out: &mut Rows) {
        gelu_mul(&self.cuda, gate, up, out);
    }

    fn softcap(&self, x: &mut Rows, cap: f32) {
        softcap(&self.cuda, x, cap);
    }
}
