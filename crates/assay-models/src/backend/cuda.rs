//! A CUDA device: weights, rows and cache lie there; token ids and tables go over, rows of logits come back.

use std::cell::{OnceCell, RefCell};
use std::sync::{Arc, PoisonError};

use assay_kernels::Compute;
use assay_kernels::attention::cuda::{DeviceKvLayer, DeviceSpans, attention, rope_kv_write};
use assay_kernels::attention::{AttentionParams, SequenceSpan};
use assay_kernels::cuda::{Cuda, DeviceBuffer, Recordings};
use assay_kernels::embed::cuda::{DeviceTokenIds, embed, gather_rows};
use assay_kernels::gelu_mul::cuda::gelu_mul;
use assay_kernels::matmul::PackedMatrix;
use assay_kernels::matmul::cuda::{self as device, DeviceMatrix, matmul};
use assay_kernels::quantize::ActivationProfile;
use assay_kernels::quantize::cuda::DeviceActivations;
use assay_kernels::residual::cuda as residual;
use assay_kernels::rms_norm::cuda::{MAX_ROW, rms_norm, rms_norm_in_place};
use assay_kernels::rope::cuda::DeviceRopeTable;
use assay_kernels::rope::{RopeStyle, RopeTable};
use assay_kernels::silu_mul::cuda::silu_mul;
use assay_kernels::softcap::cuda::softcap;

use super::device_logits::{DeviceLogits, SpareLogits};
use super::{Backend, Heads, Product};
use crate::error::ModelError;
use crate::forward::{ForwardError, KvBlockCopy, Logits, TokenId};
use crate::pass::Pass;

/// A device, and the host that packs for it and reads its logits.
#[derive(Debug)]
pub(crate) struct CudaBackend {
    cuda: Arc<Cuda>,
    host: Compute,
    /// Passes of few rows, by what decides their launches.
    recordings: RefCell<Recordings<[usize; 3]>>,
    spare_logits: SpareLogits,
}

impl CudaBackend {
    pub(crate) fn new(cuda: Arc<Cuda>, host: Compute) -> Self {
        Self {
            cuda,
            host,
            recordings: RefCell::default(),
            spare_logits: SpareLogits::default(),
        }
    }
}

/// Rows of a pass that is worth recording: those of longer ones take longer than their launches.
const MAX_RECORDED_ROWS: usize = 32;

type Vector = DeviceBuffer<f32>;

/// Rows, and their integers where the op that made the rows made them too.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    values: DeviceBuffer<f32>,
    integers: DeviceActivations,
    has_integers: bool,
}

impl Rows {
    /// Rows of `n` to be written, and their integers if rows of `n` can have some.
    fn with_integers(
        &mut self,
        n: usize,
    ) -> (&mut DeviceBuffer<f32>, Option<&mut DeviceActivations>) {
        self.has_integers = n.is_multiple_of(32);
        let integers = self.has_integers.then_some(&mut self.integers);
        (&mut self.values, integers)
    }

    /// Rows to be written or changed, whose integers are then no more theirs.
    fn changed(&mut self) -> &mut DeviceBuffer<f32> {
        self.has_integers = false;
        &mut self.values
    }
}

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
        if self.rows.has_integers {
            return &self.rows.integers;
        }
        self.quantized.get_or_init(|| {
            let mut quantized = self.spare.take();
            quantized.quantize(self.cuda, &self.rows.values, self.k);
            quantized
        })
    }
}

impl Backend for CudaBackend {
    type Matrix = DeviceMatrix;
    type Vector = Vector;
    type Rows = Rows;
    type Quantized = DeviceActivations;
    type Input<'x> = DeviceInput<'x>;
    type RopeTable = DeviceRopeTable;
    type KvLayer = DeviceKvLayer;
    type Batch = DeviceBatch;

    fn compute(&self) -> &Compute {
        &self.host
    }

    fn rows_at_once(&self) -> usize {
        1
    }

    fn load_matrix(&self, packed: PackedMatrix) -> Result<DeviceMatrix, ModelError> {
        Ok(DeviceMatrix::upload(&self.cuda, &packed)?)
    }

    fn max_norm_len(&self) -> usize {
        MAX_ROW
    }

    fn load_vector(&self, values: Vec<f32>) -> Result<Vector, ModelError> {
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
        rows.changed().sized(&self.cuda, len);
    }

    fn bring(&self, values: Vec<f32>, rows: &mut Rows) {
        rows.changed().fill(&self.cuda, &values);
    }

