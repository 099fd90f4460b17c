//! A request to engine requests: everything that needs the model is checked here.

use assay_api::FieldError;
use assay_api::openai::{self, Conversation, GenerationParams};
use assay_engine::{
    LogprobsMode, LogprobsParams, PromptLogprobsParams, ReplyFormat, Request, RequestId,
    SamplingParams,
};

use crate::convert::constraint;
use crate::error::{ApiError, SequenceRoom, TokenCount};
use crate::model_text::ModelText;
use crate::reply::MAX_REPLY_SCORES;

/// What the engine can take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModelLimits {
    /// Prompt and reply together.
    pub(crate) room: SequenceRoom,
    /// Width of a logits row.
    pub(crate) vocab_size: u32,
    /// Edges of the label tries of one request.
    pub(crate) max_trie_edges: usize,
}

/// What one prompt takes to answer.
#[derive(Debug)]
pub(crate) enum Work {
    /// A pass of the engine.
    Engine(Box<Request>),
    /// Nothing: no token is generated and none is scored.
    Nothing {
        /// Tokens of the prompt.
        prompt_tokens: u32,
    },
}

impl Work {
    pub(crate) fn num_choices(&self) -> u32 {
        match self {
            Self::Engine(request) => request.num_choices,
            Self::Nothing { .. } => 1,
        }
    }
}

/// Renders, tokenises, compiles a schema and checks; takes as long as prompt and schema are long. `field` is what the
/// request calls its conversation.
///
/// # Errors
/// The template refuses the messages, they do not fit the context, an id is no token's,
/// or the schema cannot be enforced.
pub(crate) fn chat(
    conversation: &Conversation,
    asked: &GenerationParams,
    field: &str,
    seed: i64,
    text: &ModelText,
    limits: ModelLimits,
) -> Result<Request, ApiError> {
    check_token_ids(asked, limits.vocab_size)?;
    let prompt = text.chat_prompt(conversation, field, limits.room)?;
    let room = Room {
        field,
        num_prompt_tokens: prompt.token_ids.len(),
        limits,
    };
    let max_tokens = match asked.max_tokens {
        None | Some((_, 0 | -1)) => room.left()?,
        Some((field, max_tokens)) => room.check(field, max_tokens)?,
    };
    let mut format = prompt.format;
    let constraint = match &format.tool_calls {
        Some(calls) => {
            let tools = &conversation.tools;
            let compiled = constraint::compile_with_tools(&asked.form, tools, calls, text)?;
            format.call_constraint = compiled.call;
            compiled.reply
        }
        None => constraint::compile(&asked.form, text)?,
    };
    let num_prompt_top = asked.prompt_logprobs;
    let request = engine_request(
        asked,
        prompt.token_ids,
        max_tokens,
        num_prompt_top,
        seed,
        text,
    );
    check_num_scores(asked, [&request])?;
    Ok(Request {
        constraint,
        format,
        ..request
    })
}

/// The engine's form of what is asked for one prompt, its constraint and format aside. `num_prompt_top` asks for scores
/// of its tokens, with so many alternatives each.
pub(crate) fn engine_request(
    asked: &GenerationParams,
    prompt_token_ids: Vec<u32>,
    max_tokens: u32,
    num_prompt_top: Option<u32>,
    seed: i64,
    text: &ModelText,
) -> Request {
    // A single token has nothing before it that could score it.
    let scores_prompt = prompt_token_ids.len() > 1;
    let reports_scores = asked.logprobs.is_some();
    let named = asked.named_tokens.as_ref().filter(|_| reports_scores);
    Request {
        // Named when it is handed over.
        id: RequestId(0),
        prompt_token_ids,
        cache_salt: asked.cache_salt.as_deref().map(Into::into),
        num_choices: asked.n,
        max_tokens,
        sampling: SamplingParams {
            logit_bias: asked.logit_bias.clone(),
            repetition_penalty: asked.repetition_penalty,
            presence_penalty: asked.presence_penalty,
            frequency_penalty: asked.frequency_penalty,
            temperature: asked.temperature,
            top_k: asked.top_k,
            top_p: asked.top_p,
            min_p: asked.min_p,
            seed: seed.cast_unsigned(),
        },
        logprobs: asked.logprobs.map(|asked| LogprobsParams {
            top_logprobs: asked.top_logprobs,
            mode: match asked.mode {
                openai::LogprobsMode::Raw => LogprobsMode::Raw,
                openai::LogprobsMode::Processed => LogprobsMode::Processed,
            },
            include_end: asked.end,
        }),
        prompt_logprobs: num_prompt_top
            .filter(|_| scores_prompt)
            .map(|top_logprobs| PromptLogprobsParams {
                first_position: 1,
                top_logprobs,
            }),
        named_token_ids: named.map_or(Vec::new(), |named| named.token_ids.clone()),
        constraint: None,
        format: ReplyFormat::default(),
        stop: asked.stop.clone(),
        end_token_ids: text.end_token_ids(),
    }
}

