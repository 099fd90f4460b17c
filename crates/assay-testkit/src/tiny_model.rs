//! Seeded random models of a few layers, small enough to write in milliseconds and to run on the real code path.
//!
//! The weights mix block formats as real files do and mean nothing; the shapes have tails (a vocabulary that fills
//! no panel) and cross the limits where orders of summation could change (heads, windows, 256-element blocks).

use assay_formats::{DType, quant};

use crate::gguf_value::{Array, Value};
use crate::gguf_writer::GgufWriter;

/// Width of the residual stream.
const HIDDEN: u64 = 256;
const INTERMEDIATE: u64 = 512;
const HEADS: u32 = 4;
const KV_HEADS: u32 = 2;
const HEAD_DIM: u64 = 64;

/// Number of layers of a [`TinyModel`].
pub const TINY_LAYERS: u32 = 3;

/// Width of a logits row of a [`TinyModel`].
pub const TINY_VOCAB: u64 = 100;

/// Text tokens of [`TinyModel::set_ascii_vocabulary`]: the first so many ids.
pub const ASCII_TEXT_TOKENS: u32 = 96;

/// The token that ends a turn there.
pub const ASCII_END: u32 = ASCII_TEXT_TOKENS + 1;

const ASCII_CHAT_TEMPLATE: &str = "{% for message in messages %}<|im_start|>{{ message['role'] }}\n\
    {{ message['content'] }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n";

/// A model file to be: entries and tensors, to be changed before [`TinyModel::build`].
#[derive(Debug, Clone)]
pub struct TinyModel {
    /// Metadata in file order.
    pub entries: Vec<(String, Value)>,
    /// Tensors in file order.
    pub tensors: Vec<TinyTensor>,
}

/// One tensor of a [`TinyModel`].
#[derive(Debug, Clone)]
pub struct TinyTensor {
    /// Name in the file.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Dimensions, innermost first.
    pub shape: Vec<u64>,
    /// Data, row-major blocks.
    pub bytes: Vec<u8>,
}

impl TinyModel {
    /// A model of architecture `llama`.
    #[must_use]
    pub fn llama() -> TinyModel {
        let mut model = TinyModel::blank("llama", 0x0011_aa5e);
        model.set("llama.rope.dimension_count", Value::U32(HEAD_DIM as u32));
        model
    }

    /// A model of architecture `gemma3`: two windowed layers of 32 tokens, then a full one.
    #[must_use]
    pub fn gemma3() -> TinyModel {
        let mut model = TinyModel::blank("gemma3", 0x6e33_a001);
        model.set("gemma3.attention.sliding_window", Value::U32(32));
        model.set("gemma3.attention.sliding_window_pattern", Value::U32(3));
        let mut random = Random(0x9e37);
        for layer in 0..TINY_LAYERS {
            for (name, len) in [
                ("attn_q_norm", HEAD_DIM),
                ("attn_k_norm", HEAD_DIM),
                ("post_attention_norm", HIDDEN),
                ("post_ffw_norm", HIDDEN),
            ] {
                model.norm(&format!("blk.{layer}.{name}.weight"), len, &mut random);
            }
        }
        model
    }

    fn blank(architecture: &str, seed: u64) -> TinyModel {
        let mut model = TinyModel {
            entries: Vec::new(),
            tensors: Vec::new(),
        };
        model.set(
            "general.architecture",
            Value::String(architecture.to_owned()),
        );
        for (key, value) in [
            ("vocab_size", TINY_VOCAB as u32),
            ("context_length", 512),
            ("embedding_length", HIDDEN as u32),
            ("block_count", TINY_LAYERS),
            ("feed_forward_length", INTERMEDIATE as u32),
            ("attention.head_count", HEADS),
            ("attention.head_count_kv", KV_HEADS),
            ("attention.key_length", HEAD_DIM as u32),
        ] {
            model.set(&format!("{architecture}.{key}"), Value::U32(value));
        }
        let epsilon = format!("{architecture}.attention.layer_norm_rms_epsilon");
        model.set(&epsilon, Value::F32(1e-5));

        let mut random = Random(seed);
        let (query, key) = (u64::from(HEADS) * HEAD_DIM, u64::from(KV_HEADS) * HEAD_DIM);
        model.matrix(
            "token_embd.weight",
            DType::Q8_0,
            TINY_VOCAB,
            HIDDEN,
            &mut random,
        );
        model.norm("output_norm.weight", HIDDEN, &mut random);
        for layer in 0..TINY_LAYERS {
            model.norm(
                &format!("blk.{layer}.attn_norm.weight"),
                HIDDEN,
                &mut random,
            );
            model.norm(&format!("blk.{layer}.ffn_norm.weight"), HIDDEN, &mut random);
            for (name, dtype, n, k) in [
                ("attn_q", DType::Q4_1, query, HIDDEN),
                ("attn_k", DType::Q5_0, key, HIDDEN),
                ("attn_v", DType::Q8_0, key, HIDDEN),
                ("attn_output", DType::Q4K, HIDDEN, query),
                ("ffn_gate", DType::Q4_1, INTERMEDIATE, HIDDEN),
                ("ffn_up", DType::F16, INTERMEDIATE, HIDDEN),
                ("ffn_down", DType::Q6K, HIDDEN, INTERMEDIATE),
            ] {
                model.matrix(
                    &format!("blk.{layer}.{name}.weight"),
                    dtype,
                    n,
                    k,
                    &mut random,
                );
            }
        }
        model
    }

