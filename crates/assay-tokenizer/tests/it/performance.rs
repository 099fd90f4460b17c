//! Time that must grow with the text and not with its square, and loads that must not hold up a start.
//!
//! The bounds are loose enough for a busy machine; quadratic behaviour misses them by far.

use std::time::{Duration, Instant};

use assay_tokenizer::{EncodeOptions, Tokenizer};

use crate::fixtures::{cached, load, vocab_path};

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// Sixteen times the text may take at most eighty times as long: n log n, with room for noise.
fn check_growth(tokenizer: &Tokenizer, name: &str, unit: &str) {
    let encode = |bytes: usize| {
        let text = unit.repeat(bytes / unit.len());
        let best =
            (0..3).map(|_| timed(|| tokenizer.encode(&text, EncodeOptions::default()).unwrap()).1);
        best.min().unwrap()
    };
    let (small, large) = (encode(16 << 10), encode(256 << 10));
    println!("{name} {unit:?}: 16 KiB {small:?}, 256 KiB {large:?}");
    assert!(
        large < small * 80 + Duration::from_millis(50),
        "{name} {unit:?}: {small:?} then {large:?}"
    );
}

#[test]
fn one_endless_word_is_not_quadratic() {
    for name in ["gpt-2", "llama-bpe", "llama-spm", "deepseek-llm"] {
        let tokenizer = load(&vocab_path(name));
        for unit in [
            "a", "ab", " ", "\n", "日", "=", "\u{301}", "</s>", "a\n \t", "'s",
        ] {
            check_growth(&tokenizer, name, unit);
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