/// Refuses ids that are no token's: biased ones and named ones.
pub(crate) fn check_token_ids(asked: &GenerationParams, vocab_size: u32) -> Result<(), ApiError> {
    let biased = asked.logit_bias.iter().map(|(id, _)| ("logit_bias", *id));
    let named = asked.named_tokens.iter().flat_map(|named| {
        let ids = named.token_ids.iter();
        ids.map(|id| (named.field, *id))
    });
    match biased.chain(named).find(|(_, id)| *id >= vocab_size) {
        None => Ok(()),
        Some((field, id)) => Err(no_token(field, field, id, vocab_size)),
    }
}

/// Refuses a reply, kept until it is whole, that would hold more scores than it may: the prompt's where it is scored, and
/// as many as `max_tokens` says. Each place has its token's own, its alternatives' and those of the named tokens.
pub(crate) fn check_num_scores<'a>(
    asked: &GenerationParams,
    requests: impl IntoIterator<Item = &'a Request>,
) -> Result<(), ApiError> {
    if asked.stream.is_some() {
        return Ok(());
    }
    let says_how_long = asked
        .max_tokens
        .is_some_and(|(_, max_tokens)| max_tokens > 0);
    let counts = requests.into_iter().map(|request| {
        let at_each = |top: u32| 1 + as_usize(top) + request.named_token_ids.len();
        let of_prompt = request.prompt_logprobs.map_or(0, |params| {
            request.prompt_token_ids.len() * at_each(params.top_logprobs)
        });
        let of_reply = request
            .logprobs
            .filter(|_| says_how_long)
            .map_or(0, |params| {
                as_usize(request.max_tokens).saturating_mul(at_each(params.top_logprobs))
            });
        (of_prompt.saturating_add(of_reply)).saturating_mul(as_usize(request.num_choices))
    });
    let num_scores = counts.fold(0, usize::saturating_add);
    if num_scores <= MAX_REPLY_SCORES {
        return Ok(());
    }
    let field = match &asked.named_tokens {
        Some(named) => named.field,
        None => "logprobs",
    };
    let message = format!(
        "`{field}`: {num_scores} scores at all places are more than {MAX_REPLY_SCORES}, which is what an unstreamed reply \
         may hold: ask for fewer at each, score or generate fewer tokens at a time, or set `stream`"
    );
    Err(FieldError::new(field, message).into())
}

fn as_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The refusal of an id that is no token's, found at `path` of the field `param`.
pub(crate) fn no_token(param: &str, path: &str, id: u32, vocab_size: u32) -> ApiError {
    let message = format!("`{path}`: token ids are below {vocab_size} in this model, not {id}");
    FieldError::new(param, message).into()
}

/// What a prompt leaves of the context; nothing is ever cut to fit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room<'a> {
    /// The field that the prompt came from.
    pub(crate) field: &'a str,
    pub(crate) num_prompt_tokens: usize,
    pub(crate) limits: ModelLimits,
}

impl Room<'_> {
    fn too_long(self) -> ApiError {
        ApiError::PromptTooLong {
            field: self.field.to_owned(),
            prompt_tokens: TokenCount::Exactly(self.num_prompt_tokens),
            room: self.limits.room,
        }
    }

    /// Tokens of the prompt, which fits the context by itself.
    pub(crate) fn prompt_tokens(self) -> Result<u32, ApiError> {
        u32::try_from(self.num_prompt_tokens)
            .ok()
            .filter(|prompt_tokens| *prompt_tokens <= self.limits.room.num_tokens)
            .ok_or_else(|| self.too_long())
    }

    /// Tokens that a reply may have, at least 1.
    pub(crate) fn left(self) -> Result<u32, ApiError> {
        let left = self.limits.room.num_tokens - self.prompt_tokens()?;
        (left > 0).then_some(left).ok_or_else(|| self.too_long())
    }

    /// Checks that `max_tokens`, which `field` asks for, is positive and fits.
    pub(crate) fn check(self, field: &'static str, max_tokens: i64) -> Result<u32, ApiError> {
        let prompt_tokens = self.prompt_tokens()?;
        let left = self.left()?;
        if max_tokens < 1 {
            let message = format!(
                "`{field}`: must be 1 to {left}, which is the room left after a prompt of {prompt_tokens} tokens \
                 (-1 asks for all of it), not {max_tokens}"
            );
            return Err(FieldError::new(field, message).into());
        }
        u32::try_from(max_tokens)
            .ok()
            .filter(|max_tokens| *max_tokens <= left)
            .ok_or_else(|| ApiError::ReplyTooLong {
                field,
                prompt: self.field.to_owned(),
                prompt_tokens,
                max_tokens: max_tokens.unsigned_abs(),
                room: self.limits.room,
            })
    }
}
