//! The rules of a batch, checked before a pass touches the cache.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::forward::{BlockId, ForwardBatch, ForwardError, ModelInfo};

impl ForwardBatch {
    /// The rows of each sequence, in order; meaningful once [`ForwardBatch::validate`] has passed.
    pub fn sequences(&self) -> impl ExactSizeIterator<Item = Range<usize>> {
        self.cu_seqlens
            .windows(2)
            .map(|ends| ends[0] as usize..ends[1] as usize)
    }

    /// Checks every rule of [`ForwardBatch`] against the limits of a model.
    ///
    /// # Errors
    /// [`ForwardError::MalformedBatch`] with the first rule that is broken and where.
    pub fn validate(&self, info: &ModelInfo) -> Result<(), ForwardError> {
        self.check_shapes()?;
        self.check_rows(info)?;
        self.check_blocks(info)?;
        self.check_copies(info)
    }

    fn check_shapes(&self) -> Result<(), ForwardError> {
        let num_tokens = self.num_tokens();
        if self.positions.len() != num_tokens {
            return malformed(format!(
                "{} positions for {num_tokens} token ids",
                self.positions.len()
            ));
        }
        if self.cu_seqlens.len() != self.num_sequences() + 1 {
            return malformed(format!(
                "{} cu_seqlens for {} block tables",
                self.cu_seqlens.len(),
                self.num_sequences()
            ));
        }
        let (first, last) = (self.cu_seqlens.first(), self.cu_seqlens.last());
        if first != Some(&0) || last.map(|&last| last as usize) != Some(num_tokens) {
            return malformed(format!(
                "cu_seqlens run from {first:?} to {last:?}, not from 0 to {num_tokens}"
            ));
        }
        match self
            .cu_seqlens
            .windows(2)
            .position(|ends| ends[0] >= ends[1])
        {
            Some(sequence) => malformed(format!("sequence {sequence} has no rows (cu_seqlens)")),
            None => Ok(()),
        }
    }

    fn check_rows(&self, info: &ModelInfo) -> Result<(), ForwardError> {
        let mut ids = self.token_ids.iter().enumerate();
        if let Some((row, id)) = ids.find(|&(_, &id)| id as usize >= info.vocab_size) {
            return malformed(format!(
                "token id {id} at row {row} of a vocabulary of {}",
                info.vocab_size
            ));
        }
        for (sequence, rows) in self.sequences().enumerate() {
            let positions = &self.positions[rows];
            if let Some(i) = positions
                .windows(2)
                .position(|pair| pair[0].checked_add(1) != Some(pair[1]))
            {
                return malformed(format!(
                    "positions of sequence {sequence} go from {} to {}",
                    positions[i],
                    positions[i + 1]
                ));
            }
            if let Some(&last) = positions.last()
                && last as usize >= info.context_length
            {
                return malformed(format!(
                    "position {last} of sequence {sequence} in a context of {}",
                    info.context_length
                ));
            }
        }
        if self.logit_rows.windows(2).any(|pair| pair[0] >= pair[1]) {
            return malformed("logit_rows are not ascending".to_owned());
        }
        match self.logit_rows.last() {
            Some(&row) if row as usize >= self.num_tokens() => malformed(format!(
                "logit row {row} of a batch of {}",
                self.num_tokens()
            )),
            _ => Ok(()),
        }
    }

    /// Tables cover their sequences, and no two sequences write one block.
    fn check_blocks(&self, info: &ModelInfo) -> Result<(), ForwardError> {
        let mut writers = BTreeMap::<BlockId, usize>::new();
        for (sequence, (rows, table)) in self.sequences().zip(&self.block_tables).enumerate() {
            let first_block = self.positions[rows.start] as usize / info.kv_block_tokens;
            let last_position = self.positions[rows.end - 1] as usize;
            let needed = last_position / info.kv_block_tokens + 1;
            let Some(used) = table.get(..needed) else {
                return malformed(format!(
                    "the block table of sequence {sequence} has {} blocks, position {last_position} needs {needed}",
                    table.len()
                ));
            };
            if let Some(block) = used
                .iter()
                .find(|block| block.0 as usize >= info.num_kv_blocks)
            {
                return malformed(format!(
                    "block {} of sequence {sequence} in a pool of {}",
                    block.0, info.num_kv_blocks
                ));
            }
            for &block in &used[first_block..] {
                if let Some(other) = writers.insert(block, sequence) {
                    return malformed(format!(
                        "block {} is written by sequence {other} and by sequence {sequence}",
                        block.0
                    ));
                }
            }
        }
        Ok(())
    }

    fn check_copies(&self, info: &ModelInfo) -> Result<(), ForwardError> {
        let mut blocks = self
            .block_copies
            .iter()
            .flat_map(|copy| [copy.from, copy.to]);
        match blocks.find(|block| block.0 as usize >= info.num_kv_blocks) {
            Some(block) => malformed(format!(
                "block {} of a copy in a pool of {}",
                block.0, info.num_kv_blocks
            )),
            None => Ok(()),
        }
    }
}

fn malformed(rule: String) -> Result<(), ForwardError> {
    Err(ForwardError::MalformedBatch(rule))
}
