//! Where the fetched files lie, and how a tokenizer is loaded from one.

use std::path::{Path, PathBuf};

use assay_formats::GgufFile;
use assay_tokenizer::Tokenizer;

fn cache() -> PathBuf {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .filter(|base| !base.is_empty())
        .map(PathBuf::from);
    let base = base.or_else(|| std::env::home_dir().map(|home| home.join(".cache")));
    base.expect("a home directory").join("assay")
}

/// A file below the cache; panics with what to run if it is absent.
pub(crate) fn cached(path: &str) -> PathBuf {
    let path = cache().join(path);
    assert!(
        path.exists(),
        "{} is missing: run `cargo xtask fixtures`",
        path.display()
    );
    path
}

pub(crate) fn vocab_path(name: &str) -> PathBuf {
    cached(&format!("vectors/ggml-vocab-{name}.gguf"))
}

pub(crate) fn load(path: &Path) -> Tokenizer {
    let file = GgufFile::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Tokenizer::from_metadata(file.metadata())
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
