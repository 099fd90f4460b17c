//! Scores of the prompt's tokens to their wire form.

use assay_api::openai::{LogprobsMode, PromptLogprob, PromptLogprobs, PromptPosition};
use assay_engine::PromptToken;

use super::logprob_entries::finite;
use crate::error::ApiError;
use crate::model_text::ModelText;

/// All positions of a prompt: none for its first token, then `tokens`, with `num_top` alternatives each.
pub(crate) fn write(
    tokens: &[PromptToken],
    num_top: u32,
    text: &ModelText,
) -> Result<PromptLogprobs, ApiError> {
    let scored = tokens.iter().map(|token| position(token, num_top, text));
    std::iter::once(Ok(None)).chain(scored).collect()
}

fn position(
    token: &PromptToken,
    num_top: u32,
    text: &ModelText,
) -> Result<Option<PromptPosition>, ApiError> {
    let scored = |token_id, logprob, rank| {
        let scored = PromptLogprob {
            logprob: finite(logprob, LogprobsMode::Raw)?,
            rank,
            decoded_token: text.spell(token_id).0,
        };
        Ok::<_, ApiError>((token_id, scored))
    };
    let own = scored(token.token_id, token.logprobs.logprob, token.rank);
    let ranked = std::iter::zip(1..=num_top, &token.logprobs.top_logprobs);
    let others = ranked
        .filter(|(_, top)| top.token_id != token.token_id)
        .map(|(rank, top)| scored(top.token_id, top.logprob, rank));
    let all = std::iter::once(own).chain(others);
    Ok(Some(PromptPosition(all.collect::<Result<_, _>>()?)))
}
