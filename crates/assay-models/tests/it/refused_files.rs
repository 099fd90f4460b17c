//! Files that no model can have, or that we do not run: an error that names the key or the tensors.

use assay_formats::GgufFile;
use assay_kernels::{Compute, Isa, ThreadPool};
use assay_models::{LoadOptions, Model, ModelError, Numerics};
use assay_testkit::gguf_value::{Array, Value};
use assay_testkit::tiny_model::TinyModel;
use std::num::NonZeroUsize;

use crate::support::{Setup, whole_prompt};

fn options<'a>() -> LoadOptions<'a> {
    LoadOptions {
        context_length: None,
        num_kv_blocks: 4,
        numerics: Numerics::Exact,
        compute: Compute::new(Isa::detect(), ThreadPool::new(NonZeroUsize::MIN)),
        progress: None,
        packed_cache: None,
    }
}

fn load(tiny: &TinyModel, options: LoadOptions<'_>) -> Result<Model, ModelError> {
    Model::load(&Setup::tiny(tiny).open(), options)
}

/// `damage` makes the tiny llama, or the tiny Gemma, a file that is refused with all of `words`.
fn check_refused(tiny: fn() -> TinyModel, words: &[&str], damage: impl Fn(&mut TinyModel)) {
    let mut model = tiny();
    damage(&mut model);
    let error = match load(&model, options()) {
        Ok(_) => panic!("accepted, expected {words:?}"),
        Err(error) => error.to_string(),
    };
    for word in words {
        assert!(error.contains(word), "expected {word:?} in {error:?}");
    }
}

fn check_llama(words: &[&str], key: &str, value: Value) {
    check_refused(TinyModel::llama, words, |model| {
        model.set(key, value.clone())
    });
}

fn check_gemma3(words: &[&str], key: &str, value: Value) {
    check_refused(TinyModel::gemma3, words, |model| {
        model.set(key, value.clone())
    });
}

#[test]
fn numbers_out_of_range() {
    let from_1 = "expected an integer from 1 to";
    for key in [
        "llama.embedding_length",
        "llama.block_count",
        "llama.feed_forward_length",
        "llama.context_length",
        "llama.vocab_size",
        "llama.attention.head_count",
        "llama.attention.head_count_kv",
        "llama.attention.key_length",
    ] {
        check_llama(&[key, "is 0", from_1], key, Value::U32(0));
        check_llama(&[key, from_1], key, Value::U32(u32::MAX));
        check_llama(&[key, "u32"], key, Value::I32(-1));
        check_llama(&[key, "u32"], key, Value::U64(1 << 32));
        check_llama(&[key, "found"], key, Value::String("1".to_owned()));
    }
    check_llama(
        &["head_count_kv", "a divisor"],
        "llama.attention.head_count_kv",
        Value::U32(3),
    );
    check_llama(
        &["head_count_kv", "a divisor"],
        "llama.attention.head_count_kv",
        Value::U32(8),
    );
    check_llama(
        &["key_length", "40"],
        "llama.attention.key_length",
        Value::U32(40),
    );
    for bad in [0.0, -1e-5, 1.0, f32::NAN, f32::INFINITY] {
        let key = "llama.attention.layer_norm_rms_epsilon";
        check_llama(&[key], key, Value::F32(bad));
    }
    for bad in [0.0, -1.0, 1e30, f32::NAN] {
        check_llama(
            &["llama.rope.freq_base"],
            "llama.rope.freq_base",
            Value::F32(bad),
        );
    }
    for bad in [-2.0, 0.5, 1e9] {
        check_llama(
            &["rope.scaling.factor"],
            "llama.rope.scaling.factor",
            Value::F32(bad),
        );
    }
    check_gemma3(
        &["sliding_window_pattern", "period"],
        "gemma3.attention.sliding_window_pattern",
        Value::U32(0),
    );
    check_gemma3(
        &["sliding_window_pattern", "an array of 2", "3 layers"],
        "gemma3.attention.sliding_window_pattern",
        Value::Array(Array::Bool(vec![true, false])),
    );
    check_gemma3(
        &["attention.scale"],
        "gemma3.attention.scale",
        Value::F32(-1.0),
    );
}

