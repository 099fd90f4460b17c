//! From the scheduler's picks to the packed token rows of one forward pass.

use assay_models::ForwardBatch;

use crate::scheduler::{Scheduler, SchedulerOutput};

/// Packs the scheduled tokens, in the order of `output`. Row `i` of the logits belongs to the `i`-th
/// scheduled sequence that wants logits.
///
/// # Panics
/// If `output` is not of this scheduler's present state.
pub fn build(scheduler: &Scheduler, output: &SchedulerOutput) -> ForwardBatch {
    let mut batch = ForwardBatch {
        block_copies: output.block_copies.clone(),
        ..ForwardBatch::default()
    };
    batch.cu_seqlens.push(0);
    for scheduled in &output.scheduled {
        let sequence = scheduler
            .sequence(scheduled.seq_id)
            .expect("scheduled sequences are live until the step is applied");
        let begin = sequence.num_computed_tokens;
        let end = begin + scheduled.num_scheduled_tokens;
        batch
            .token_ids
            .extend_from_slice(&sequence.token_ids[begin..end]);
        batch.positions.extend((begin..end).map(index_u32));
        batch.cu_seqlens.push(index_u32(batch.token_ids.len()));
        batch.block_tables.push(sequence.block_table.clone());
        if scheduled.wants_logits {
            batch.logit_rows.push(index_u32(batch.token_ids.len() - 1));
        }
    }
    batch
}

fn index_u32(index: usize) -> u32 {
    u32::try_from(index).expect("positions and rows are far below 2^32: submit bounds the context")
}
