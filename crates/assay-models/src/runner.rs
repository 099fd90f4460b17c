//! A network on its machine: what a validated batch goes through.

use std::fmt;
use std::ops::Range;

use assay_kernels::Compute;
use assay_kernels::attention::SequenceSpan;
use assay_kernels::quantize::ActivationProfile;

use crate::arch::Network;
use crate::backend::Backend;
use crate::forward::{ForwardBatch, ForwardError, Logits};
use crate::kv_cache::KvCache;
use crate::pass::{Buffers, Pass};
use crate::split::Part;

/// A [`Runner`] of any backend.
pub(crate) trait Run: Send + fmt::Debug {
    /// Runs all layers on a validated batch and keeps what the head needs of the wanted rows, if the head is here. Layers
    /// that have others before them go on from `hidden`, `[T, hidden_size]`.
    fn forward_layers(
        &mut self,
        batch: &ForwardBatch,
        hidden: Option<Vec<f32>>,
    ) -> Result<(), ForwardError>;

    /// What the last layer here left, `[T, hidden_size]`, on the host.
    fn hidden(&mut self) -> Vec<f32>;

    /// Logits of some of the wanted rows.
    fn head(&mut self, wanted: Range<usize>) -> Logits;

    /// The host's instruction set and threads.
    fn compute(&self) -> &Compute;
}

/// A network with its cache and buffers.
#[derive(Debug)]
pub(crate) struct Runner<B: Backend> {
    backend: B,
    profile: ActivationProfile,
    network: Box<dyn Network<B>>,
    kv_cache: KvCache<B>,
    part: Part,
    buffers: Buffers<B>,
    batch: B::Batch,
}

impl<B: Backend> Runner<B> {
    pub(crate) fn new(
        backend: B,
        profile: ActivationProfile,
        network: Box<dyn Network<B>>,
        kv_cache: KvCache<B>,
        part: Part,
    ) -> Self {
        Self {
            backend,
            profile,
            network,
            kv_cache,
            part,
            buffers: Buffers::default(),
            batch: B::Batch::default(),
        }
    }
}

impl<B: Backend> Run for Runner<B> {
    fn forward_layers(
        &mut self,
        batch: &ForwardBatch,
        hidden: Option<Vec<f32>>,
    ) -> Result<(), ForwardError> {
        self.backend.check()?;
        let block_tables: Vec<Vec<u32>> = batch
            .block_tables
            .iter()
            .map(|table| table.iter().map(|block| block.0).collect())
            .collect();
        let spans: Vec<SequenceSpan<'_>> = batch
            .sequences()
            .zip(&block_tables)
            .map(|(rows, block_table)| SequenceSpan {
                first_row: rows.start,
                num_rows: rows.len(),
                first_position: batch.positions[rows.start] as usize,
                block_table,
            })
            .collect();
        for &copy in &batch.block_copies {
            self.kv_cache.copy_block(&self.backend, copy);
        }
        self.backend
            .begin(&mut self.batch, &batch.token_ids, &spans, &batch.logit_rows);
        let pass = Pass {
            backend: &self.backend,
            batch: &self.batch,
            profile: self.profile,
            token_ids: &batch.token_ids,
            positions: &batch.positions,
            spans: &spans,
            logit_rows: &batch.logit_rows,
            part: &self.part,
        };
        if let Some(hidden) = hidden {
            self.backend.bring(hidden, &mut self.buffers.hidden);
        }
        let lm_head = self.network.lm_head();
        if batch.num_tokens() > 0 {
            self.backend.run(&pass, || {
                self.network
                    .forward_layers(&pass, &mut self.kv_cache, &mut self.buffers);
            });
            let hidden_len = batch.num_tokens() * lm_head.weight.k();
            self.backend.resize(&mut self.buffers.hidden, hidden_len);
        }
        if self.part.is_last() {
            lm_head.norm_wanted(&pass, &mut self.buffers);
        }
        self.backend.check()
    }

    fn hidden(&mut self) -> Vec<f32> {
        self.backend.fetch(&self.buffers.hidden)
    }

    fn head(&mut self, wanted: Range<usize>) -> Logits {
        let lm_head = self.network.lm_head();
        lm_head.logits(&self.backend, wanted, &mut self.buffers);
        let logits = &mut self.buffers.logits;
        self.backend.logits(logits, lm_head.weight.n())
    }

    fn compute(&self) -> &Compute {
        self.backend.compute()
    }
}
