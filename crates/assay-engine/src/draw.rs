//! From one row of logits to one token with its scores: raw log-probabilities first, then the sampler.
//!
//! A pure function of the row and of its own request: no neighbour, no clock, no shared state. So rows
//! may be drawn on any threads in any order.

use assay_constrain::{MatchError, TokenMask};
use assay_kernels::Compute;
use assay_models::Logits;

use crate::logprobs::{self, RawLogprobs};
use crate::output::{RequestError, TokenOutput};
use crate::request::{LogprobsMode, Request};
use crate::sampler::{self, DrawKey, SeenTokens};
use crate::sequence::{SeqId, Sequence};

/// Whose row it is.
#[derive(Clone, Copy)]
pub(crate) struct RowOwner<'a> {
    pub(crate) sequence: &'a Sequence,
    pub(crate) request: &'a Request,
    /// Tokens that penalties look at.
    pub(crate) seen: &'a SeenTokens,
    /// What a constraint allows, if there is one.
    pub(crate) mask: Option<&'a Result<TokenMask, MatchError>>,
}

impl RowOwner<'_> {
    pub(crate) fn seq_id(&self) -> SeqId {
        self.sequence.seq_id
    }
}

/// Draws every row of `logits`, over all threads; row `i` belongs to `owners[i]`.
pub(crate) fn draw_rows(
    compute: &Compute,
    logits: &Logits,
    owners: &[RowOwner<'_>],
) -> Vec<Result<TokenOutput, RequestError>> {
    assert_eq!(
        logits.num_rows(),
        owners.len(),
        "the model answers each wanted row once"
    );
    let mut outputs: Vec<Option<Result<TokenOutput, RequestError>>> = vec![None; owners.len()];
    compute
        .pool
        .for_each_chunk(&mut outputs, 1, |row_index, output| {
            let owner = &owners[row_index];
            output[0] = Some(draw_row(compute, logits, row_index, owner));
        });
    outputs
        .into_iter()
        .map(|output| output.expect("every row was drawn"))
        .collect()
}

fn draw_row(
    compute: &Compute,
    logits: &Logits,
    row_index: usize,
    owner: &RowOwner<'_>,
) -> Result<TokenOutput, RequestError> {
    let request = owner.request;
    let position = owner.sequence.next_position();
    // The row is that of the last token; its successor is drawn.
    let numerical_error = RequestError::NumericalError {
        position: position - 1,
    };
    if !logprobs::is_finite(logits, row_index) {
        return Err(numerical_error);
    }
    let key = DrawKey {
        seed: request.sampling.seed,
        choice_index: owner.seq_id().choice_index,
        position,
    };
    let row = logits.row(row_index);
    let mask = allowed_in_row(owner, row.len())?;
    let Some(params) = request.logprobs else {
        return Ok(TokenOutput {
            token_id: sampler::draw(compute, row, mask, &request.sampling, owner.seen, key),
            logprobs: None,
        });
    };
    let num_top = params.top_logprobs as usize;
    let (token_id, scores) = match params.mode {
        LogprobsMode::Raw => {
            let raw = RawLogprobs::read(compute, logits, row_index, num_top)
                .map_err(|_| numerical_error)?;
            let token_id = sampler::draw(compute, row, mask, &request.sampling, owner.seen, key);
            (token_id, raw.of_token(row[token_id as usize]))
        }
        LogprobsMode::Processed => {
            let distribution =
                sampler::distribution(compute, row, mask, &request.sampling, owner.seen);
            let token_id = sampler::draw_from(&distribution, key);
            let scores = logprobs::processed(&distribution, token_id, num_top);
            (token_id, scores)
        }
    };
    Ok(TokenOutput {
        token_id,
        logprobs: Some(scores),
    })
}

/// The owner's mask, if it has one; it allows at least one column of the row.
fn allowed_in_row<'a>(
    owner: &RowOwner<'a>,
    vocab_size: usize,
) -> Result<Option<&'a TokenMask>, RequestError> {
    let Some(mask) = owner.mask else {
        return Ok(None);
    };
    let mask = mask.as_ref().map_err(Clone::clone)?;
    // The ids ascend: if the first is past the row, all are.
    match mask.iter().next() {
        Some(id) if (id as usize) < vocab_size => Ok(Some(mask)),
        _ => Err(MatchError::EmptyMask.into()),
    }
}
