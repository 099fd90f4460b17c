//! From one row of logits to one token with its scores: raw log-probabilities first, then the sampler.
//!
//! Raw values are read before the sampler sees the row, and the sampler leaves it untouched.

use assay_constrain::{MatchError, TokenMask};
use assay_kernels::Compute;
use assay_models::{Logits, TokenId};

use crate::logprobs::{self, RawLogprobs};
use crate::output::{RequestError, TokenOutput};
use crate::request::{LogprobsMode, SamplingParams};
use crate::rows::ChoiceRow;
use crate::sampler::{self, DrawKey, SeenTokens};

/// Draws the successor of row `row_index`, which belongs to `owner`.
pub(crate) fn draw_row(
    compute: &Compute,
    logits: &Logits,
    row_index: usize,
    owner: &ChoiceRow<'_>,
) -> Result<TokenOutput, RequestError> {
    let request = owner.request;
    let numerical_error = RequestError::NumericalError {
        position: owner.row.position,
    };
    if !logits.is_finite(row_index) {
        return Err(numerical_error);
    }
    let key = DrawKey {
        seed: request.sampling.seed,
        choice_index: owner.row.seq_id.choice_index,
        position: owner.row.position + 1,
    };
    let mask = allowed_in_row(owner, logits.vocab_size())?;
    let draw = || {
        draw_token(
            compute,
            logits,
            row_index,
            mask,
            &request.sampling,
            owner.seen,
            key,
        )
    };
    let Some(params) = request.logprobs else {
        return Ok(TokenOutput {
            token_id: draw().0,
            logprobs: None,
        });
    };
    let num_top = params.top_logprobs as usize;
    let (token_id, scores) = match params.mode {
        LogprobsMode::Raw => {
            let raw = RawLogprobs::read(
                compute,
                logits,
                row_index,
                num_top,
                &request.named_token_ids,
            )
            .map_err(|_| numerical_error)?;
            let (token_id, logit) = draw();
            (token_id, raw.of_token(logit))
        }
        LogprobsMode::Processed => {
            let row = logits.row(row_index);
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

/// Draws a token from a finite row, and gives its logit. Where the most likely one is all that is asked for, the row
/// itself is not.
pub(crate) fn draw_token(
    compute: &Compute,
    logits: &Logits,
    row_index: usize,
    mask: Option<&TokenMask>,
    sampling: &SamplingParams,
    seen: &SeenTokens,
    key: DrawKey,
) -> (TokenId, f32) {
    if mask.is_none() && sampler::takes_most_likely(sampling) {
        let best = logits.top_k(compute, row_index, 1);
        if let Some(&best) = best.ok().as_deref().and_then(<[_]>::first) {
            return best;
        }
    }
    let row = logits.row(row_index);
    let token_id = sampler::draw(compute, row, mask, sampling, seen, key);
    (token_id, row[token_id as usize])
}

/// The owner's mask, if it has one; it allows at least one column of the row.
fn allowed_in_row<'a>(
    owner: &ChoiceRow<'a>,
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
