//! Any bytes as a GGUF file: refused with an error, or accepted with every promise kept.
//!
//! Run: `cargo +nightly fuzz run gguf` (seeds in `fuzz/corpus/gguf`, among them a good file with every value type).

#![no_main]

use assay_formats::gguf::Gguf;
use assay_testkit::gguf_walk::read_everything;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    match Gguf::parse(bytes) {
        Ok(gguf) => read_everything(&gguf),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
