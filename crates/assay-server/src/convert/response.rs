//! Engine events to a reply: as one object, or chunk by chunk. Both are made of the same pieces, so a
//! collected stream equals the unstreamed reply.

use assay_api::openai::{
    AssistantMessage, ChatChoice, ChatChunk, ChatCompletion, ChatCompletionRequest, ChoiceLogprobs,
    ChunkChoice, Delta, FinishReason, LogprobEntry, LogprobsMode, ReplyRole, Usage,
};
use assay_engine::{self as engine, Entry, TokenOutput};

use super::logprob_entries::{self, EntryStyle};
use crate::error::ApiError;
use crate::model_text::ModelText;

/// What all parts of one reply share.
#[derive(Clone, Debug)]
pub(crate) struct ReplyHead {
    pub(crate) id: String,
    pub(crate) created: u64,
    pub(crate) model: String,
    pub(crate) system_fingerprint: String,
    pub(crate) seed: i64,
    pub(crate) num_choices: u32,
    logprobs: Option<EntryStyle>,
    logprobs_end: bool,
    /// Present where the request asked for token ids.
    prompt_token_ids: Option<Vec<u32>>,
    include_usage: bool,
}

/// Names of a reply that do not come from the request.
pub(crate) struct ReplyNames {
    pub(crate) id: String,
    pub(crate) created: u64,
    pub(crate) model: String,
    pub(crate) system_fingerprint: String,
    pub(crate) seed: i64,
}

impl ReplyHead {
    pub(crate) fn new(
        names: ReplyNames,
        chat: &ChatCompletionRequest,
        request: &engine::Request,
    ) -> Self {
        let ReplyNames {
            id,
            created,
            model,
            system_fingerprint,
            seed,
        } = names;
        let ids = || request.prompt_token_ids.clone();
        Self {
            id,
            created,
            model,
            system_fingerprint,
            seed,
            num_choices: chat.n,
            logprobs: chat.logprobs.map(|asked| EntryStyle {
                mode: asked.mode,
                token_ids: chat.return_token_ids,
            }),
            logprobs_end: chat.logprobs.is_some_and(|asked| asked.end),
            prompt_token_ids: chat.return_token_ids.then(ids),
            include_usage: chat.stream.is_some_and(|options| options.include_usage),
        }
    }

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
            id: self.id.clone(),
            object: "chat.completion.chunk".to_owned(),
            created: self.created,
            model: self.model.clone(),
            choices,
            usage: self.include_usage.then_some(None),
            system_fingerprint: self.system_fingerprint.clone(),
            seed: self.seed,
            logprobs_mode: self.mode(),
        }
    }

    /// The chunk that opens a choice.
    pub(crate) fn first_chunk(&self, index: u32) -> ChatChunk {
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
    pub(crate) fn delta_chunk(
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
    pub(crate) fn finish_chunk(
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

    /// The chunk with the counts, where the request asked.
    pub(crate) fn usage_chunk(&self, usage: Usage) -> Option<ChatChunk> {
        self.include_usage.then(|| ChatChunk {
            usage: Some(Some(usage)),
            ..self.chunk(Vec::new())
        })
    }
}

/// An unstreamed reply in the making.
#[derive(Debug)]
pub(crate) struct ReplyBuilder {
    choices: Vec<ChoiceBuilder>,
}

#[derive(Clone, Debug, Default)]
struct ChoiceBuilder {
    entries: Vec<Entry>,
    finished: Option<(engine::FinishReason, Option<TokenOutput>)>,
}

impl ReplyBuilder {
    pub(crate) fn new(num_choices: u32) -> Self {
        let choices = (0..num_choices).map(|_| ChoiceBuilder::default());
        Self {
            choices: choices.collect(),
        }
    }

    fn choice(&mut self, index: u32) -> Result<&mut ChoiceBuilder, ApiError> {
        let found = usize::try_from(index)
            .ok()
            .and_then(|index| self.choices.get_mut(index));
        found.ok_or_else(|| ApiError::Internal(format!("the engine sent choice {index}")))
    }

    pub(crate) fn delta(&mut self, index: u32, mut entries: Vec<Entry>) -> Result<(), ApiError> {
        self.choice(index)?.entries.append(&mut entries);
        Ok(())
    }

    pub(crate) fn finished(
        &mut self,
        index: u32,
        reason: engine::FinishReason,
        end: Option<TokenOutput>,
    ) -> Result<(), ApiError> {
        self.choice(index)?.finished = Some((reason, end));
        Ok(())
    }

    pub(crate) fn build(
        self,
        head: ReplyHead,
        usage: Usage,
        text: &ModelText,
    ) -> Result<ChatCompletion, ApiError> {
        let numbered = (0u32..).zip(self.choices);
        let choices = numbered.map(|(index, choice)| choice.build(index, &head, text));
        Ok(ChatCompletion {
            choices: choices.collect::<Result<_, ApiError>>()?,
            logprobs_mode: head.mode(),
            id: head.id,
            object: "chat.completion".to_owned(),
            created: head.created,
            model: head.model,
            usage,
            system_fingerprint: head.system_fingerprint,
            seed: head.seed,
        })
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

/// Counts of all choices, as they finish.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UsageTotal {
    num_finished: u32,
    usage: Usage,
}

impl UsageTotal {
    pub(crate) fn add(&mut self, choice: engine::Usage) {
        let cached_tokens = u64::from(choice.cached_tokens);
        let usage = &mut self.usage;
        // The prompt counts once; choices after the first may find it cached by the first.
        let cached = &mut usage.prompt_tokens_details.cached_tokens;
        *cached = match self.num_finished {
            0 => cached_tokens,
            _ => cached_tokens.min(*cached),
        };
        usage.prompt_tokens = u64::from(choice.prompt_tokens);
        usage.completion_tokens += u64::from(choice.completion_tokens);
        usage.total_tokens = usage.prompt_tokens + usage.completion_tokens;
        self.num_finished += 1;
    }

    pub(crate) fn num_finished(&self) -> u32 {
        self.num_finished
    }

    pub(crate) fn usage(&self) -> Usage {
        self.usage
    }
}

fn finish(reason: &engine::FinishReason) -> (FinishReason, Option<String>) {
    match reason {
        engine::FinishReason::EndToken(_) => (FinishReason::Stop, None),
        engine::FinishReason::StopString(stop) => (FinishReason::Stop, Some(stop.clone())),
        engine::FinishReason::Length => (FinishReason::Length, None),
    }
}

fn spell(entries: &[Entry]) -> String {
    entries.iter().map(|entry| entry.text.as_str()).collect()
}

fn token_ids(entries: &[Entry]) -> Vec<u32> {
    entries.iter().map(|entry| entry.output.token_id).collect()
}