    /// The same model with random matrices that are all of `dtype`.
    ///
    /// # Panics
    /// When this kit makes no random blocks of `dtype`.
    #[must_use]
    pub fn with_matrices_of(mut self, dtype: DType) -> TinyModel {
        let mut random = Random(0xb10c + u64::from(dtype.ggml_id()));
        for tensor in self.tensors.iter_mut().filter(|t| t.shape.len() > 1) {
            let num_elements: u64 = tensor.shape.iter().product();
            let num_blocks = num_elements / dtype.block_len() as u64;
            tensor.dtype = dtype;
            tensor.bytes = (0..num_blocks).flat_map(|_| random.block(dtype)).collect();
        }
        self
    }

    /// The same model with every tensor as F32, exactly.
    ///
    /// # Panics
    /// When a tensor has a type without exact values.
    #[must_use]
    pub fn dequantized(mut self) -> TinyModel {
        for tensor in &mut self.tensors {
            let num_elements: u64 = tensor.shape.iter().product();
            let mut values = vec![0.0_f32; num_elements as usize];
            quant::dequantize(tensor.dtype, &tensor.bytes, &mut values)
                .unwrap_or_else(|error| panic!("{}: {error}", tensor.name));
            tensor.dtype = DType::F32;
            tensor.bytes = values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect();
        }
        self
    }

    /// Sets `key`, replacing what it had.
    pub fn set(&mut self, key: &str, value: Value) {
        self.entries.retain(|(present, _)| present != key);
        self.entries.push((key.to_owned(), value));
    }

    /// Sets the longest sequence that the model takes.
    pub fn set_context_length(&mut self, num_tokens: u32) {
        let architecture = self.entries.iter().find_map(|(key, value)| match value {
            Value::String(name) if key == "general.architecture" => Some(name.clone()),
            _ => None,
        });
        let architecture = architecture.expect("every model names its architecture");
        self.set(
            &format!("{architecture}.context_length"),
            Value::U32(num_tokens),
        );
    }

    /// Gives the model a byte-level vocabulary: a token for each printable ASCII character, the line's end, and control
    /// tokens with a chat template of them.
    pub fn set_ascii_vocabulary(&mut self) {
        // Byte-level vocabularies write a space and the line's end as letters.
        let printable = std::iter::once('\u{120}').chain('!'..='~');
        let mut tokens: Vec<String> = printable.chain(['\u{10a}']).map(String::from).collect();
        let mut kinds = vec![1; tokens.len()];
        tokens.extend(["<|im_start|>", "<|im_end|>", "<|pad|>", "<|unk|>"].map(str::to_owned));
        kinds.resize(tokens.len(), 3);
        assert_eq!(tokens.len() as u64, TINY_VOCAB, "one token a logit");
        for (key, text) in [
            ("tokenizer.ggml.model", "gpt2"),
            ("tokenizer.ggml.pre", "gpt-2"),
            ("tokenizer.chat_template", ASCII_CHAT_TEMPLATE),
        ] {
            self.set(key, Value::String(text.to_owned()));
        }
        self.set("tokenizer.ggml.tokens", Value::Array(Array::String(tokens)));
        self.set("tokenizer.ggml.token_type", Value::Array(Array::I32(kinds)));
        self.set(
            "tokenizer.ggml.merges",
            Value::Array(Array::String(Vec::new())),
        );
        self.set("tokenizer.ggml.eos_token_id", Value::U32(ASCII_END));
    }

    /// Removes entry `key`.
    pub fn unset(&mut self, key: &str) {
        self.entries.retain(|(present, _)| present != key);
    }

