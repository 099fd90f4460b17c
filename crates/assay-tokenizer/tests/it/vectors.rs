//! The expected ids that ship beside the vocabularies: every line of every vocabulary we accept.

use std::fs;
use std::path::Path;

use assay_tokenizer::{EncodeOptions, SpecialText, SpecialTokens};

use crate::fixtures::{load, vocab_path};

const INPUT_SEPARATOR: &str = "\n__ggml_vocab_test__\n";

fn beside(path: &Path, extension: &str) -> String {
    let mut name = path.as_os_str().to_owned();
    name.push(extension);
    fs::read_to_string(&name).unwrap_or_else(|error| panic!("{}: {error}", name.to_string_lossy()))
}

fn check_vectors(name: &str) {
    let path = vocab_path(name);
    let tokenizer = load(&path);
    let (inputs, outputs) = (beside(&path, ".inp"), beside(&path, ".out"));
    // Most files end with a separator.
    let inputs = inputs.strip_suffix(INPUT_SEPARATOR).unwrap_or(&inputs);
    let inputs: Vec<&str> = inputs.split(INPUT_SEPARATOR).collect();
    let outputs: Vec<&str> = outputs.lines().collect();
    assert_eq!(inputs.len(), outputs.len(), "{name}: inputs and outputs");
    assert!(outputs.len() > 40, "{name}: {} vectors", outputs.len());
    let options = EncodeOptions {
        add_special: SpecialTokens::Omit,
        parse_special: SpecialText::Literal,
    };
    let mut wrong = Vec::new();
    for (line, (input, output)) in inputs.iter().zip(&outputs).enumerate() {
        let expected: Vec<u32> = output
            .split_whitespace()
            .map(|id| id.parse().unwrap())
            .collect();
        let ids = tokenizer.encode(input, options).unwrap();
        if ids != expected {
            wrong.push(format!(
                "line {}: {input:?}\n  expected {expected:?}\n  found    {ids:?}",
                line + 1
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{name}: {} differ\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

macro_rules! vectors {
    ($($test:ident: $name:literal),* $(,)?) => {
        $(#[test] fn $test() { check_vectors($name); })*
    };
}

vectors! {
    gpt_2: "gpt-2",
    llama_bpe: "llama-bpe",
    llama_spm: "llama-spm",
    qwen2: "qwen2",
    qwen35: "qwen35",
    gemma_4: "gemma-4",
    phi_3: "phi-3",
    command_r: "command-r",
    starcoder: "starcoder",
    refact: "refact",
    mpt: "mpt",
    falcon: "falcon",
    deepseek_coder: "deepseek-coder",
    deepseek_llm: "deepseek-llm",
}
