//! A folder with a tiny model: loads in milliseconds, answers every route.

use std::fs;
use std::path::PathBuf;

use assay_testkit::tiny_model::TinyModel;
use tempfile::TempDir;

/// Removed with everything in it when it is dropped.
pub(crate) struct Tiny {
    folder: TempDir,
}

impl Tiny {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut model = TinyModel::llama();
        model.set_ascii_vocabulary();
        fs::write(folder.path().join("tiny.gguf"), model.build()).expect("written");
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The path as an argument.
    pub(crate) fn arg(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Writes a file and gives its path as an argument.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).expect("written");
        self.arg(name)
    }

    /// `args` with the model behind them, and a cache of its own.
    pub(crate) fn with_model(&self, args: &[&str]) -> Vec<String> {
        let own = [
            "--model".to_owned(),
            self.arg("tiny.gguf"),
            "--cache-dir".to_owned(),
            self.arg("cache"),
        ];
        args.iter()
            .map(|arg| (*arg).to_owned())
            .chain(own)
            .collect()
    }
}
