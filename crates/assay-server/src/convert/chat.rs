//! Engine events to chat completions: one object, or chunk by chunk, both of the same pieces.

use std::sync::Arc;

use assay_api::openai::{
    AssistantMessage, ChatChoice, ChatChunk, ChatCompletion, ChatCompletionRequest, ChoiceLogprobs,
    ChunkChoice, Delta, LogprobEntry, LogprobsMode, ReplyRole, Usage,
};
use assay_engine::{self as engine, Entry, OutputEvent, PromptToken, TokenOutput};

use super::logprob_entries::{self, EntryStyle, Listing};
use super::prompt_logprobs;
use super::reply_shape::{ReplyNames, ReplyShape};
use super::usage::finish;
use crate::error::ApiError;
use crate::model_text::ModelText;
use crate::reply::PromptEvent;

/// The chat completion of one request.
#[derive(Debug)]
pub(crate) struct ChatShape {
    head: ReplyHead,
    text: Arc<ModelText>,
    /// The choices of an unstreamed reply in the making, by index.
    choices: Vec<ChoiceBuilder>,
    /// For `prompt_logprobs`.
    scored: Vec<PromptToken>,
}

/// What all parts of the reply share.
#[derive(Clone, Debug)]
struct ReplyHead {
    names: ReplyNames,
    logprobs: Option<EntryStyle>,
    logprobs_end: bool,
    prompt_logprobs: Option<u32>,
    /// Present where the request asked for token ids.
    prompt_token_ids: Option<Vec<u32>>,
    include_usage: bool,
}

#[derive(Clone, Debug, Default)]
struct ChoiceBuilder {
    entries: Vec<Entry>,
    finished: Option<(engine::FinishReason, Option<TokenOutput>)>,
}

impl ChatShape {
    pub(crate) fn new(
        names: ReplyNames,
        chat: &ChatCompletionRequest,
        request: &engine::Request,
        text: &Arc<ModelText>,
    ) -> Self {
        let asked = &chat.generation;
        let ids = || request.prompt_token_ids.clone();
        let choices = (0..asked.n).map(|_| ChoiceBuilder::default());
        Self {
            head: ReplyHead {
                names,
                logprobs: EntryStyle::of(asked, Listing::NamedAlone),
                logprobs_end: asked.logprobs.is_some_and(|logprobs| logprobs.end),
                prompt_logprobs: asked.prompt_logprobs,
                prompt_token_ids: asked.return_token_ids.then(ids),
                include_usage: asked.stream.is_some_and(|options| options.include_usage),
            },
            text: Arc::clone(text),
            choices: choices.collect(),
            scored: Vec::new(),
        }
    }

    fn choice(&mut self, index: u32) -> Result<&mut ChoiceBuilder, ApiError> {
        let found = usize::try_from(index)
            .ok()
            .and_then(|index| self.choices.get_mut(index));
        found.ok_or_else(|| ApiError::Internal(format!("the engine sent choice {index}")))
    }
}

impl ReplyShape for ChatShape {
    type Chunk = ChatChunk;
    type Whole = ChatCompletion;

    fn opening(&mut self) -> Vec<ChatChunk> {
        let numbered = std::iter::zip(0u32.., &self.choices);
        numbered
            .map(|(index, _)| self.head.first_chunk(index))
            .collect()
    }

    fn chunks(&mut self, event: PromptEvent) -> Result<Vec<ChatChunk>, ApiError> {
        let Self { head, text, .. } = self;
        match event.event {
            OutputEvent::Delta {
                choice_index,
                entries,
            } => {
                let chunk = head.delta_chunk(choice_index, &entries, text)?;
                Ok(chunk.into_iter().collect())
            }
            OutputEvent::Finished {
                choice_index,
                reason,
                end,
                ..
            } => Ok(vec![head.finish_chunk(
                choice_index,
                &reason,
                end.as_ref(),
                text,
            )?]),
            // Scores of the prompt are never streamed.
            OutputEvent::Prompt { .. } => Ok(Vec::new()),
            OutputEvent::Failed(error) => Err(error.into()),
        }
    }

    fn usage_chunk(&self, usage: Usage) -> Option<ChatChunk> {
        self.head.include_usage.then(|| ChatChunk {
            usage: Some(Some(usage)),
            ..self.head.chunk(Vec::new())
        })
    }

