//! Llama: pre-norm blocks of grouped-query attention and a SiLU-gated feed-forward, rotary positions.
//!
//! Touvron et al., "LLaMA" (2023) and "Llama 2" (2023); frequency factors from "The Llama 3 Herd of Models" (2024).
//! GGUF files hold query and key rows permuted so that rotation pairs neighbours. Knows no file layout beyond
//! tensor names, and no batching.

use std::sync::Arc;

use assay_kernels::rope::{RopeParameters, RopeStyle, RopeTable};

use super::Network;
use crate::backend::Backend;
use crate::config::ModelConfig;
use crate::error::ModelError;
use crate::kv_cache::KvCache;
use crate::layers::attention::{Attention, Rotary};
use crate::layers::embedding::embed;
use crate::layers::linear::{Destination, ScaleOrder};
use crate::layers::lm_head::LmHead;
use crate::layers::matrix::Matrix;
use crate::layers::mlp::{Activation, GatedMlp};
use crate::layers::norm::RmsNorm;
use crate::pass::{Buffers, Pass};
use crate::weights::{WeightLoader, ignore_known};

/// The whole network.
#[derive(Debug)]
pub(crate) struct Llama<B: Backend> {
    /// `[vocab_size, hidden_size]`.
    embed_tokens: Matrix<B>,
    layers: Vec<DecoderLayer<B>>,
    lm_head: LmHead<B>,
}

#[derive(Debug)]
struct DecoderLayer<B: Backend> {
    input_norm: RmsNorm<B>,
    self_attn: Attention<B>,
    post_attention_norm: RmsNorm<B>,
    mlp: GatedMlp<B>,
}

impl<B: Backend> Network<B> for Llama<B> {
    fn forward_layers(
        &self,
        pass: &Pass<'_, B>,
        kv_cache: &mut KvCache<B>,
        buffers: &mut Buffers<B>,
    ) {
        let backend = pass.backend;
        let hidden_len = pass.num_tokens() * self.embed_tokens.k();

        // 1. x = embedding of the tokens                       [T, hidden_size]
        if pass.part.is_first() {
            embed(pass, &self.embed_tokens, &mut buffers.hidden);
        }

        let layers = &self.layers[pass.part.layers.clone()];
        for (layer, kv) in layers.iter().zip(kv_cache.layers_mut()) {
            // 2. x += attention(RMSNorm(x))                    [T, hidden_size]
            layer
                .input_norm
                .forward(backend, &buffers.hidden, hidden_len, &mut buffers.normed);
            layer
                .self_attn
                .forward(pass, kv, buffers, Destination::Hidden);

            // 3. x += mlp(RMSNorm(x))                          [T, hidden_size]
            layer.post_attention_norm.forward(
                backend,
                &buffers.hidden,
                hidden_len,
                &mut buffers.normed,
            );
            layer.mlp.forward(pass, buffers, Destination::Hidden);
        }
    }

    fn lm_head(&self) -> &LmHead<B> {
        &self.lm_head
    }
}

impl<B: Backend> Llama<B> {
    pub(crate) fn new(
        config: &ModelConfig,
        context_length: usize,
        loader: &mut WeightLoader<'_, B>,
    ) -> Result<Self, ModelError> {
        let freq_factors = loader.floats_if_present("rope_freqs.weight", config.head_dim / 2);
        let table = RopeTable::new(&RopeParameters {
            rotary_dims: config.head_dim,
            theta: config.rope.rope_theta.into(),
            freq_factors: freq_factors.as_deref(),
            linear_scale: config.rope.linear_scale.into(),
            num_positions: context_length,
        })?;
        let rotary = Rotary {
            table: Arc::new(loader.rope_table(table)?),
            style: RopeStyle::Interleaved,
        };
        loader.at_embedding();
        let embed_tokens =
            loader.matrix("token_embd.weight", config.vocab_size, config.hidden_size);
        let layers = (0..config.num_hidden_layers)
            .map(|index| DecoderLayer::new(config, index, &rotary, loader))
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
        loader: &mut WeightLoader<'_, B>,
    ) -> Self {
        let (hidden, intermediate) = (config.hidden_size, config.intermediate_size);
        let (query, key_value) = (config.query_size(), config.key_value_size());
        let name = |part: &str| format!("blk.{index}.{part}");
        loader.at_layer(index);
        let mut norm = |part: &str| loader.norm(&name(part), hidden, config.rms_norm_eps);
        let input_norm = norm("attn_norm.weight");
        let post_attention_norm = norm("ffn_norm.weight");
        let mut attn =
            |part: &str, n, k| loader.linear(&name(part), n, k, ScaleOrder::ScaleThenBias);
        let self_attn = Attention {
            q_proj: attn("attn_q", query, hidden),
            k_proj: attn("attn_k", key_value, hidden),
            v_proj: attn("attn_v", key_value, hidden),
            o_proj: attn("attn_output", hidden, query),
            head_norms: None,
            rotary: rotary.clone(),
            num_heads: config.num_attention_heads,
            num_kv_heads: config.num_key_value_heads,
            head_dim: config.head_dim,
            scale: config.attention_scale,
            window: None,
        };
        let mut ffn =
            |part: &str, n, k| loader.linear(&name(part), n, k, ScaleOrder::BiasThenScale);
        let mlp = GatedMlp {
            gate_proj: ffn("ffn_gate", intermediate, hidden),
            up_proj: ffn("ffn_up", intermediate, hidden),
            down_proj: ffn("ffn_down", hidden, intermediate),
            activation: Activation::Silu,
        };
        Self {
            input_norm,
            self_attn,
            post_attention_norm,
            mlp,
        }
    }
}
