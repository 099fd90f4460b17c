//! From the scheduler's picks to the packed token rows of one forward pass.

use assay_models::{ForwardBatch, TokenId};

use crate::scheduler::{Scheduler, SchedulerOutput};
use crate::sequence::SeqId;

/// One step's rows, and whose their logits are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepBatch {
    /// What the model runs.
    pub forward: ForwardBatch,
    /// `[num_logit_rows]` owners of the wanted rows, in the order of `forward.logit_rows`. A sequence's rows
    /// stand together, in order of position.
    pub logit_rows: Vec<LogitRow>,
}

/// Whose a row of logits is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogitRow {
    /// The sequence.
    pub seq_id: SeqId,
    /// Position of the row's token; the logits are of its successor.
    pub position: u32,
    /// The row's token where it is a guess: the row counts if exactly this token is drawn for its position.
    pub draft: Option<TokenId>,
}

/// Packs the scheduled tokens, in the order of `output`.
///
/// # Panics
/// If `output` is not of this scheduler's present state.
pub fn build(scheduler: &Scheduler, output: &SchedulerOutput) -> StepBatch {
    let mut batch = StepBatch::default();
    let forward = &mut batch.forward;
    forward.block_copies.clone_from(&output.block_copies);
    forward.cu_seqlens.push(0);
    for scheduled in &output.scheduled {
        let sequence = scheduler
            .sequence(scheduled.seq_id)
            .expect("scheduled sequences are live until the step is applied");
        let begin = sequence.num_computed_tokens;
        let known = &sequence.token_ids[begin..begin + scheduled.num_scheduled_tokens];
        let draft = &scheduled.draft_token_ids;
        let end = begin + known.len() + draft.len();
        let first_row = forward.token_ids.len();
        forward.token_ids.extend_from_slice(known);
        forward.token_ids.extend_from_slice(draft);
        forward.positions.extend((begin..end).map(index_u32));
        forward.cu_seqlens.push(index_u32(forward.token_ids.len()));
        forward.block_tables.push(sequence.block_table.clone());
        for position in end - scheduled.num_logit_rows()..end {
            let row = first_row + position - begin;
            forward.logit_rows.push(index_u32(row));
            batch.logit_rows.push(LogitRow {
                seq_id: scheduled.seq_id,
                position: index_u32(position),
                draft: (position - begin)
                    .checked_sub(known.len())
                    .map(|index| draft[index]),
            });
        }
    }
    batch
}

fn index_u32(index: usize) -> u32 {
    u32::try_from(index).expect("positions and rows are far below 2^32: submit bounds the context")
}