    fn add(&mut self, event: PromptEvent) -> Result<(), ApiError> {
        match event.event {
            OutputEvent::Prompt { tokens } => self.scored.extend(tokens),
            OutputEvent::Delta {
                choice_index,
                mut entries,
            } => self.choice(choice_index)?.entries.append(&mut entries),
            OutputEvent::Finished {
                choice_index,
                reason,
                end,
                ..
            } => self.choice(choice_index)?.finished = Some((reason, end)),
            OutputEvent::Failed(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn whole(self, usage: Usage) -> Result<ChatCompletion, ApiError> {
        let Self {
            head,
            text,
            choices,
            scored,
        } = self;
        let numbered = std::iter::zip(0u32.., choices);
        let choices = numbered.map(|(index, choice)| choice.build(index, &head, &text));
        let write = |num_top| prompt_logprobs::write(&scored, num_top, &text);
        Ok(ChatCompletion {
            choices: choices.collect::<Result<_, ApiError>>()?,
            prompt_logprobs: head.prompt_logprobs.map(write).transpose()?,
            logprobs_mode: head.mode(),
            id: head.names.id,
            object: "chat.completion".to_owned(),
            created: head.names.created,
            model: head.names.model,
            usage,
            system_fingerprint: head.names.system_fingerprint,
            seed: head.names.seed,
        })
    }
}

impl ReplyHead {
    fn mode(&self) -> Option<LogprobsMode> {
        self.logprobs.map(|style| style.mode)
    }

    fn returns_token_ids(&self) -> bool {
        self.prompt_token_ids.is_some()
    }

    fn entries(
        &self,
        entries: &[Entry],
        text: &ModelText,
    ) -> Result<Option<Vec<LogprobEntry>>, ApiError> {
        let write = |style| {
            let written = entries
                .iter()
                .map(|entry| logprob_entries::visible(entry, style, text));
            written.collect()
        };
        self.logprobs.map(write).transpose()
    }

    /// `Some` where the request asked for the ending token, `Some(None)` where no token ended the reply.
    fn end(
        &self,
        end: Option<&TokenOutput>,
        text: &ModelText,
    ) -> Result<Option<Option<LogprobEntry>>, ApiError> {
        let Some(style) = self.logprobs.filter(|_| self.logprobs_end) else {
            return Ok(None);
        };
        let written = end.map(|output| logprob_entries::end(output, style, text));
        written.transpose().map(Some)
    }

    fn chunk(&self, choices: Vec<ChunkChoice>) -> ChatChunk {
        ChatChunk {
            id: self.names.id.clone(),
            object: "chat.completion.chunk".to_owned(),
            created: self.names.created,
            model: self.names.model.clone(),
            choices,
            usage: self.include_usage.then_some(None),
            system_fingerprint: self.names.system_fingerprint.clone(),
            seed: self.names.seed,
            logprobs_mode: self.mode(),
        }
    }

    /// The chunk that opens a choice.
    fn first_chunk(&self, index: u32) -> ChatChunk {
        self.chunk(vec![ChunkChoice {
            index,
            delta: Delta {
                role: Some(ReplyRole::Assistant),
                content: Some(String::new()),
            },
            logprobs: self.logprobs.map(|_| ChoiceLogprobs::default()),
            finish_reason: None,
            stop_reason: None,
            prompt_token_ids: self.prompt_token_ids.clone(),
            token_ids: self.returns_token_ids().then(Vec::new),
        }])
    }

    /// The chunk of released entries; `None` where it would say nothing.
    fn delta_chunk(
        &self,
        index: u32,
        entries: &[Entry],
        text: &ModelText,
    ) -> Result<Option<ChatChunk>, ApiError> {
        let content = spell(entries);
        let logprobs = self.entries(entries, text)?;
        if content.is_empty() && logprobs.is_none() && !self.returns_token_ids() {
            return Ok(None);
        }
        Ok(Some(self.chunk(vec![ChunkChoice {
            index,
            delta: Delta {
                role: None,
                content: Some(content),
            },
            logprobs: logprobs.map(|content| ChoiceLogprobs {
                content,
                ..ChoiceLogprobs::default()
            }),
            finish_reason: None,
            stop_reason: None,
            prompt_token_ids: None,
            token_ids: self.returns_token_ids().then(|| token_ids(entries)),
        }])))
    }

    /// The chunk that ends a choice.
    fn finish_chunk(
        &self,
        index: u32,
        reason: &engine::FinishReason,
        end: Option<&TokenOutput>,
        text: &ModelText,
    ) -> Result<ChatChunk, ApiError> {
        let (finish_reason, stop_reason) = finish(reason);
        let end = self.end(end, text)?;
        Ok(self.chunk(vec![ChunkChoice {
            index,
            delta: Delta::default(),
            logprobs: end.map(|end| ChoiceLogprobs {
                end: Some(end),
                ..ChoiceLogprobs::default()
            }),
            finish_reason: Some(finish_reason),
            stop_reason,
            prompt_token_ids: None,
            token_ids: None,
        }]))
    }
}

impl ChoiceBuilder {
    fn build(self, index: u32, head: &ReplyHead, text: &ModelText) -> Result<ChatChoice, ApiError> {
        let Some((reason, end)) = self.finished else {
            let detail = format!("choice {index} never finished");
            return Err(ApiError::Internal(detail));
        };
        let (finish_reason, stop_reason) = finish(&reason);
        let end = head.end(end.as_ref(), text)?;
        let logprobs = head.entries(&self.entries, text)?;
        Ok(ChatChoice {
            index,
            message: AssistantMessage {
                role: ReplyRole::Assistant,
                content: Some(spell(&self.entries)),
                refusal: None,
            },
            logprobs: logprobs.map(|content| ChoiceLogprobs {
                content,
                refusal: None,
                end,
            }),
            finish_reason,
            stop_reason,
            prompt_token_ids: head.prompt_token_ids.clone(),
            token_ids: head.returns_token_ids().then(|| token_ids(&self.entries)),
        })
    }
}

fn spell(entries: &[Entry]) -> String {
    entries.iter().map(|entry| entry.text.as_str()).collect()
}

fn token_ids(entries: &[Entry]) -> Vec<u32> {
    entries.iter().map(|entry| entry.output.token_id).collect()
}
