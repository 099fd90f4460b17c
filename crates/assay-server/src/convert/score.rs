//! Score requests to engine requests, one for each item, and their events to the scores.
//!
//! An item's tokens are forced behind the context and scored there, nothing is drawn. Items share the context through
//! the prefix cache, and no item's value depends on the others.

use assay_api::FieldError;
use assay_api::openai::{LogprobsMode, Prompt, Usage};
use assay_api::score::{ItemScore, ScoreContext, ScoreRequest, Scores};
use assay_engine::{
    OutputEvent, PromptLogprobsParams, ReplyFormat, Request, RequestId, SamplingParams,
};

use super::completion_prompt::CompletionPrompt;
use super::logprob_entries::finite;
use super::reply_shape::{ReplyNames, ReplyShape};
use super::request::{ModelLimits, Room, Work};
use crate::error::ApiError;
use crate::model_text::ModelText;
use crate::reply::PromptEvent;

/// Tokenises the context and every item by itself, so that items begin where the context ends.
///
/// # Errors
/// A text has no token, an id is no token's, or an item does not fit the context length.
pub(crate) fn build(
    asked: &ScoreRequest,
    text: &ModelText,
    limits: ModelLimits,
) -> Result<Vec<Work>, ApiError> {
    let (field, context) = match &asked.context {
        ScoreContext::Query(query) => {
            let query = CompletionPrompt::new(query, "query", true, text, limits)?;
            ("query", query.token_ids)
        }
        ScoreContext::Conversation(conversation) => (
            "messages",
            text.chat_prompt(conversation, "messages", limits.room)?
                .token_ids,
        ),
    };
    let first_position = Room {
        field,
        num_prompt_tokens: context.len(),
        limits,
    }
    .prompt_tokens()?;
    let numbered = asked.items.iter().enumerate();
    let built = numbered.map(|(index, item)| {
        let path = format!("items[{index}]");
        let item = item_tokens(item, &path, text, limits)?;
        let room = Room {
            field: &path,
            num_prompt_tokens: context.len() + item.len(),
            limits,
        };
        room.prompt_tokens()?;
        Ok(Work::Engine(Box::new(Request {
            // Named when it is handed over.
            id: RequestId(0),
            prompt_token_ids: [&context[..], &item[..]].concat(),
            cache_salt: asked.cache_salt.as_deref().map(Into::into),
            num_choices: 1,
            max_tokens: 0,
            sampling: SamplingParams::greedy(),
            logprobs: None,
            prompt_logprobs: Some(PromptLogprobsParams {
                first_position,
                top_logprobs: 0,
            }),
            named_token_ids: Vec::new(),
            constraint: None,
            format: ReplyFormat::default(),
            stop: Vec::new(),
            end_token_ids: Vec::new(),
        })))
    });
    built.collect()
}

fn item_tokens(
    item: &Prompt,
    path: &str,
    text: &ModelText,
    limits: ModelLimits,
) -> Result<Vec<u32>, ApiError> {
    let is_empty = matches!(item, Prompt::Text(text) if text.is_empty());
    if is_empty {
        let message = format!("`{path}`: must not be empty: it has no token to score");
        return Err(FieldError::new(path, message).into());
    }
    Ok(CompletionPrompt::new(item, path, false, text, limits)?.token_ids)
}

/// The scores of one request.
#[derive(Debug)]
pub(crate) struct ScoreShape {
    names: ReplyNames,
    items: Vec<ItemScore>,
}

impl ScoreShape {
    pub(crate) fn new(names: ReplyNames, num_items: usize) -> Self {
        let items = (0..num_items).map(|index| ItemScore {
            index,
            object: "score".to_owned(),
            logprob: 0.0,
            token_ids: Vec::new(),
            token_logprobs: Vec::new(),
            is_greedy: true,
        });
        Self {
            names,
            items: items.collect(),
        }
    }
}

impl ReplyShape for ScoreShape {
    type Chunk = ();
    type Whole = Scores;

    fn opening(&mut self) -> Vec<()> {
        Vec::new()
    }

    fn chunks(&mut self, _: PromptEvent) -> Result<Vec<()>, ApiError> {
        Err(ApiError::Internal("scores are not streamed".to_owned()))
    }

    fn last_chunks(&mut self, _: Usage) -> Vec<()> {
        Vec::new()
    }

    fn add(&mut self, event: PromptEvent) -> Result<(), ApiError> {
        let index = event.prompt_index;
        let Some(item) = self.items.get_mut(index) else {
            return Err(ApiError::Internal(format!("an event of item {index}")));
        };
        if let OutputEvent::Prompt { tokens } = event.event {
            for token in tokens {
                let logprob = finite(token.logprobs.logprob, LogprobsMode::Raw)?;
                item.logprob += logprob;
                item.token_ids.push(token.token_id);
                item.token_logprobs.push(logprob);
                item.is_greedy &= token.rank == 1;
            }
        }
        Ok(())
    }

    fn whole(self, usage: Usage) -> Result<Scores, ApiError> {
        if let Some(item) = self.items.iter().find(|item| item.token_ids.is_empty()) {
            return Err(ApiError::Internal(format!(
                "item {} has no score",
                item.index
            )));
        }
        Ok(Scores {
            id: self.names.id,
            object: "list".to_owned(),
            created: self.names.created,
            model: self.names.model,
            data: self.items,
            usage,
            system_fingerprint: self.names.system_fingerprint,
        })
    }
}