#[test]
fn settings_that_we_do_not_run() {
    let refused = "does not support";
    for scaling in ["yarn", "longrope", "dynamic"] {
        check_llama(
            &["rope.scaling.type", scaling, refused],
            "llama.rope.scaling.type",
            Value::String(scaling.to_owned()),
        );
    }
    check_llama(
        &["rope.scaling.attn_factor", refused],
        "llama.rope.scaling.attn_factor",
        Value::F32(1.2),
    );
    check_llama(
        &["rope.dimension_count", "32", refused],
        "llama.rope.dimension_count",
        Value::U32(32),
    );
    check_llama(
        &["llama.expert_count", refused],
        "llama.expert_count",
        Value::U32(8),
    );
    check_llama(
        &["llama.attention.sliding_window", refused],
        "llama.attention.sliding_window",
        Value::U32(4096),
    );
    check_llama(
        &["attention.causal", refused],
        "llama.attention.causal",
        Value::Bool(false),
    );
    check_llama(
        &["attention.clamp_kqv", refused],
        "llama.attention.clamp_kqv",
        Value::F32(8.0),
    );
    check_llama(
        &["attention.value_length", refused],
        "llama.attention.value_length",
        Value::U32(32),
    );
    check_llama(
        &["logit_scale", refused],
        "llama.logit_scale",
        Value::F32(0.0625),
    );
    check_llama(
        &["general.architecture", "mamba", "llama, gemma3"],
        "general.architecture",
        Value::String("mamba".to_owned()),
    );
}

#[test]
fn keys_that_are_missing() {
    for key in [
        "general.architecture",
        "llama.embedding_length",
        "llama.block_count",
        "llama.feed_forward_length",
        "llama.context_length",
        "llama.attention.head_count",
        "llama.attention.layer_norm_rms_epsilon",
        "llama.vocab_size",
    ] {
        check_refused(TinyModel::llama, &[key, "missing"], |model| {
            model.unset(key)
        });
    }
}

#[test]
fn vocabularies_that_disagree() {
    check_llama(
        &["tokenizer.ggml.tokens", "an array of 3", "100 tokens"],
        "tokenizer.ggml.tokens",
        Value::Array(Array::String(["a", "b", "c"].map(str::to_owned).to_vec())),
    );
    check_llama(
        &["token_embd.weight", "[256, 100]", "[256, 101]"],
        "llama.vocab_size",
        Value::U32(101),
    );
}

/// Every problem is in one message.
#[test]
fn tensors_that_are_missing_misshapen_or_unknown() {
    let words = [
        "4 tensor problem(s)",
        "`blk.0.attn_norm.weight` is missing (expected shape [256])",
        "`blk.2.ffn_down.weight` is missing (expected shape [512, 256])",
        "`blk.1.ffn_up.weight` has shape [512, 256], expected [256, 512]",
        "`blk.3.attn_q.weight` is not part of this architecture",
    ];
    check_refused(TinyModel::llama, &words, |model| {
        model.tensor_mut("blk.1.ffn_up.weight").shape.reverse();
        let mut stray = model.tensor_mut("blk.0.attn_q.weight").clone();
        stray.name = "blk.3.attn_q.weight".to_owned();
        model.tensors.push(stray);
        let gone = ["blk.0.attn_norm.weight", "blk.2.ffn_down.weight"];
        model
            .tensors
            .retain(|tensor| !gone.contains(&tensor.name.as_str()));
    });
    // More layers than the file has tensors for: named, and not one allocation per claim.
    check_llama(
        &["blk.3.attn_norm.weight", "and", "more"],
        "llama.block_count",
        Value::U32(1024),
    );
    check_llama(
        &["blk.2.attn_norm.weight", "not part of"],
        "llama.block_count",
        Value::U32(2),
    );
    check_gemma3(
        &["token_embd.weight", "[65536, 100]"],
        "gemma3.embedding_length",
        Value::U32(65_536),
    );
    check_refused(
        TinyModel::gemma3,
        &["attn_q_norm.weight", "missing"],
        |model| {
            model
                .tensors
                .retain(|tensor| !tensor.name.contains("attn_q_norm"));
        },
    );
    // A norm over heads in a llama is another architecture under its name.
    check_refused(
        TinyModel::llama,
        &["blk.0.attn_q_norm.weight", "not part of"],
        |model| {
            let mut norm = model.tensor_mut("blk.0.attn_norm.weight").clone();
            norm.name = "blk.0.attn_q_norm.weight".to_owned();
            model.tensors.push(norm);
        },
    );
}

