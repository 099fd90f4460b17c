//! Grouped-query attention of packed rows over the KV cache, with optional norms of query and key heads.

use std::sync::Arc;

use assay_kernels::attention::{AttentionParams, KvLayer, attention, kv_write};
use assay_kernels::rope::{RopeStyle, RopeTable, rope};

use super::linear::Linear;
use super::norm::RmsNorm;
use crate::pass::{Buffers, Pass};

/// How a layer turns its queries and keys; tables are shared by all layers alike.
#[derive(Clone, Debug)]
pub(crate) struct Rotary {
    pub(crate) table: Arc<RopeTable>,
    pub(crate) style: RopeStyle,
}

/// Weights and settings of one layer's attention.
#[derive(Debug)]
pub(crate) struct Attention {
    /// `[num_attention_heads * head_dim, hidden_size]`.
    pub(crate) q_proj: Linear,
    /// `[num_key_value_heads * head_dim, hidden_size]`.
    pub(crate) k_proj: Linear,
    /// `[num_key_value_heads * head_dim, hidden_size]`.
    pub(crate) v_proj: Linear,
    /// `[hidden_size, num_attention_heads * head_dim]`.
    pub(crate) o_proj: Linear,
    /// `[head_dim]` norms of query heads and of key heads.
    pub(crate) head_norms: Option<HeadNorms>,
    pub(crate) rotary: Rotary,
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
pub(crate) struct HeadNorms {
    pub(crate) q_norm: RmsNorm,
    pub(crate) k_norm: RmsNorm,
}

impl Attention {
    /// From `buffers.normed` to `buffers.branch`, both `[T, hidden_size]`; stores the rows' K and V in `kv`.
    pub(crate) fn forward(&self, pass: &Pass<'_>, kv: &mut KvLayer, buffers: &mut Buffers) {
        let (cx, num_tokens) = (pass.cx, pass.num_tokens());
        let q = buffers.q.sized(num_tokens * self.q_proj.n());
        let k = buffers.k.sized(num_tokens * self.k_proj.n());
        let v = buffers.v.sized(num_tokens * self.v_proj.n());
        let heads = buffers.heads.sized(num_tokens * self.q_proj.n());

        // 1. q, k, v = W h                                     [T, num_heads | num_kv_heads, head_dim]
        let h = pass.activations(
            buffers.normed.get(),
            self.q_proj.k(),
            &mut buffers.quantized,
        );
        self.q_proj.forward(cx, &h, q);
        self.k_proj.forward(cx, &h, k);
        self.v_proj.forward(cx, &h, v);
        buffers.quantized = h.into_buffer();

        // 2. Norms of query and key heads, where the architecture has them
        if let Some(norms) = &self.head_norms {
            norms.q_norm.forward_in_place(cx, q);
            norms.k_norm.forward_in_place(cx, k);
        }

        // 3. Rotation to each row's position
        let Rotary { table, style } = &self.rotary;
        rope(
            cx,
            table,
            *style,
            pass.positions,
            q,
            self.num_heads,
            self.head_dim,
        );
        rope(
            cx,
            table,
            *style,
            pass.positions,
            k,
            self.num_kv_heads,
            self.head_dim,
        );

        // 4. K and V go to the cache, and are read back from it even inside this pass
        kv_write(cx, kv, pass.spans, k, v);

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
        attention(cx, &params, kv, pass.spans, q, heads);

        // 6. W_o                                               [T, hidden_size]
        let heads = pass.activations(heads, self.o_proj.k(), &mut buffers.quantized);
        let out_len = num_tokens * self.o_proj.n();
        self.o_proj
            .forward(cx, &heads, buffers.branch.sized(out_len));
        buffers.quantized = heads.into_buffer();
    }
}
