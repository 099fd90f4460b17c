//! Engine events to chat completions: one object, or chunk by chunk, both of the same pieces.

use std::sync::Arc;

use assay_api::openai::{
    AssistantMessage, ChatChoice, ChatChunk, ChatCompletion, ChatCompletionRequest, ChoiceLogprobs,
    ChunkChoice, Delta, LogprobEntry, LogprobsMode, ReplyRole, ToolCallDelta, Usage,
};
use assay_engine::{self as engine, Channel, Entry, OutputEvent, PromptToken, TokenOutput};

use serde_json::Value;

use super::logprob_entries::{self, EntryStyle, Listing};
use super::prompt_logprobs;
use super::reply_shape::{ReplyNames, ReplyShape};
use super::tool_calls::{self, ToolCallReader, argument_schemas};
use super::usage::finish;
use crate::error::ApiError;
use crate::model_text::ModelText;
use crate::reply::PromptEvent;

/// The chat completion of one request.
#[derive(Debug)]
pub(crate) struct ChatShape {
    head: ReplyHead,
    text: Arc<ModelText>,
    /// The choices in the making, by index.
    choices: Vec<ChoiceBuilder>,
    /// For `prompt_logprobs`.
    scored: Vec<PromptToken>,
    receipt: Option<Value>,
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
    parts: Parts,
}

/// What a reply may hold beside content.
#[derive(Clone, Copy, Debug)]
struct Parts {
    reasoning: bool,
    tool_calls: bool,
    /// Whether the tokens of tool calls are reported, where scores are.
    logprobs_tool_calls: bool,
}

impl Parts {
    fn is_plain(self) -> bool {
        !self.reasoning && !self.tool_calls
    }
}

#[derive(Clone, Debug)]
struct ChoiceBuilder {
    calls: ToolCallReader,
    /// Of an unstreamed reply.
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
        let schemas = argument_schemas(&chat.conversation.tools);
        let call_ids = names.id.replacen("chatcmpl-", "call_", 1);
        let choices = (0..asked.n).map(|index| ChoiceBuilder {
            calls: ToolCallReader::new(format!("{call_ids}_{index}_"), Arc::clone(&schemas)),
            entries: Vec::new(),
            finished: None,
        });
        Self {
            head: ReplyHead {
                names,
                logprobs: EntryStyle::of(asked, Listing::NamedAlone),
                logprobs_end: asked.logprobs.is_some_and(|logprobs| logprobs.end),
                prompt_logprobs: asked.prompt_logprobs,
                prompt_token_ids: asked.return_token_ids.then(ids),
                include_usage: asked.stream.is_some_and(|options| options.include_usage),
                parts: Parts {
                    reasoning: request.format.reasoning.is_some(),
                    tool_calls: request.format.tool_calls.is_some(),
                    logprobs_tool_calls: chat.logprobs_tool_calls,
                },
            },
            text: Arc::clone(text),
            choices: choices.collect(),
            scored: Vec::new(),
            receipt: None,
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
        match event.event {
            OutputEvent::Delta {
                choice_index,
                entries,
            } => {
                let mut chunks = Vec::new();
                // Each chunk spells in one field.
                for run in entries.chunk_by(|a, b| a.channel == b.channel) {
                    let pieces = run.iter().flat_map(|entry| &entry.calls);
                    let calls = self.choice(choice_index)?.calls.push(pieces);
                    let chunk = self
                        .head
                        .delta_chunk(choice_index, run, calls, &self.text)?;
                    chunks.extend(chunk);
                }
                Ok(chunks)
            }
            OutputEvent::Finished {
                choice_index,
                reason,
                end,
                ..
            } => {
                let reader = &mut self.choice(choice_index)?.calls;
                let last_piece = reader.finish();
                let num_calls = reader.num_calls();
                let chunk = self.head.finish_chunk(
                    choice_index,
                    last_piece,
                    num_calls,
                    (&reason, end.as_ref()),
                    &self.text,
                )?;
                Ok(vec![chunk])
            }
            // Scores of the prompt are never streamed.
            OutputEvent::Prompt { .. } => Ok(Vec::new()),
            OutputEvent::Failed(error) => Err(error.into()),
        }
    }

    fn receive_receipt(&mut self, receipt: Value) {
        self.receipt = Some(receipt);
    }

    fn last_chunks(&mut self, usage: Usage) -> Vec<ChatChunk> {
        let receipt = self.receipt.take();
        let is_told = self.head.include_usage || receipt.is_some();
        let last = is_told.then(|| ChatChunk {
            usage: self.head.include_usage.then_some(Some(usage)),
            receipt,
            ..self.head.chunk(Vec::new())
        });
        last.into_iter().collect()
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
            receipt,
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
            receipt,
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

    /// The scores of `entries`, each in the list of its field; `None` where the request did not ask.
    fn scores(
        &self,
        entries: &[Entry],
        text: &ModelText,
    ) -> Result<Option<ChoiceLogprobs>, ApiError> {
        let Some(style) = self.logprobs else {
            return Ok(None);
        };
        let list = |channel| -> Result<Vec<LogprobEntry>, ApiError> {
            let own = entries.iter().filter(|entry| entry.channel == channel);
            own.map(|entry| logprob_entries::visible(entry, style, text))
                .collect()
        };
        let Parts {
            reasoning,
            tool_calls,
            logprobs_tool_calls,
        } = self.parts;
        let wants_calls = tool_calls && logprobs_tool_calls;
        Ok(Some(ChoiceLogprobs {
            content: list(Channel::Content)?,
            refusal: None,
            reasoning_content: reasoning.then(|| list(Channel::Reasoning)).transpose()?,
            tool_calls: wants_calls.then(|| list(Channel::ToolCall)).transpose()?,
            end: None,
        }))
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
            receipt: None,
        }
    }

