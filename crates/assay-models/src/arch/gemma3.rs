//! Gemma 3, text part: blocks normed on both sides, normed query and key heads, windows in most layers.
//!
//! "Gemma 3 Technical Report" (2025). Rotation pairs the halves of a head; windowed layers turn with their own
//! base. Norm weights in GGUF files hold 1 + the published weight. Knows no batching.

use std::sync::Arc;

use assay_kernels::rope::{RopeParameters, RopeStyle, RopeTable};

use super::Network;
use crate::backend::Backend;
use crate::config::{LayerType, ModelConfig, RopeConfig};
use crate::error::ModelError;
use crate::kv_cache::KvCache;
use crate::layers::attention::{Attention, HeadNorms, Rotary};
use crate::layers::embedding::embed;
use crate::layers::linear::{Destination, Linear, ScaleOrder};
use crate::layers::lm_head::LmHead;
use crate::layers::matrix::Matrix;
use crate::layers::mlp::{Activation, GatedMlp};
use crate::layers::norm::RmsNorm;
use crate::pass::{Buffers, Pass};
use crate::weights::{WeightLoader, ignore_known};

/// The whole network.
#[derive(Debug)]
pub(crate) struct Gemma3<B: Backend> {
    /// `[vocab_size, hidden_size]`.
    embed_tokens: Matrix<B>,
    /// √hidden_size.
    embedding_scale: Option<f32>,
    layers: Vec<DecoderLayer<B>>,
    lm_head: LmHead<B>,
}

#[derive(Debug)]
struct DecoderLayer<B: Backend> {
    input_norm: RmsNorm<B>,
    self_attn: Attention<B>,
    post_attention_norm: RmsNorm<B>,
    pre_feedforward_norm: RmsNorm<B>,
    mlp: GatedMlp<B>,
    post_feedforward_norm: RmsNorm<B>,
}

impl<B: Backend> Network<B> for Gemma3<B> {
    fn forward_layers(
        &self,
        pass: &Pass<'_, B>,
        kv_cache: &mut KvCache<B>,
        buffers: &mut Buffers<B>,
    ) {
        let backend = pass.backend;
        let hidden_len = pass.num_tokens() * self.embed_tokens.k();

        // 1. x = embedding of the tokens * √hidden_size        [T, hidden_size]
        if pass.part.is_first() {
            embed(pass, &self.embed_tokens, &mut buffers.hidden);
            if let Some(factor) = self.embedding_scale {
                backend.scale(&mut buffers.hidden, factor);
            }
        }

        let layers = &self.layers[pass.part.layers.clone()];
        for (layer, kv) in layers.iter().zip(kv_cache.layers_mut()) {
            // 2. x += RMSNorm(attention(RMSNorm(x)))           [T, hidden_size]
            layer
                .input_norm
                .forward(backend, &buffers.hidden, hidden_len, &mut buffers.normed);
            layer
                .self_attn
                .forward(pass, kv, buffers, Destination::Branch);
            layer
                .post_attention_norm
                .forward_in_place(backend, &mut buffers.branch);
            backend.add(&mut buffers.hidden, &buffers.branch);

            // 3. x += RMSNorm(mlp(RMSNorm(x)))                 [T, hidden_size]
            layer.pre_feedforward_norm.forward(
                backend,
                &buffers.hidden,
                hidden_len,
                &mut buffers.normed,
            );
            layer.mlp.forward(pass, buffers, Destination::Branch);
            layer
                .post_feedforward_norm
                .forward_in_place(backend, &mut buffers.branch);
            backend.add(&mut buffers.hidden, &buffers.branch);
        }
    }

    fn lm_head(&self) -> &LmHead<B> {
        &self.lm_head
    }
}

