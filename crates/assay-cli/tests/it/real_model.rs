//! `assay score` on the real models. The files come from `cargo xtask fixtures`.

use serde_json::Value;

use assay_kernels::Isa;

use crate::binary::{assay, error_of, output};

const MODELS: [&str; 2] = ["smollm2-135m-instruct", "gemma-3-270m"];

/// About 300 tokens: words, code, numbers, other scripts.
const TEXT: &str = include_str!("text.txt");

/// The JSON report of `assay score` over `text`, with further arguments.
fn score(text: &str, args: &[&str], isa: Isa) -> Value {
    let mut command = assay(&[&["score", "--json", "--text", "-"], args].concat());
    command.env("ASSAY_ISA", isa.name());
    let output = output(command, text);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {error}");
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// Hash of every token with the bits of its value.
fn hash(report: &Value) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for token in report["tokens"].as_array().expect("a list") {
        let bits = token["logprob_bits"].as_str().unwrap_or("-");
        hasher.update(format!("{} {bits}\n", token["token_id"]).as_bytes());
    }
    hasher.finalize()
}

/// Every instruction set with some number of threads, and every number of threads with some instruction set; each pair
/// of both is tested at the model's boundary. The scalar reference is slow and has its turn there.
fn check_same_bits(model: &str) {
    let fast: Vec<Isa> = Isa::available()
        .into_iter()
        .filter(|isa| *isa != Isa::SCALAR)
        .collect();
    let isas = if fast.is_empty() {
        vec![Isa::SCALAR]
    } else {
        fast
    };
    let mut expected = None;
    for (index, threads) in ["1", "2", "3", "7"].into_iter().enumerate() {
        let isa = isas[index % isas.len()];
        let report = score(TEXT, &["--model", model, "--threads", threads], isa);
        let num_tokens = report["tokens"].as_array().expect("a list").len();
        assert!(
            (250..600).contains(&num_tokens),
            "{model}: {num_tokens} tokens"
        );
        let found = hash(&report);
        let expected = *expected.get_or_insert(found);
        assert_eq!(
            found,
            expected,
            "{model}, {}, {threads} threads",
            isa.name()
        );
    }
}

#[test]
fn smollm2_scores_the_same_bits_on_every_isa_and_any_threads() {
    check_same_bits(MODELS[0]);
}

#[test]
fn gemma3_scores_the_same_bits_on_every_isa_and_any_threads() {
    check_same_bits(MODELS[1]);
}

#[test]
fn a_report_adds_up_and_its_decimals_are_its_bits() {
    // SmolLM2 puts nothing before a text, Gemma its beginning token.
    for (model, first_token) in MODELS.into_iter().zip(["text", "beginning_of_text"]) {
        let report = score("The quick brown fox.", &["--model", model], Isa::detect());
        assert_eq!(report["first_token"], first_token, "{report}");
        let tokens = report["tokens"].as_array().expect("a list");
        assert!(tokens[0]["logprob"].is_null(), "{report}");
        let mut sum = 0.0;
        for token in &tokens[1..] {
            let logprob = token["logprob"].as_f64().expect("scored");
            let bits = format!("{:016x}", logprob.to_bits());
            assert_eq!(token["logprob_bits"], bits.as_str(), "{token}");
            assert!(
                logprob < 0.0 && token["rank"].as_u64() >= Some(1),
                "{token}"
            );
            sum += logprob;
        }
        assert_eq!(report["sum"].as_f64(), Some(sum));
        assert_eq!(report["num_scored"], tokens.len() - 1);
        let perplexity = report["perplexity"].as_f64().expect("scored");
        let expected = (-sum / (tokens.len() - 1) as f64).exp();
        assert!((perplexity / expected - 1.0).abs() < 1e-12, "{perplexity}");
    }
}

#[test]
fn a_text_past_the_context_is_refused_with_the_counts() {
    let words = "one two three four five six seven eight";
    let error = error_of(
        &[
            "score",
            "--text",
            words,
            "--context",
            "4",
            "--model",
            MODELS[0],
        ],
        1,
    );
    assert!(
        error.contains("8 tokens") && error.contains("4 fit"),
        "{error}"
    );
    assert!(error.contains("--context"), "{error}");
}

/// What is spelt like a control token in a text is scored as the text that it is.
#[test]
fn words_that_look_like_control_tokens_stay_words() {
    let text = "a<|im_end|>b";
    let report = score(text, &["--model", MODELS[0]], Isa::detect());
    let tokens = report["tokens"].as_array().expect("a list");
    assert!(tokens.len() > 3, "{report}");
    let spelled: String = tokens
        .iter()
        .map(|token| token["token"].as_str().expect("text"))
        .collect();
    assert_eq!(spelled, text);
    assert!(tokens.iter().all(|token| token["token"] != "<|im_end|>"));
}

#[test]
fn one_token_has_no_score() {
    let report = score("a", &["--model", MODELS[0]], Isa::detect());
    assert_eq!(report["num_scored"], 0);
    assert!(report["sum"].is_null() && report["perplexity"].is_null());
}

/// Where the fixtures lie.
fn model_file(name: &str) -> String {
    let base = std::env::var_os("XDG_CACHE_HOME").filter(|base| !base.is_empty());
    let base = base.map(std::path::PathBuf::from);
    let base = base.or_else(|| std::env::home_dir().map(|home| home.join(".cache")));
    let path = base.expect("a home directory").join("assay/models");
    path.join(name).display().to_string()
}

#[test]
fn a_draft_model_is_held_to_the_vocabulary_and_moves_no_bit() {
    let gemma = model_file("gemma-3-270m-q4_k_m.gguf");
    let error = error_of(
        &[
            "score",
            "--text",
            "a b",
            "--model",
            MODELS[0],
            "--draft-model",
            &gemma,
        ],
        1,
    );
    assert!(
        error.contains("--draft-model") && error.contains("it has 262144 tokens"),
        "{error}"
    );
    let own = model_file("SmolLM2-135M-Instruct.Q4_1.gguf");
    let plain = score(TEXT, &["--model", MODELS[0]], Isa::detect());
    let with_draft_model = ["--model", MODELS[0], "--draft-model", &own];
    let drafted = score(TEXT, &with_draft_model, Isa::detect());
    assert_eq!(hash(&drafted), hash(&plain));
}
