//! The CPU: every op is the kernel of that name on host memory.

use assay_kernels::Compute;
use assay_kernels::attention::{AttentionParams, KvLayer, SequenceSpan, attention, kv_write};
use assay_kernels::gelu_mul::gelu_mul;
use assay_kernels::matmul::{self, Activations, PackedMatrix, matmul_all};
use assay_kernels::quantize::{ActivationProfile, QuantizedActivations};
use assay_kernels::residual;
use assay_kernels::rms_norm::{rms_norm, rms_norm_in_place};
use assay_kernels::rope::{RopeStyle, RopeTable, rope};
use assay_kernels::silu_mul::silu_mul;
use assay_kernels::softcap::softcap;

use super::{Backend, Heads, Product};
use crate::error::ModelError;
use crate::forward::{ForwardError, KvBlockCopy, Logits, TokenId};
use crate::pass::Pass;

impl Backend for Compute {
    type Matrix = PackedMatrix;
    type Vector = Vec<f32>;
    type Rows = Vec<f32>;
    type Quantized = QuantizedActivations;
    type Input<'x> = Activations<'x>;
    type RopeTable = RopeTable;
    type KvLayer = KvLayer;
    type Batch = ();

    fn compute(&self) -> &Compute {
        self
    }

    fn rows_at_once(&self) -> usize {
        matmul::rows_at_once(self.isa)
    }

    fn load_matrix(&self, packed: PackedMatrix) -> Result<PackedMatrix, ModelError> {
        Ok(packed)
    }

    fn max_norm_len(&self) -> usize {
        usize::MAX
    }

    fn load_vector(&self, values: Vec<f32>) -> Result<Vec<f32>, ModelError> {
        Ok(values)
    }

    fn load_rope_table(&self, table: RopeTable) -> Result<RopeTable, ModelError> {
        Ok(table)
    }

    fn kv_layer(
        &self,
        num_blocks: usize,
        num_kv_heads: usize,
        head_dim: usize,
    ) -> Result<KvLayer, ModelError> {
        Ok(KvLayer::new(num_blocks, num_kv_heads, head_dim))
    }

    fn copy_block(&self, layer: &mut KvLayer, copy: KvBlockCopy) {
        layer.copy_block(copy.from.0, copy.to.0);
    }

    fn begin(&self, (): &mut (), _: &[TokenId], _: &[SequenceSpan<'_>], _: &[u32]) {}

    fn run(&self, _pass: &Pass<'_, Self>, work: impl FnOnce()) {
        work();
    }

    fn check(&self) -> Result<(), ForwardError> {
        Ok(())
    }

    fn resize(&self, rows: &mut Vec<f32>, len: usize) {
        rows.resize(len, 0.0);
    }

    fn bring(&self, values: Vec<f32>, rows: &mut Vec<f32>) {
        *rows = values;
    }

    fn fetch(&self, rows: &Vec<f32>) -> Vec<f32> {
        rows.clone()
    }

    fn logits(&self, rows: &mut Vec<f32>, vocab_size: usize) -> Logits {
        Logits::from_rows(vocab_size, std::mem::take(rows))
    }

    fn gather_wanted(&self, pass: &Pass<'_, Self>, x: &Vec<f32>, n: usize, out: &mut Vec<f32>) {
        for (&row, wanted) in pass.logit_rows.iter().zip(out.chunks_exact_mut(n)) {
            wanted.copy_from_slice(&x[row as usize * n..][..n]);
        }
    }

    fn copy_rows(&self, x: &Vec<f32>, n: usize, start: usize, num_rows: usize, out: &mut Vec<f32>) {
        out.copy_from_slice(&x[start * n..(start + num_rows) * n]);
    }

    fn embed(&self, pass: &Pass<'_, Self>, table: &PackedMatrix, out: &mut Vec<f32>) {
        self.pool.for_each_chunk(out, table.k(), |token, row| {
            table.row_into(pass.token_ids[token] as usize, row)
        });
    }

    fn scale(&self, x: &mut Vec<f32>, factor: f32) {
        residual::scale(self, x, factor);
    }

    fn add_bias(&self, x: &mut Vec<f32>, bias: &Vec<f32>) {
        self.pool.for_each_chunk(x, bias.len(), |_, row| {
            for (y, b) in row.iter_mut().zip(bias) {
                *y += b;
            }
        });
    }

    fn add(&self, out: &mut Vec<f32>, x: &Vec<f32>) {
        residual::add(self, out, x);
    }

    fn rms_norm(&self, x: &Vec<f32>, weight: &Vec<f32>, eps: f32, out: &mut Vec<f32>) {
        rms_norm(self, x, weight, eps, out);
    }

    fn rms_norm_in_place(&self, x: &mut Vec<f32>, weight: &Vec<f32>, eps: f32) {
        rms_norm_in_place(self, x, weight, eps);
    }

    fn input<'x>(
        &'x self,
        x: &'x Vec<f32>,
        k: usize,
        profile: ActivationProfile,
        buffer: QuantizedActivations,
    ) -> Activations<'x> {
        Activations::with_buffer(self, x, k, profile, buffer)
    }

    fn into_buffer(input: Activations<'_>) -> QuantizedActivations {
        input.into_buffer()
    }

    fn matmul(&self, x: &Activations<'_>, products: &mut [Product<'_, Self>]) {
        let mut products: Vec<_> = products
            .iter_mut()
            .map(|Product { w, bias, out }| matmul::Product {
                w,
                bias: bias.map(Vec::as_slice),
                out: &mut out[..],
            })
            .collect();
        matmul_all(self, x, &mut products);
    }

    fn rope_kv_write(
        &self,
        pass: &Pass<'_, Self>,
        (table, style): (&RopeTable, RopeStyle),
        layer: &mut KvLayer,
        heads: Heads,
        [q, k]: [&mut Vec<f32>; 2],
        v: &Vec<f32>,
    ) {
        let Heads {
            num_heads,
            num_kv_heads,
            head_dim,
        } = heads;
        rope(self, table, style, pass.positions, q, num_heads, head_dim);
        rope(
            self,
            table,
            style,
            pass.positions,
            k,
            num_kv_heads,
            head_dim,
        );
        kv_write(self, layer, pass.spans, k, v);
    }

    fn attention(
        &self,
        pass: &Pass<'_, Self>,
        params: &AttentionParams<'_>,
        layer: &KvLayer,
        q: &Vec<f32>,
        out: &mut Vec<f32>,
    ) {
        attention(self, params, layer, pass.spans, q, out);
    }

    fn silu_mul(&self, gate: &Vec<f32>, up: &Vec<f32>, _n: usize, out: &mut Vec<f32>) {
        silu_mul(self, gate, up, out);
    }

    fn gelu_mul(&self, gate: &Vec<f32>, up: &Vec<f32>, _n: usize, out: &mut Vec<f32>) {
        gelu_mul(self, gate, up, out);
    }

    fn softcap(&self, x: &mut Vec<f32>, cap: f32) {
        softcap(self, x, cap);
    }
}
