//! A model from the packed cache gives the bits of one packed anew, and a bad cache is never believed.

use std::cell::RefCell;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use assay_formats::GgufFile;
use assay_kernels::{Compute, Isa, ThreadPool};
use assay_models::{CacheEvent, LoadOptions, Model, Numerics, PackedCache};
use assay_testkit::tiny_model::TinyModel;

use crate::support::whole_prompt;

const TOKENS: [u32; 12] = [1, 5, 9, 40, 41, 99, 0, 7, 7, 7, 3, 2];

/// Loads `model` with the cache at `cache`; the bits of its logits, and what became of the cache.
fn load(model: &Path, cache: &Path, isa: Isa, threads: usize) -> (Vec<u32>, Vec<String>) {
    let events = RefCell::new(Vec::new());
    let report = |event| {
        events.borrow_mut().push(match event {
            CacheEvent::Read => "read".to_owned(),
            CacheEvent::Written => "written".to_owned(),
            CacheEvent::Ignored(reason) => format!("ignored: {reason}"),
            CacheEvent::NotWritten(reason) => format!("not written: {reason}"),
        });
    };
    let file = GgufFile::open(model).unwrap();
    let threads = NonZeroUsize::new(threads).unwrap();
    let options = LoadOptions {
        context_length: None,
        num_kv_blocks: 4,
        numerics: Numerics::Exact,
        compute: Compute::new(isa, ThreadPool::new(threads)),
        progress: None,
        packed_cache: Some(PackedCache {
            path: cache,
            model,
            model_sha256: &"ab".repeat(32),
            report: &report,
        }),
    };
    let mut model = Model::load(&file, options).unwrap();
    let rows = whole_prompt(&mut model, &TOKENS);
    let bits = rows.iter().flatten().map(|logit| logit.to_bits()).collect();
    (bits, events.into_inner())
}

#[test]
fn the_cache_moves_no_bit_and_damage_is_packed_again() {
    for tiny in [TinyModel::llama(), TinyModel::gemma3()] {
        let dir = tempfile::tempdir().unwrap();
        let model = dir.path().join("m.gguf");
        let cache = dir.path().join("m.gguf.assay-packed");
        fs::write(&model, tiny.build()).unwrap();

        let (expected, events) = load(&model, &cache, Isa::detect(), 1);
        assert_eq!(events, ["written"]);
        // The layout is the same for every instruction set.
        for isa in Isa::available() {
            let (bits, events) = load(&model, &cache, isa, 3);
            assert_eq!(events, ["read"], "{}", isa.name());
            assert!(bits == expected, "{}", isa.name());
        }
        let good = fs::read(&cache).unwrap();
        let places = [0, 20, 40, 130, good.len() / 2, good.len() - 1];
        for at in places {
            let mut bad = good.clone();
            bad[at] ^= 4;
            fs::write(&cache, bad).unwrap();
            let (bits, events) = load(&model, &cache, Isa::detect(), 2);
            assert!(bits == expected, "byte {at}");
            assert!(events[0].starts_with("ignored"), "byte {at}: {events:?}");
            assert_eq!(events[1..], ["written"], "byte {at}");
            assert!(fs::read(&cache).unwrap() == good, "byte {at}: rebuilt");
        }
    }
}

#[test]
fn a_cache_that_cannot_be_written_is_no_failure() {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("m.gguf");
    fs::write(&model, TinyModel::llama().build()).unwrap();
    let (_, events) = load(&model, &dir.path().join("none/x"), Isa::detect(), 1);
    assert!(
        matches!(&events[..], [event] if event.starts_with("not written")),
        "{events:?}"
    );
}
