//! A completion request to engine requests, one for each prompt.

use assay_api::FieldError;
use assay_api::openai::{CompletionRequest, Prompt};

use super::completion_prompt::CompletionPrompt;
use super::constraint;
use super::request::{ModelLimits, Room, Work, check_num_scores, check_token_ids, engine_request};
use crate::error::ApiError;
use crate::model_text::ModelText;

/// Tokens of a reply whose request does not say.
const DEFAULT_MAX_TOKENS: u32 = 16;

/// Tokenises and checks every prompt.
///
/// # Errors
/// A prompt has no token, does not fit the context or holds an id that is no token's; an id elsewhere is none.
pub(crate) fn build(
    asked: &CompletionRequest,
    seed: i64,
    text: &ModelText,
    limits: ModelLimits,
) -> Result<Vec<(CompletionPrompt, Work)>, ApiError> {
    check_token_ids(&asked.generation, limits.vocab_size)?;
    let is_single = matches!(&asked.prompts[..], [_]);
    let numbered = asked.prompts.iter().enumerate();
    let built = numbered.map(|(index, prompt)| {
        let path = if is_single {
            "prompt".to_owned()
        } else {
            format!("prompt[{index}]")
        };
        build_one(asked, prompt, &path, seed, text, limits)
    });
    let built: Vec<_> = built.collect::<Result<_, ApiError>>()?;
    let requests = built.iter().filter_map(|(_, work)| match work {
        Work::Engine(request) => Some(&**request),
        Work::Nothing { .. } => None,
    });
    check_num_scores(&asked.generation, requests)?;
    Ok(built)
}

fn build_one(
    asked: &CompletionRequest,
    prompt: &Prompt,
    path: &str,
    seed: i64,
    text: &ModelText,
    limits: ModelLimits,
) -> Result<(CompletionPrompt, Work), ApiError> {
    let prompt = CompletionPrompt::new(prompt, path, asked.add_special_tokens, text, limits)?;
    let generation = &asked.generation;
    let room = Room {
        field: path,
        num_prompt_tokens: prompt.token_ids.len(),
        limits,
    };
    let prompt_tokens = room.prompt_tokens()?;
    let max_tokens = match generation.max_tokens {
        None => room.left()?.min(DEFAULT_MAX_TOKENS),
        Some((_, -1)) => room.left()?,
        Some((_, 0)) => 0,
        Some((field, max_tokens)) => room.check(field, max_tokens)?,
    };
    if max_tokens == 0 && generation.n > 1 {
        let message = "`n`: must be 1 where `max_tokens` is 0: there is nothing to choose from";
        return Err(FieldError::new("n", message).into());
    }
    // One pass serves both ways to ask for the prompt's scores.
    let echoed = generation.logprobs.filter(|_| asked.echo);
    let num_prompt_top = generation
        .prompt_logprobs
        .max(echoed.map(|logprobs| logprobs.top_logprobs));
    let token_ids = prompt.token_ids.clone();
    let mut request = engine_request(
        generation,
        token_ids,
        max_tokens,
        num_prompt_top,
        seed,
        text,
    );
    request.constraint = constraint::compile(&generation.form, text)?;
    if let Some(logprobs) = request.logprobs.as_mut().filter(|_| asked.echo) {
        // See `completion.rs`: where the prompt is echoed, the ending token keeps its place in the arrays.
        logprobs.include_end = true;
    }
    let work = if max_tokens == 0 && request.prompt_logprobs.is_none() {
        Work::Nothing { prompt_tokens }
    } else {
        Work::Engine(Box::new(request))
    };
    Ok((prompt, work))
}