    /// Tensor `name`.
    ///
    /// # Panics
    /// When there is none.
    pub fn tensor_mut(&mut self, name: &str) -> &mut TinyTensor {
        let found = self.tensors.iter_mut().find(|tensor| tensor.name == name);
        found.unwrap_or_else(|| panic!("no tensor {name}"))
    }

    /// The file's bytes.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        let mut writer = GgufWriter::new();
        for (key, value) in &self.entries {
            writer = writer.kv(key, value.clone());
        }
        for tensor in &self.tensors {
            writer = writer.tensor(&tensor.name, tensor.dtype, &tensor.shape, &tensor.bytes);
        }
        writer.build()
    }

    fn norm(&mut self, name: &str, len: u64, random: &mut Random) {
        let weights = (0..len).flat_map(|_| (1.0 + 0.25 * random.unit()).to_le_bytes());
        self.tensors.push(TinyTensor {
            name: name.to_owned(),
            dtype: DType::F32,
            shape: vec![len],
            bytes: weights.collect(),
        });
    }

    fn matrix(&mut self, name: &str, dtype: DType, n: u64, k: u64, random: &mut Random) {
        let num_blocks = n * k / dtype.block_len() as u64;
        let bytes = (0..num_blocks).flat_map(|_| random.block(dtype)).collect();
        self.tensors.push(TinyTensor {
            name: name.to_owned(),
            dtype,
            shape: vec![k, n],
            bytes,
        });
    }
}

/// SplitMix64.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From -1 to 1.
    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    /// A block whose weights are of the order of 0.1.
    fn block(&mut self, dtype: DType) -> Vec<u8> {
        match dtype {
            DType::F32 => return (0.1 * self.unit()).to_le_bytes().to_vec(),
            DType::F16 => return half(0.1 * self.unit()).to_vec(),
            DType::BF16 => return (0.1 * self.unit()).to_le_bytes()[2..].to_vec(),
            _ => {}
        }
        let mut bytes: Vec<u8> = (0..dtype.block_bytes())
            .map(|_| self.next() as u8)
            .collect();
        let size = 1.0 + 0.5 * self.unit();
        // (byte of the field, its value): the f16 scales and offsets of each format.
        let fields: &[(usize, f32)] = match dtype {
            DType::Q8_0 | DType::IQ4NL => &[(0, 0.1 / 127.0)],
            DType::Q4_0 => &[(0, 0.1 / 8.0)],
            DType::Q5_0 => &[(0, 0.1 / 16.0)],
            DType::Q4_1 => &[(0, 0.2 / 15.0), (2, -0.1)],
            DType::Q5_1 => &[(0, 0.2 / 31.0), (2, -0.1)],
            DType::Q2K => &[(80, 0.2 / (15.0 * 3.0)), (82, 0.1 / 15.0)],
            DType::Q3K => &[(108, 0.2 / (32.0 * 4.0))],
            DType::Q4K => &[(0, 0.2 / (63.0 * 15.0)), (2, 0.1 / 63.0)],
            DType::Q5K => &[(0, 0.2 / (63.0 * 31.0)), (2, 0.1 / 63.0)],
            DType::Q6K => &[(208, 0.2 / (127.0 * 32.0))],
            DType::IQ2XXS | DType::IQ2XS | DType::IQ2S => &[(0, 0.2 / (31.0 / 8.0 * 43.0))],
            DType::IQ3XXS => &[(0, 0.2 / (31.0 / 4.0 * 62.0))],
            DType::IQ3S => &[(0, 0.2 / (31.0 * 15.0))],
            DType::IQ1S => &[(0, 0.2 / (15.0 / 8.0 * 9.0))],
            DType::IQ4XS => &[(0, 0.2 / (32.0 * 127.0))],
            // These two keep their scales otherwise.
            DType::IQ1M | DType::MXFP4 => &[],
            _ => panic!("no random blocks of {dtype}"),
        };
        for &(at, value) in fields {
            bytes[at..at + 2].copy_from_slice(&half(value * size));
        }
        if dtype == DType::IQ1M {
            // Four bits of the f16 on top of each word of scales.
            let d = u16::from_le_bytes(half(0.2 / (15.0 / 8.0 * 9.0) * size));
            for i in 0..4 {
                let byte = &mut bytes[48 + 2 * i + 1];
                *byte = *byte & 15 | ((d >> (4 * i) & 15) as u8) << 4;
            }
        }
        if dtype == DType::MXFP4 {
            // 2^-8 or 2^-7 times up to 12.
            bytes[0] = 120 + bytes[0] % 2;
        }
        bytes
    }
}

/// The nearest f16, little-endian.
fn half(value: f32) -> [u8; 2] {
    half::f16::from_f32(value).to_le_bytes()
}
