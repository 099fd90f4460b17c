//! Log-probabilities of a row: raw ones, read before anything else may use the row, and processed
//! ones, of the distribution that was drawn from.
//!
//! `logprob = f64(l) − f64(max) − LN64(Z)` over the whole vocabulary (`docs/numerics.md`). The chosen
//! token's value is computed by the same expression as the list's, so it has the same bits there.

use assay_kernels::Compute;
use assay_kernels::exp64::{exp64, ln64};
use assay_kernels::log_softmax::{LogSumExp, NonFiniteRow};
use assay_models::{Logits, TokenId};

use crate::output::{NamedLogprobs, TokenLogprobs, TopLogprob};
use crate::sampler::Distribution;

/// Raw scores of one row, taken before a token is drawn from it.
#[derive(Debug)]
pub struct RawLogprobs {
    normaliser: LogSumExp,
    top_logprobs: Vec<TopLogprob>,
    named: Option<NamedLogprobs>,
}

impl RawLogprobs {
    /// Reads the normaliser, the `num_top` most likely tokens (all, if there are fewer) and those `named`.
    ///
    /// # Errors
    /// [`NonFiniteRow`] if the row has no softmax.
    pub fn read(
        compute: &Compute,
        logits: &Logits,
        row_index: usize,
        num_top: usize,
        named: &[TokenId],
    ) -> Result<Self, NonFiniteRow> {
        let normaliser = logits.log_sum_exp(compute, row_index)?;
        let top_logprobs = logits
            .top_k(compute, row_index, num_top)
            .map_err(|_| NonFiniteRow)?
            .into_iter()
            .map(|(token_id, logit)| TopLogprob {
                token_id,
                logprob: normaliser.logprob(logit),
            })
            .collect();
        let named_logits = logits.logits_of(row_index, named);
        let candidates = named
            .iter()
            .zip(named_logits)
            .map(|(&token_id, logit)| TopLogprob {
                token_id,
                logprob: normaliser.logprob(logit),
            });
        Ok(Self {
            normaliser,
            top_logprobs,
            named: rank_named(candidates.collect()),
        })
    }

    /// The scores of a token whose logit in this row is `logit`.
    pub fn of_token(self, logit: f32) -> TokenLogprobs {
        TokenLogprobs {
            logprob: self.normaliser.logprob(logit),
            top_logprobs: self.top_logprobs,
            named: self.named,
        }
    }
}

/// Ranks the named tokens' scores and adds up their mass, the most likely first; `None` where there are none.
fn rank_named(mut candidates: Vec<TopLogprob>) -> Option<NamedLogprobs> {
    candidates.sort_unstable_by(|a, b| {
        let by_logprob = b.logprob.total_cmp(&a.logprob);
        by_logprob.then(a.token_id.cmp(&b.token_id))
    });
    candidates.first()?;
    let logprobs = candidates.iter().map(|one| one.logprob);
    Some(NamedLogprobs {
        total_logprob: logprob_of_set(logprobs),
        candidates,
    })
}

/// Log of the sum of probabilities whose logs these are, added in this order; of a single one it is that one, to the
/// bit. −infinity for none.
pub fn logprob_of_set(logprobs: impl Iterator<Item = f64> + Clone) -> f64 {
    let most = logprobs.clone().fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        return most;
    }
    let mass = logprobs.fold(0.0, |mass, logprob| mass + exp64(logprob - most));
    most + ln64(mass)
}

/// Raw scores of `token_id` in a row, and its rank: 1 for the most likely token, ties by lower id.
///
/// # Errors
/// [`NonFiniteRow`] if a logit of the row is not finite, as for a row that is drawn from.
pub fn score_row(
    compute: &Compute,
    logits: &Logits,
    row_index: usize,
    token_id: TokenId,
    num_top: usize,
    named: &[TokenId],
) -> Result<(TokenLogprobs, u32), NonFiniteRow> {
    if !logits.is_finite(row_index) {
        return Err(NonFiniteRow);
    }
    let raw = RawLogprobs::read(compute, logits, row_index, num_top, named)?;
    let (logit, num_above) = logits.logit_and_place(row_index, token_id);
    Ok((raw.of_token(logit), num_above + 1))
}

/// Scores of `token_id` under the distribution that it was drawn from.
pub fn processed(distribution: &Distribution, token_id: TokenId, num_top: usize) -> TokenLogprobs {
    TokenLogprobs {
        logprob: distribution.logprob(token_id),
        top_logprobs: distribution.top_logprobs(num_top),
        named: None,
    }
}
