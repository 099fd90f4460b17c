//! What a figure's work amounts to: integer operations and bytes of weights, from the file's tensors.
//!
//! Operations are those of the matrix products alone, as the instruction set does them: an 8-bit path multiplies the
//! two halves of a 16-bit activation one after the other. Attention, norms and scores are not counted, so a share of
//! the peak is what the whole pass leaves to the products.

use assay_formats::GgufFile;
use assay_kernels::attention::KV_BLOCK_TOKENS;
use assay_models::{ModelConfig, Numerics};

const EMBEDDING: &str = "token_embd.weight";
const HEAD: &str = "output.weight";

/// What one figure's samples each did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Amount {
    /// Integer operations, a multiply-add counting two; 0 where the weights are no integers.
    pub(super) integer_ops: f64,
    /// Bytes that have to come from memory; 0 where the work is bound by operations alone.
    pub(super) read_bytes: f64,
}

/// Work of one pass, per token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Work {
    layers: Matrices,
    head: Matrices,
    /// Integer multiply-adds for each weight and token in the layers, and in the head.
    layer_factor: f64,
    head_factor: f64,
    kv_token_bytes: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Matrices {
    /// Weights of block types.
    integer_weights: f64,
    bytes: f64,
}

impl Work {
    pub(super) fn of(file: &GgufFile, config: &ModelConfig, isa: &str, numerics: Numerics) -> Self {
        let (mut layers, mut head) = (Matrices::default(), Matrices::default());
        let has_head = file.tensor(HEAD).is_some();
        for tensor in file.tensors().iter().filter(|tensor| tensor.rows() > 1) {
            let is_head = tensor.name == HEAD || (tensor.name == EMBEDDING && !has_head);
            let into = if is_head {
                &mut head
            } else if tensor.name == EMBEDDING {
                // A row a token: nothing beside a matrix.
                continue;
            } else {
                &mut layers
            };
            into.bytes += tensor.byte_len as f64;
            if tensor.dtype.block_len() > 1 {
                into.integer_weights += tensor.num_elements() as f64;
            }
        }
        // The AVX2 path multiplies 16-bit activations at once, the others their 8-bit halves.
        let wide_factor = if isa == "avx2" { 1.0 } else { 2.0 };
        Self {
            layers,
            head,
            layer_factor: match numerics {
                Numerics::Exact => wide_factor,
                Numerics::Fast => 1.0,
            },
            // 16-bit activations in either profile.
            head_factor: wide_factor,
            kv_token_bytes: config.kv_block_bytes() as f64 / KV_BLOCK_TOKENS as f64,
        }
    }

    /// Bytes of the weights that every decoded token reads.
    pub(super) fn weight_bytes(&self) -> usize {
        (self.layers.bytes + self.head.bytes) as usize
    }

    /// A prompt, whose last row alone goes through the head.
    pub(super) fn prefill(&self, num_tokens: usize) -> Amount {
        self.rows(num_tokens, 1)
    }

    /// A prompt, each of whose rows but the last goes through the head; the last goes through nothing.
    pub(super) fn score(&self, num_tokens: usize) -> Amount {
        self.rows(num_tokens - 1, num_tokens - 1)
    }

    /// `num_steps` steps of `batch` sequences each: weights are read once a step, keys and values by each sequence.
    pub(super) fn decode(&self, num_steps: usize, batch: usize) -> Amount {
        let weights = (self.layers.bytes + self.head.bytes) * num_steps as f64;
        // Step i attends to i + 1 tokens before it and itself.
        let num_keys = (num_steps * (num_steps + 3) / 2 * batch) as f64;
        Amount {
            read_bytes: weights + num_keys * self.kv_token_bytes,
            ..self.rows(num_steps * batch, num_steps * batch)
        }
    }

    fn rows(&self, num_rows: usize, num_head_rows: usize) -> Amount {
        let layers = self.layers.integer_weights * self.layer_factor * num_rows as f64;
        let head = self.head.integer_weights * self.head_factor * num_head_rows as f64;
        Amount {
            integer_ops: 2.0 * (layers + head),
            read_bytes: 0.0,
        }
    }
}