    fn fetch(&self, rows: &Rows) -> Vec<f32> {
        let len = rows.values.len();
        let read = rows.values.read(&self.cuda, 0, len);
        read.unwrap_or_else(|_| vec![f32::NAN; len])
    }

    fn logits(&self, rows: &mut Rows, vocab_size: usize) -> Logits {
        let mut spare = self
            .spare_logits
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut scored = spare.pop().unwrap_or_default();
        drop(spare);
        std::mem::swap(&mut scored.values, &mut rows.values);
        let spare = &self.spare_logits;
        Logits::on_device(DeviceLogits::new(&self.cuda, vocab_size, scored, spare))
    }

    fn gather_wanted(&self, pass: &Pass<'_, Self>, x: &Rows, n: usize, out: &mut Rows) {
        gather_rows(
            &self.cuda,
            &x.values,
            &pass.batch.logit_rows,
            n,
            out.changed(),
        );
    }

    fn copy_rows(&self, x: &Rows, n: usize, start: usize, num_rows: usize, out: &mut Rows) {
        out.changed()
            .copy_part(&self.cuda, &x.values, start * n, num_rows * n);
    }

    fn embed(&self, pass: &Pass<'_, Self>, table: &DeviceMatrix, out: &mut Rows) {
        embed(&self.cuda, table, &pass.batch.token_ids, out.changed());
    }

    fn scale(&self, x: &mut Rows, factor: f32) {
        residual::scale(&self.cuda, x.changed(), factor);
    }

    fn add_bias(&self, x: &mut Rows, bias: &Vector) {
        residual::add_bias(&self.cuda, x.changed(), bias);
    }

    fn add(&self, out: &mut Rows, x: &Rows) {
        residual::add(&self.cuda, out.changed(), &x.values);
    }

    fn rms_norm(&self, x: &Rows, weight: &Vector, eps: f32, out: &mut Rows) {
        let (out, integers) = out.with_integers(weight.len());
        rms_norm(&self.cuda, &x.values, weight, eps, out, integers);
    }

    fn rms_norm_in_place(&self, x: &mut Rows, weight: &Vector, eps: f32) {
        rms_norm_in_place(&self.cuda, x.changed(), weight, eps);
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

    fn matmul(&self, x: &DeviceInput<'_>, products: &mut [Product<'_, Self>]) {
        let none = DeviceActivations::default();
        let quantized = match products.iter().any(|product| product.w.takes_integers()) {
            true => x.quantized(),
            false => &none,
        };
        let mut products: Vec<device::Product<'_>> = products
            .iter_mut()
            .map(|product| device::Product {
                w: product.w,
                bias: product.bias,
                out: product.out.changed(),
            })
            .collect();
        matmul(&self.cuda, &x.rows.values, quantized, &mut products);
    }

    fn matmul_add(
        &self,
        x: &DeviceInput<'_>,
        w: &DeviceMatrix,
        bias: Option<&Vector>,
        onto: &mut Rows,
        scratch: &mut Rows,
    ) {
        if w.takes_integers() {
            let out = onto.changed();
            device::matmul_add(&self.cuda, x.quantized(), device::Product { w, bias, out });
        } else {
            let out = &mut *scratch;
            self.matmul(x, &mut [Product { w, bias, out }]);
            self.add(onto, scratch);
        }
    }

    fn rope_kv_write(
        &self,
        pass: &Pass<'_, Self>,
        rotary: (&DeviceRopeTable, RopeStyle),
        layer: &mut DeviceKvLayer,
        heads: Heads,
        [q, k]: [&mut Rows; 2],
        v: &Rows,
    ) {
        let spans = &pass.batch.spans.borrow();
        let qk = [q.changed(), k.changed()];
        rope_kv_write(
            &self.cuda,
            rotary,
            layer,
            spans,
            heads.num_heads,
            qk,
            &v.values,
        );
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
        let (out, integers) = out.with_integers(params.num_heads * params.head_dim);
        let q = &q.values;
        attention(&self.cuda, (params, None), layer, spans, q, out, integers);
    }

    fn silu_mul(&self, gate: &Rows, up: &Rows, n: usize, out: &mut Rows) {
        let (out, integers) = out.with_integers(n);
        silu_mul(&self.cuda, &gate.values, &up.values, n, out, integers);
    }

    fn gelu_mul(&self, gate: &Rows, up: &Rows, n: usize, out: &mut Rows) {
        let (out, integers) = out.with_integers(n);
        gelu_mul(&self.cuda, &gate.values, &up.values, n, out, integers);
    }

    fn softcap(&self, x: &mut Rows, cap: f32) {
        softcap(&self.cuda, x.changed(), cap);
    }
}