impl<B: Backend> Gemma3<B> {
    pub(crate) fn new(
        config: &ModelConfig,
        context_length: usize,
        loader: &mut WeightLoader<'_, B>,
    ) -> Result<Self, ModelError> {
        let rotary =
            |rope: RopeConfig, loader: &WeightLoader<'_, B>| -> Result<Rotary<B>, ModelError> {
                let table = RopeTable::new(&RopeParameters {
                    rotary_dims: config.head_dim,
                    theta: rope.rope_theta.into(),
                    freq_factors: None,
                    linear_scale: rope.linear_scale.into(),
                    num_positions: context_length,
                })?;
                Ok(Rotary {
                    table: Arc::new(loader.rope_table(table)?),
                    style: RopeStyle::HalfSplit,
                })
            };
        let global = rotary(config.rope, loader)?;
        let local = match config.local_rope == config.rope {
            true => global.clone(),
            false => rotary(config.local_rope, loader)?,
        };
        loader.at_embedding();
        let embed_tokens =
            loader.matrix("token_embd.weight", config.vocab_size, config.hidden_size);
        let layers = config
            .layer_types
            .iter()
            .enumerate()
            .map(|(index, layer_type)| {
                let (rotary, window) = match layer_type {
                    LayerType::FullAttention => (&global, None),
                    LayerType::SlidingAttention => (&local, config.sliding_window),
                };
                DecoderLayer::new(config, index, rotary, window, loader)
            })
            .collect();
        loader.at_head();
        let lm_head = LmHead {
            norm: loader.norm(
                "output_norm.weight",
                config.hidden_size,
                config.rms_norm_eps,
            ),
            weight: loader.matrix_or("output.weight", &embed_tokens),
            softcap: config.final_logit_softcap,
        };
        ignore_known(loader, config);
        Ok(Self {
            embed_tokens,
            embedding_scale: config.embedding_scale,
            layers,
            lm_head,
        })
    }
}

impl<B: Backend> DecoderLayer<B> {
    fn new(
        config: &ModelConfig,
        index: usize,
        rotary: &Rotary<B>,
        window: Option<u32>,
        loader: &mut WeightLoader<'_, B>,
    ) -> Self {
        let (hidden, intermediate) = (config.hidden_size, config.intermediate_size);
        let (query, key_value) = (config.query_size(), config.key_value_size());
        let name = |part: &str| format!("blk.{index}.{part}");
        loader.at_layer(index);
        let mut norm = |part: &str, len| loader.norm(&name(part), len, config.rms_norm_eps);
        let input_norm = norm("attn_norm.weight", hidden);
        let head_norms = HeadNorms {
            q_norm: norm("attn_q_norm.weight", config.head_dim),
            k_norm: norm("attn_k_norm.weight", config.head_dim),
        };
        let post_attention_norm = norm("post_attention_norm.weight", hidden);
        let pre_feedforward_norm = norm("ffn_norm.weight", hidden);
        let post_feedforward_norm = norm("post_ffw_norm.weight", hidden);
        let mut attn =
            |part: &str, n, k| loader.linear(&name(part), n, k, ScaleOrder::ScaleThenBias);
        let self_attn = Attention {
            q_proj: attn("attn_q", query, hidden),
            k_proj: attn("attn_k", key_value, hidden),
            v_proj: attn("attn_v", key_value, hidden),
            o_proj: attn("attn_output", hidden, query),
            head_norms: Some(head_norms),
            rotary: rotary.clone(),
            num_heads: config.num_attention_heads,
            num_kv_heads: config.num_key_value_heads,
            head_dim: config.head_dim,
            scale: config.attention_scale,
            window,
        };
        // By the format's custom this block has no scale: one in the file is left unread.
        let mut ffn = |part: &str, n, k| {
            loader.ignore(&name(&format!("{part}.scale")));
            Linear {
                weight: loader.matrix(&name(&format!("{part}.weight")), n, k),
                bias: None,
                scale: None,
                order: ScaleOrder::BiasThenScale,
            }
        };
        let mlp = GatedMlp {
            gate_proj: ffn("ffn_gate", intermediate, hidden),
            up_proj: ffn("ffn_up", intermediate, hidden),
            down_proj: ffn("ffn_down", hidden, intermediate),
            activation: Activation::GeluTanh,
        };
        Self {
            input_norm,
            self_attn,
            post_attention_norm,
            pre_feedforward_norm,
            mlp,
            post_feedforward_norm,
        }
    }
}