    /// The chunk that opens a choice.
    fn first_chunk(&self, index: u32) -> ChatChunk {
        self.chunk(vec![ChunkChoice {
            index,
            delta: Delta {
                role: Some(ReplyRole::Assistant),
                // Where all may be reasoning or calls, there is no content until some comes.
                content: self.parts.is_plain().then(String::new),
                ..Delta::default()
            },
            logprobs: self.no_scores(),
            finish_reason: None,
            stop_reason: None,
            prompt_token_ids: self.prompt_token_ids.clone(),
            token_ids: self.returns_token_ids().then(Vec::new),
        }])
    }

    /// The lists of scores before anything came.
    fn no_scores(&self) -> Option<ChoiceLogprobs> {
        let Parts {
            reasoning,
            tool_calls,
            logprobs_tool_calls,
        } = self.parts;
        self.logprobs.map(|_| ChoiceLogprobs {
            reasoning_content: reasoning.then(Vec::new),
            tool_calls: (tool_calls && logprobs_tool_calls).then(Vec::new),
            ..ChoiceLogprobs::default()
        })
    }

    /// The chunk of released entries, which spell in one field; `None` where it would say nothing.
    fn delta_chunk(
        &self,
        index: u32,
        entries: &[Entry],
        tool_calls: Vec<ToolCallDelta>,
        text: &ModelText,
    ) -> Result<Option<ChatChunk>, ApiError> {
        let channel = entries.first().map(|entry| entry.channel);
        let spelled = spell(entries, channel.unwrap_or_default());
        let is_call = channel == Some(Channel::ToolCall);
        let says_nothing = if is_call {
            tool_calls.is_empty()
        } else {
            spelled.is_empty()
        };
        let reports = self.logprobs.is_some() && (!is_call || self.parts.logprobs_tool_calls);
        if says_nothing && !reports && !self.returns_token_ids() {
            return Ok(None);
        }
        let mut delta = Delta {
            tool_calls,
            ..Delta::default()
        };
        match channel {
            Some(Channel::Reasoning) if !spelled.is_empty() => {
                delta.reasoning_content = Some(spelled);
            }
            // An entry that spells nothing alone does not begin a content.
            Some(Channel::Content) if self.parts.is_plain() || !spelled.is_empty() => {
                delta.content = Some(spelled);
            }
            _ => {}
        }
        Ok(Some(self.chunk(vec![ChunkChoice {
            index,
            delta,
            logprobs: self.scores(entries, text)?,
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
        last_piece: Option<ToolCallDelta>,
        num_calls: u32,
        (reason, end): (&engine::FinishReason, Option<&TokenOutput>),
        text: &ModelText,
    ) -> Result<ChatChunk, ApiError> {
        let (finish_reason, stop_reason) = finish(reason, num_calls);
        let end = self.end(end, text)?;
        Ok(self.chunk(vec![ChunkChoice {
            index,
            delta: Delta {
                tool_calls: last_piece.into_iter().collect(),
                ..Delta::default()
            },
            logprobs: end.and_then(|end| {
                Some(ChoiceLogprobs {
                    end: Some(end),
                    ..self.no_scores()?
                })
            }),
            finish_reason: Some(finish_reason),
            stop_reason,
            prompt_token_ids: None,
            token_ids: None,
        }]))
    }
}

impl ChoiceBuilder {
    fn build(
        mut self,
        index: u32,
        head: &ReplyHead,
        text: &ModelText,
    ) -> Result<ChatChoice, ApiError> {
        let Some((reason, end)) = self.finished else {
            let detail = format!("choice {index} never finished");
            return Err(ApiError::Internal(detail));
        };
        let entries = &self.entries;
        let mut tool_calls = Vec::new();
        let pieces = entries.iter().flat_map(|entry| &entry.calls);
        let deltas = self.calls.push(pieces);
        for delta in deltas.into_iter().chain(self.calls.finish()) {
            tool_calls::apply(&mut tool_calls, delta);
        }
        let (finish_reason, stop_reason) = finish(&reason, self.calls.num_calls());
        let content = spell(entries, Channel::Content);
        let reasoning = spell(entries, Channel::Reasoning);
        let mut logprobs = head.scores(entries, text)?;
        if let (Some(logprobs), Some(end)) = (&mut logprobs, head.end(end.as_ref(), text)?) {
            logprobs.end = Some(end);
        }
        Ok(ChatChoice {
            index,
            message: AssistantMessage {
                role: ReplyRole::Assistant,
                content: (head.parts.is_plain() || !content.is_empty()).then_some(content),
                refusal: None,
                reasoning_content: (!reasoning.is_empty()).then_some(reasoning),
                tool_calls,
            },
            logprobs,
            finish_reason,
            stop_reason,
            prompt_token_ids: head.prompt_token_ids.clone(),
            token_ids: head.returns_token_ids().then(|| token_ids(entries)),
        })
    }
}

fn spell(entries: &[Entry], channel: Channel) -> String {
    let own = entries.iter().filter(|entry| entry.channel == channel);
    own.map(|entry| entry.text.as_str()).collect()
}

/// Ids of the tokens, each once however many fields it spells in.
fn token_ids(entries: &[Entry]) -> Vec<u32> {
    let tokens = entries.iter().filter(|entry| !entry.is_continuation);
    tokens.map(|entry| entry.output.token_id).collect()
}
