//! Shared by the test binaries: loading with given settings, and running token ids as batches.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::num::NonZeroUsize;
use std::path::PathBuf;

use assay_formats::GgufFile;
use assay_kernels::{Compute, Isa, ThreadPool};
use assay_models::{BlockId, ForwardBatch, ForwardModel, LoadOptions, Model, Numerics};

/// How to load a model for a test.
#[derive(Clone)]
pub struct Setup {
    pub path: PathBuf,
    pub isa: Isa,
    pub num_threads: usize,
    pub numerics: Numerics,
    pub num_kv_blocks: usize,
}

impl Setup {
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            isa: Isa::detect(),
            num_threads: 2,
            numerics: Numerics::Exact,
            num_kv_blocks: 64,
        }
    }

    pub fn load(&self) -> Model {
        let file = GgufFile::open(&self.path).unwrap_or_else(|error| panic!("{error}"));
        let options = LoadOptions {
            context_length: None,
            num_kv_blocks: self.num_kv_blocks,
            numerics: self.numerics,
            compute: Compute::new(
                self.isa,
                ThreadPool::new(NonZeroUsize::new(self.num_threads).unwrap()),
            ),
            progress: None,
        };
        Model::load(&file, options)
            .unwrap_or_else(|error| panic!("{}: {error}", self.path.display()))
    }
}

/// Part of a sequence, as one pass runs it.
pub struct Chunk<'a> {
    pub token_ids: &'a [u32],
    pub first_position: usize,
    pub blocks: &'a [BlockId],
}

/// A pass over `chunks` that wants the logits of every row.
pub fn batch(chunks: &[Chunk<'_>]) -> ForwardBatch {
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
pub fn blocks(first: usize, num_tokens: usize) -> Vec<BlockId> {
    (first..first + num_tokens.div_ceil(16))
        .map(|block| BlockId(block as u32))
        .collect()
}

/// Logits of every position of `token_ids`, from one pass.
pub fn whole_prompt(model: &mut Model, token_ids: &[u32]) -> Vec<Vec<f32>> {
    chunked_prompt(model, token_ids, token_ids.len())
}

/// Logits of every position of `token_ids`, `chunk_len` tokens a pass.
pub fn chunked_prompt(model: &mut Model, token_ids: &[u32], chunk_len: usize) -> Vec<Vec<f32>> {
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
