//! Grouped-query attention of packed rows over the KV cache, with optional norms of query and key heads.

use std::sync::Arc;

use assay_kernels::attention::AttentionParams;
use assay_kernels::rope::RopeStyle;

use super::linear::{Destination, Linear, forward_all};
use super::norm::RmsNorm;
use crate::backend::{Backend, Heads};
use crate::pass::{Buffers, Pass};

/// How a layer turns its queries and keys; tables are shared by all layers alike.
#[derive(Debug)]
pub(crate) struct Rotary<B: Backend> {
    pub(crate) table: Arc<B::RopeTable>,
    pub(crate) style: RopeStyle,
}

impl<B: Backend> Clone for Rotary<B> {
    fn clone(&self) -> Self {
        Self {
            table: Arc::clone(&self.table),
            style: self.style,
        }
    }
}

/// Weights and settings of one layer's attention.
#[derive(Debug)]
pub(crate) struct Attention<B: Backend> {
    /// `[num_attention_heads * head_dim, hidden_size]`.
    pub(crate) q_proj: Linear<B>,
    /// `[num_key_value_heads * head_dim, hidden_size]`.
    pub(crate) k_proj: Linear<B>,
    /// `[num_key_value_heads * head_dim, hidden_size]`.
    pub(crate) v_proj: Linear<B>,
    /// `[hidden_size, num_attention_heads * head_dim]`.
    pub(crate) o_proj: Linear<B>,
    /// `[head_dim]` norms of query heads and of key heads.
    pub(crate) head_norms: Option<HeadNorms<B>>,
    pub(crate) rotary: Rotary<B>,
    pub(crate) num_heads: usize,
    pub(crate) num_kv_heads: usize,
    pub(crate) head_dim: usize,
    /// Factor of the queries.
    pub(crate) scale: f32,
    /// Keys in sight, the query's own included; all where `None`.
    pub(crate) window: Option<u32>,
}

/// Norms over `head_dim`, between projection and rotation.
#[derive(Debug)]
pub(crate) struct HeadNorms<B: Backend> {
    pub(crate) q_norm: RmsNorm<B>,
    pub(crate) k_norm: RmsNorm<B>,
}

impl<B: Backend> Attention<B> {
    /// From `buffers.normed` to `to`, both `[T, hidden_size]`; stores the rows' K and V in `kv`.
    pub(crate) fn forward(
        &self,
        pass: &Pass<'_, B>,
        kv: &mut B::KvLayer,
        buffers: &mut Buffers<B>,
        to: Destination,
    ) {
        let (backend, num_tokens) = (pass.backend, pass.num_tokens());
        let (q, k, v) = (&mut buffers.q, &mut buffers.k, &mut buffers.v);

        // 1. q, k, v = W h                                     [T, num_heads | num_kv_heads, head_dim]
        let h = pass.input(&buffers.normed, self.q_proj.k(), &mut buffers.quantized);
        let projections = [
            (&self.q_proj, &mut *q),
            (&self.k_proj, &mut *k),
            (&self.v_proj, &mut *v),
        ];
        forward_all(backend, &h, num_tokens, projections);
        buffers.quantized = B::into_buffer(h);

        // 2. Norms of query and key heads, where the architecture has them
        if let Some(norms) = &self.head_norms {
            norms.q_norm.forward_in_place(backend, q);
            norms.k_norm.forward_in_place(backend, k);
        }

        // 3. Rotation to each row's position
        // 4. K and V go to the cache, and are read back from it even inside this pass
        let rotary = (&*self.rotary.table, self.rotary.style);
        let heads = Heads {
            num_heads: self.num_heads,
            num_kv_heads: self.num_kv_heads,
            head_dim: self.head_dim,
        };
        backend.rope_kv_write(pass, rotary, kv, heads, [q, k], v);

        // 5. softmax(q k^T scale) v over the keys in sight     [T, num_heads, head_dim]
        let params = AttentionParams {
            num_heads: self.num_heads,
            num_kv_heads: self.num_kv_heads,
            head_dim: self.head_dim,
            scale: self.scale,
            window: self.window,
            softcap: None,
            sinks: None,
        };
        let heads = &mut buffers.heads;
        backend.resize(heads, num_tokens * self.q_proj.n());
        backend.attention(pass, &params, kv, q, heads);

        // 6. W_o                                               [T, hidden_size]
        let heads = pass.input(heads, self.o_proj.k(), &mut buffers.quantized);
        let (hidden, branch) = (&mut buffers.hidden, &mut buffers.branch);
        match to {
            Destination::Branch => self.o_proj.forward(backend, &heads, num_tokens, branch),
            Destination::Hidden => {
                self.o_proj
                    .forward_onto(backend, &heads, num_tokens, hidden, branch);
            }
        }
        buffers.quantized = B::into_buffer(heads);
    }
}
