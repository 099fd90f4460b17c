//! Shared by the tests: loading with given settings, and running token ids as batches.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use assay_formats::GgufFile;
use assay_kernels::{Compute, Isa, ThreadPool};
use assay_models::{BlockId, ForwardBatch, ForwardModel, LoadOptions, Model, Numerics};
use assay_testkit::tiny_model::TinyModel;

/// How to load a model for a test.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) path: PathBuf,
    pub(crate) _temporary: Option<Arc<tempfile::NamedTempFile>>,
    pub(crate) isa: Isa,
    pub(crate) num_threads: usize,
    pub(crate) numerics: Numerics,
    pub(crate) num_kv_blocks: usize,
}

impl Setup {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            _temporary: None,
            isa: Isa::detect(),
            num_threads: 2,
            numerics: Numerics::Exact,
            num_kv_blocks: 64,
        }
    }

    /// A model that is written to a temporary file first.
    pub(crate) fn tiny(model: &TinyModel) -> Self {
        Self::from_bytes(&model.build())
    }

    /// A file of `bytes`, written to a temporary place first.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        // The handle deletes the file when the last copy of the setup is dropped.
        let path = file.path().to_owned();
        Self {
            _temporary: Some(Arc::new(file)),
            ..Self::new(path)
        }
    }

    pub(crate) fn open(&self) -> GgufFile {
        GgufFile::open(&self.path).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn load(&self) -> Model {
        Model::load(&self.open(), self.options())
            .unwrap_or_else(|error| panic!("{}: {error}", self.path.display()))
    }

    pub(crate) fn options(&self) -> LoadOptions<'static> {
        LoadOptions {
            context_length: None,
            num_kv_blocks: self.num_kv_blocks,
            numerics: self.numerics,
            compute: Compute::new(
                self.isa,
                ThreadPool::new(NonZeroUsize::new(self.num_threads).unwrap()),
            ),
            progress: None,
            packed_cache: None,
        }
    }
}

/// Part of a sequence, as one pass runs it.
pub(crate) struct Chunk<'a> {
    pub(crate) token_ids: &'a [u32],
    pub(crate) first_position: usize,
    pub(crate) blocks: &'a [BlockId],
}

/// A pass over `chunks` that wants the logits of every row.
pub(crate) fn batch(chunks: &[Chunk<'_>]) -> ForwardBatch {
    let mut batch = ForwardBatch {
        cu_seqlens: vec![0],
        ..ForwardBatch::default()
    };
    for chunk in chunks {
        batch.token_ids.extend(chunk.token_ids);
        let last = chunk.first_position + chunk.token_ids.len();
        batch
            .positions
            .extend(chunk.first_position as u32..last as u32);
        batch.cu_seqlens.push(batch.token_ids.len() as u32);
        batch.block_tables.push(chunk.blocks.to_vec());
    }
    batch.logit_rows = (0..batch.token_ids.len() as u32).collect();
    batch
}

/// Blocks `first..` that hold `num_tokens`.
pub(crate) fn blocks(first: usize, num_tokens: usize) -> Vec<BlockId> {
    (first..first + num_tokens.div_ceil(16))
        .map(|block| BlockId(block as u32))
        .collect()
}

/// Logits of every position of `token_ids`, from one pass.
pub(crate) fn whole_prompt(model: &mut Model, token_ids: &[u32]) -> Vec<Vec<f32>> {
    chunked_prompt(model, token_ids, token_ids.len())
}

/// Logits of every position of `token_ids`, `chunk_len` tokens a pass.
pub(crate) fn chunked_prompt(
    model: &mut Model,
    token_ids: &[u32],
    chunk_len: usize,
) -> Vec<Vec<f32>> {
    let blocks = blocks(0, token_ids.len());
    let mut rows = Vec::new();
    for (index, chunk) in token_ids.chunks(chunk_len).enumerate() {
        let chunk = Chunk {
            token_ids: chunk,
            first_position: index * chunk_len,
            blocks: &blocks,
        };
        let logits = model.forward(&batch(&[chunk])).unwrap();
        rows.extend((0..logits.num_rows()).map(|row| logits.row(row).to_vec()));
    }
    rows
}