#[test]
fn types_that_no_kernel_reads() {
    use assay_formats::DType;
    check_refused(
        TinyModel::llama,
        &["blk.1.attn_q.weight", "TQ1_0", "requantise", "Q4_K"],
        |model| {
            let tensor = model.tensor_mut("blk.1.attn_q.weight");
            tensor.dtype = DType::TQ1_0;
            tensor.bytes = vec![0; 256 * DType::TQ1_0.block_bytes()];
        },
    );
    check_refused(
        TinyModel::llama,
        &["output_norm.weight", "Q8_0", "F32"],
        |model| {
            let tensor = model.tensor_mut("output_norm.weight");
            tensor.dtype = DType::Q8_0;
            tensor.bytes = vec![0; 8 * DType::Q8_0.block_bytes()];
        },
    );
}

#[test]
fn options_that_make_no_sense() {
    let refused = |options: LoadOptions<'_>, word: &str| {
        let error = load(&TinyModel::llama(), options)
            .err()
            .map(|error| error.to_string());
        let error = error.unwrap_or_else(|| panic!("accepted, expected {word:?}"));
        assert!(error.contains(word), "expected {word:?} in {error:?}");
    };
    let with = |change: fn(&mut LoadOptions<'_>)| {
        let mut options = options();
        change(&mut options);
        options
    };
    refused(with(|o| o.num_kv_blocks = 0), "num_kv_blocks");
    refused(with(|o| o.num_kv_blocks = usize::MAX), "too large");
    refused(with(|o| o.num_kv_blocks = 1 << 33), "too large");
    refused(with(|o| o.context_length = Some(0)), "context_length");
    refused(
        with(|o| o.context_length = Some(513)),
        "llama.context_length",
    );
}

/// What looks odd and is fine.
#[test]
fn files_that_are_accepted() {
    use assay_models::ForwardModel;
    let check = |what: &str, tiny: TinyModel| {
        let mut model = load(&tiny, options()).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(
            model.info().context_length,
            64,
            "{what}: four blocks hold 64 tokens"
        );
        let rows = whole_prompt(&mut model, &[1, 2, 3]);
        assert_eq!(rows.len(), 3, "{what}");
        rows
    };
    let with = |key: &str, value: Value| {
        let mut tiny = TinyModel::llama();
        tiny.set(key, value);
        tiny
    };
    let plain = check("as written", TinyModel::llama());
    let same = [
        ("llama.rope.scaling.type", Value::String("none".to_owned())),
        ("llama.rope.scaling.factor", Value::F32(0.0)),
        ("llama.rope.scaling.factor", Value::F32(1.0)),
        ("llama.rope.freq_base", Value::F32(10_000.0)),
        ("llama.attention.scale", Value::F32(0.125)),
        ("llama.expert_count", Value::U32(0)),
        ("llama.final_logit_softcapping", Value::F32(30.0)),
        ("llama.embedding_length", Value::U64(256)),
    ];
    for (key, value) in same {
        assert_eq!(check(key, with(key, value)), plain, "{key}");
    }
    let different = [
        ("llama.rope.scaling.factor", Value::F32(2.0)),
        ("llama.rope.freq_base", Value::F32(500_000.0)),
        ("llama.attention.scale", Value::F32(0.25)),
        ("llama.attention.layer_norm_rms_epsilon", Value::F32(1e-2)),
    ];
    for (key, value) in different {
        assert_ne!(check(key, with(key, value)), plain, "{key}");
    }
}

/// One bit at a time in everything before the weights: an error or a model that runs, never a panic.
#[test]
fn flipped_bits_never_panic() {
    for tiny in [TinyModel::llama(), TinyModel::gemma3()] {
        let good = tiny.build();
        let weights: usize = tiny.tensors.iter().map(|tensor| tensor.bytes.len()).sum();
        let header = good.len() - weights;
        let (mut refused, mut ran) = (0, 0);
        for round in 0..120_usize {
            let bit = (round * 7_919 + 64) % (header * 8);
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let setup = Setup::from_bytes(&bytes);
            let Ok(file) = GgufFile::open(&setup.path) else {
                refused += 1;
                continue;
            };
            match Model::load(&file, options()) {
                Err(_) => refused += 1,
                Ok(mut model) => {
                    let rows = whole_prompt(&mut model, &[0, 1]);
                    assert_eq!(rows.len(), 2, "bit {bit}");
                    ran += 1;
                }
            }
        }
        assert!(refused > 40 && ran > 0, "refused {refused}, ran {ran}");
    }
}
