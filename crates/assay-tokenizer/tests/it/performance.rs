//! Loads that must not hold up a start, and texts that must not hold up a server.
//!
//! The bounds are loose enough for a busy machine; quadratic behaviour misses them by far. The exact count
//! of merging steps is a unit test beside the code.

use std::time::{Duration, Instant};

use assay_tokenizer::EncodeOptions;

use crate::fixtures::{cached, load, vocab_path};

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// 128 KiB without a place to cut it; its square is some 10^10 steps.
#[test]
fn one_endless_word_is_not_quadratic() {
    for name in ["gpt-2", "llama-bpe", "llama-spm", "deepseek-llm"] {
        let tokenizer = load(&vocab_path(name));
        for unit in ["a", "ab", " ", "\n", "=", "</s>", "a\n \t", "\u{301}"] {
            let text = unit.repeat((128 << 10) / unit.len());
            let (ids, time) = timed(|| tokenizer.encode(&text, EncodeOptions::default()).unwrap());
            println!("{name} {unit:?}: {} ids in {time:?}", ids.len());
            assert!(time < Duration::from_secs(20), "{name} {unit:?}: {time:?}");
        }
    }
}

#[test]
fn the_largest_vocabulary_loads_quickly_and_prompts_encode_quickly() {
    let path = cached("models/gemma-3-270m-q4_k_m.gguf");
    let (tokenizer, loading) = timed(|| load(&path));
    let text = "The quick brown fox jumps over the lazy dog; 12 of them, in fact.\n".repeat(120);
    let (ids, encoding) = timed(|| tokenizer.encode(&text, EncodeOptions::default()).unwrap());
    println!(
        "{} tokens load in {loading:?}; {} ids in {encoding:?}",
        tokenizer.vocab_size(),
        ids.len()
    );
    assert_eq!(tokenizer.vocab_size(), 262_144);
    assert!(ids.len() > 2_000);
    assert!(loading < Duration::from_secs(10), "{loading:?}");
    assert!(encoding < Duration::from_millis(500), "{encoding:?}");
}
