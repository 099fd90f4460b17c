//! A chat request to an engine request: everything that needs the model is checked here.

use assay_api::FieldError;
use assay_api::openai::{self, ChatCompletionRequest};
use assay_engine::{LogprobsMode, LogprobsParams, Request, RequestId, SamplingParams};

use crate::convert::constraint;
use crate::error::{ApiError, SequenceRoom, TokenCount};
use crate::model_text::ModelText;

/// What the engine can take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModelLimits {
    /// Prompt and reply together.
    pub(crate) room: SequenceRoom,
    /// Width of a logits row.
    pub(crate) vocab_size: u32,
}

/// Renders, tokenises, compiles a schema and checks; takes as long as prompt and schema are long.
///
/// # Errors
/// The template refuses the messages, they do not fit the context, an id is no token's,
/// or the schema cannot be enforced.
pub(crate) fn build(
    id: RequestId,
    chat: &ChatCompletionRequest,
    seed: i64,
    text: &ModelText,
    limits: ModelLimits,
) -> Result<Request, ApiError> {
    check_logit_bias(&chat.logit_bias, limits.vocab_size)?;
    let prompt_token_ids = text.chat_prompt(chat, limits.room)?;
    let max_tokens = max_tokens(chat.max_tokens, prompt_token_ids.len(), limits)?;
    let constraint = constraint::compile(&chat.response_format, text)?;
    Ok(Request {
        id,
        prompt_token_ids,
        cache_salt: chat.cache_salt.as_deref().map(Into::into),
        num_choices: chat.n,
        max_tokens,
        sampling: SamplingParams {
            logit_bias: chat.logit_bias.clone(),
            repetition_penalty: chat.repetition_penalty,
            presence_penalty: chat.presence_penalty,
            frequency_penalty: chat.frequency_penalty,
            temperature: chat.temperature,
            top_k: chat.top_k,
            top_p: chat.top_p,
            min_p: chat.min_p,
            seed: seed.cast_unsigned(),
        },
        logprobs: chat.logprobs.map(|asked| LogprobsParams {
            top_logprobs: asked.top_logprobs,
            mode: match asked.mode {
                openai::LogprobsMode::Raw => LogprobsMode::Raw,
                openai::LogprobsMode::Processed => LogprobsMode::Processed,
            },
            include_end: asked.end,
        }),
        prompt_logprobs: None,
        constraint,
        stop: chat.stop.clone(),
        end_token_ids: text.end_token_ids(),
    })
}

fn check_logit_bias(biases: &[(u32, f64)], vocab_size: u32) -> Result<(), ApiError> {
    match biases.iter().find(|(id, _)| *id >= vocab_size) {
        None => Ok(()),
        Some((id, _)) => {
            let message =
                format!("`logit_bias`: token ids are below {vocab_size} in this model, not {id}");
            Err(FieldError::new("logit_bias", message).into())
        }
    }
}

/// Absent, 0 and −1 mean the rest of the context; nothing is ever cut to fit.
fn max_tokens(
    asked: Option<(&'static str, i64)>,
    num_prompt_tokens: usize,
    limits: ModelLimits,
) -> Result<u32, ApiError> {
    let too_long = || ApiError::PromptTooLong {
        prompt_tokens: TokenCount::Exactly(num_prompt_tokens),
        room: limits.room,
    };
    let prompt_tokens = u32::try_from(num_prompt_tokens).map_err(|_| too_long())?;
    let room = limits
        .room
        .num_tokens
        .checked_sub(prompt_tokens)
        .filter(|room| *room > 0)
        .ok_or_else(too_long)?;
    match asked {
        None | Some((_, 0 | -1)) => Ok(room),
        Some((field, negative @ ..=-2)) => {
            let message = format!(
                "`{field}`: must be 1 to {room}, which is the room left after a prompt of {prompt_tokens} tokens \
                 (0, -1 or null ask for all of it), not {negative}"
            );
            Err(FieldError::new(field, message).into())
        }
        Some((field, positive)) => u32::try_from(positive)
            .ok()
            .filter(|max_tokens| *max_tokens <= room)
            .ok_or(ApiError::ReplyTooLong {
                field,
                prompt_tokens,
                max_tokens: positive.unsigned_abs(),
                room: limits.room,
            }),
    }
}
