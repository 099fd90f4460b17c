//! Drafts on a real model: the reply of plain decoding, to the bit, in fewer steps. Reads the file that
//! `cargo xtask fixtures` fetches, and fails where it is absent.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use assay_engine::{EngineConfig, Request, SamplingParams, Speculation, TokenBytes};
use assay_formats::GgufFile;
use assay_kernels::{Compute, Isa, ThreadPool};
use assay_models::{LoadOptions, Model, Numerics};
use assay_tokenizer::{EncodeOptions, SpecialText, SpecialTokens, Tokenizer};

use crate::collect::{Client, request, spawn};

const PROMPT: &str = "<|im_start|>user
Write these lines again, each exactly as it is:
apples: 14 crates, shed 2
pears: 9 crates, shed 5
plums: 21 crates, shed 1
cherries: 3 crates, shed 4<|im_end|>
<|im_start|>assistant
apples: 14 crates, shed 2
";

pub(crate) fn model_path() -> PathBuf {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .filter(|base| !base.is_empty())
        .map(PathBuf::from);
    let base = base.or_else(|| std::env::home_dir().map(|home| home.join(".cache")));
    let path = base
        .expect("a home directory")
        .join("assay/models/SmolLM2-135M-Instruct.Q4_1.gguf");
    assert!(
        path.exists(),
        "{} is missing: run `cargo xtask fixtures`",
        path.display()
    );
    path
}

#[test]
fn a_copied_list_comes_in_fewer_steps_with_the_same_bits() {
    let file = GgufFile::open(&model_path()).expect("a readable file");
    let tokenizer = Tokenizer::from_metadata(file.metadata()).expect("a known tokenizer");
    let encoding = EncodeOptions {
        add_special: SpecialTokens::Omit,
        parse_special: SpecialText::Parse,
    };
    let prompt = tokenizer.encode(PROMPT, encoding).expect("it encodes");
    let token_bytes = TokenBytes::from(&tokenizer);
    let token_bytes: Vec<Vec<u8>> = (0..)
        .take(token_bytes.num_tokens())
        .map(|id| token_bytes.get(id).to_vec())
        .collect();
    let [plain, drafted] = [Speculation::Off, Speculation::Ngram].map(|speculation| {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let options = LoadOptions {
            context_length: Some(512),
            num_kv_blocks: 64,
            numerics: Numerics::Exact,
            compute: Compute::new(Isa::detect(), ThreadPool::new(threads)),
            progress: None,
            packed_cache: None,
        };
        let model = Model::load(&file, options).expect("a known model");
        let config = EngineConfig {
            speculation,
            ..EngineConfig::default()
        };
        let engine = spawn(model, &token_bytes, config);
        let replies: Vec<_> = [0.0, 0.3]
            .into_iter()
            .map(|temperature| {
                let request = Request {
                    sampling: SamplingParams {
                        temperature,
                        seed: 3,
                        ..SamplingParams::greedy()
                    },
                    end_token_ids: tokenizer.end_token_ids().to_vec(),
                    ..request(prompt.clone(), 48)
                };
                let client = Client::submit(&engine, request).expect("a valid request");
                client.collect(1).expect("a reply").remove(0)
            })
            .collect();
        (replies, engine.stats())
    });
    for (plain, drafted) in plain.0.iter().zip(&drafted.0) {
        assert_eq!(drafted.bits(), plain.bits());
        assert_eq!(drafted, plain);
    }
    let stats = drafted.1;
    assert!(stats.num_accepted_tokens > 0, "{stats:?}");
    assert!(
        stats.num_draft_tokens > stats.num_accepted_tokens,
        "{stats:?}"
    );
    assert!(stats.num_steps < plain.1.num_steps, "{stats:?}");
}
