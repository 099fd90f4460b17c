//! Engine events to text completions. Everything is a piece of a choice: a stream sends the pieces, the unstreamed
//! reply is what they add up to.
//!
//! An echoed prompt goes the way of a reply: its tokens come with their scores, are spelled by the same text pipeline
//! and leave as soon as they are scored, so a long prompt's scores are never all held for a stream. Where the prompt is
//! echoed, the token that ended the reply keeps its place in the arrays, with no text, and so does one that completed a
//! stop string which took the whole reply: clients that score a prompt with one token to generate tell the two apart by
//! counting.

use std::sync::Arc;

use assay_api::openai::{
    CompletionChoice, CompletionLogprobs, CompletionRequest, TextCompletion, Usage,
};
use assay_engine::{self as engine, Channel, Entry, OutputEvent, PromptToken, TokenOutput};

use serde_json::Value;

use super::completion_prompt::{CompletionPrompt, PromptSpeller};
use super::legacy_logprobs::LegacyWriter;
use super::logprob_entries::{self, EntryStyle, Listing};
use super::prompt_logprobs;
use super::reply_shape::{ReplyNames, ReplyShape};
use super::usage::finish;
use crate::error::ApiError;
use crate::model_text::ModelText;
use crate::reply::PromptEvent;

/// The completions of one request.
#[derive(Debug)]
pub(crate) struct CompletionShape {
    names: ReplyNames,
    text: Arc<ModelText>,
    style: Option<EntryStyle>,
    /// Alternatives per token.
    num_top: u32,
    logprobs_end: bool,
    logprobs_content: bool,
    echo: bool,
    return_token_ids: bool,
    include_usage: bool,
    prompt_logprobs: Option<u32>,
    choices_per_prompt: usize,
    prompts: Vec<PromptState>,
    /// By choice: where its next text begins, in code points from the start of the prompt.
    offsets: Vec<usize>,
    /// By choice: whether a token of its reply stands in the arrays.
    have_replied: Vec<bool>,
    /// By choice: what it is so far; in a stream only what it begins with.
    choices: Vec<CompletionChoice>,
    receipt: Option<Value>,
}

/// How far a prompt is scored.
#[derive(Debug)]
struct PromptState {
    speller: PromptSpeller,
    /// Whether nothing of it is in the arrays yet.
    is_at_start: bool,
    /// Tokens that are still to be echoed with their scores.
    num_unscored: usize,
    /// What choices had to say before the prompt was through.
    held: Vec<PromptEvent>,
    /// For `prompt_logprobs`.
    scored: Vec<PromptToken>,
}

impl CompletionShape {
    pub(crate) fn new(
        names: ReplyNames,
        asked: &CompletionRequest,
        prompts: &[CompletionPrompt],
        text: &Arc<ModelText>,
    ) -> Result<Self, ApiError> {
        let generation = &asked.generation;
        let logprobs = generation.logprobs;
        let choices_per_prompt = usize::try_from(generation.n).unwrap_or(usize::MAX);
        let num_choices = prompts.len() * choices_per_prompt;
        let mut shape = Self {
            names,
            text: Arc::clone(text),
            style: EntryStyle::of(generation, Listing::Named),
            num_top: logprobs.map_or(0, |logprobs| logprobs.top_logprobs),
            logprobs_end: logprobs.is_some_and(|logprobs| logprobs.end),
            logprobs_content: asked.logprobs_content,
            echo: asked.echo,
            return_token_ids: generation.return_token_ids,
            include_usage: generation.stream.is_some_and(|stream| stream.include_usage),
            prompt_logprobs: generation.prompt_logprobs,
            choices_per_prompt,
            prompts: Vec::with_capacity(prompts.len()),
            offsets: Vec::with_capacity(num_choices),
            have_replied: vec![false; num_choices],
            choices: Vec::with_capacity(num_choices),
            receipt: None,
        };
        for prompt in prompts {
            shape.open(prompt)?;
        }
        Ok(shape)
    }

    /// Whether echoed prompts have scores.
    fn echoes_scores(&self) -> bool {
        self.echo && self.style.is_some()
    }

    /// Begins the choices of the next prompt.
    fn open(&mut self, prompt: &CompletionPrompt) -> Result<(), ApiError> {
        let prompt_text = prompt.text(&self.text);
        let mut state = PromptState {
            speller: prompt.speller(),
            is_at_start: true,
            num_unscored: 0,
            held: Vec::new(),
            scored: Vec::new(),
        };
        let begins_at = if self.echo {
            0
        } else {
            prompt_text.chars().count()
        };
        let mut piece = CompletionChoice {
            logprobs: self.style.map(|_| CompletionLogprobs {
                content: self.logprobs_content.then(Vec::new),
                ..CompletionLogprobs::default()
            }),
            prompt_token_ids: self.return_token_ids.then(|| prompt.token_ids.clone()),
            token_ids: self.return_token_ids.then(Vec::new),
            ..CompletionChoice::default()
        };
        let mut offset = begins_at;
        if self.echoes_scores() {
            let first = TokenOutput {
                token_id: prompt.token_ids[0],
                logprobs: None,
            };
            state.num_unscored = prompt.token_ids.len() - 1;
            let entries = state.push([first], &self.text);
            let (text, arrays) = self.write_prompt(&mut state, &entries, &mut offset)?;
            piece.text = text;
            piece.logprobs = Some(arrays);
        } else if self.echo {
            piece.text = prompt_text;
        }
        for _ in 0..self.choices_per_prompt {
            self.offsets.push(offset);
            self.choices.push(CompletionChoice {
                index: self.choices.len(),
                ..piece.clone()
            });
        }
        self.prompts.push(state);
        Ok(())
    }

    /// Text and arrays of echoed entries.
    fn write_prompt(
        &self,
        state: &mut PromptState,
        entries: &[Entry],
        offset: &mut usize,
    ) -> Result<(String, CompletionLogprobs), ApiError> {
        let Some(mut writer) = self.writer(*offset) else {
            return Ok((spell(entries), CompletionLogprobs::default()));
        };
        for entry in entries {
            if state.is_at_start {
                writer.push_first(entry);
                state.is_at_start = false;
            } else {
                writer.push(entry)?;
            }
        }
        *offset = writer.offset;
        Ok((spell(entries), writer.arrays))
    }

    fn writer(&self, offset: usize) -> Option<LegacyWriter<'_>> {
        self.style.map(|style| LegacyWriter {
            style,
            num_top: self.num_top,
            with_content: self.logprobs_content,
            text: &self.text,
            offset,
            arrays: CompletionLogprobs::default(),
        })
    }

    /// The pieces that an event adds to its choices.
    fn pieces(&mut self, event: PromptEvent) -> Result<Vec<CompletionChoice>, ApiError> {
        let prompt_index = event.prompt_index;
        let Some(state) = self.prompts.get_mut(prompt_index) else {
            return Err(ApiError::Internal(format!(
                "an event of prompt {prompt_index}"
            )));
        };
        match event.event {
            OutputEvent::Prompt { tokens } => self.prompt_pieces(prompt_index, tokens),
            // Choices after the first do not wait for the prompt's scores.
            OutputEvent::Delta { .. } | OutputEvent::Finished { .. } if state.num_unscored > 0 => {
                state.held.push(event);
                Ok(Vec::new())
            }
            OutputEvent::Delta {
                choice_index,
                entries,
            } => {
                let index = self.index(prompt_index, choice_index)?;
                Ok(self.delta_piece(index, &entries)?.into_iter().collect())
            }
            OutputEvent::Finished {
                choice_index,
                reason,
                end,
                ..
            } => {
                let index = self.index(prompt_index, choice_index)?;
                Ok(vec![self.finish_piece(index, &reason, end.as_ref())?])
            }
            OutputEvent::Failed(error) => Err(error.into()),
        }
    }

    fn index(&self, prompt_index: usize, choice_index: u32) -> Result<usize, ApiError> {
        usize::try_from(choice_index)
            .ok()
            .filter(|choice_index| *choice_index < self.choices_per_prompt)
            .map(|choice_index| prompt_index * self.choices_per_prompt + choice_index)
            .ok_or_else(|| ApiError::Internal(format!("the engine sent choice {choice_index}")))
    }

    /// The echo of scored tokens, for each choice of the prompt, and what waited for the last of them.
    fn prompt_pieces(
        &mut self,
        prompt_index: usize,
        tokens: Vec<PromptToken>,
    ) -> Result<Vec<CompletionChoice>, ApiError> {
        if self.prompt_logprobs.is_some() {
            self.prompts[prompt_index].scored.extend_from_slice(&tokens);
        }
        if !self.echoes_scores() {
            return Ok(Vec::new());
        }
        let mut state = std::mem::replace(&mut self.prompts[prompt_index], PromptState::through());
        let num_tokens = tokens.len();
        if num_tokens > state.num_unscored {
            return Err(ApiError::Internal(
                "more scores than prompt tokens".to_owned(),
            ));
        }
        state.num_unscored -= num_tokens;
        let outputs = tokens.into_iter().map(|token| TokenOutput {
            token_id: token.token_id,
            logprobs: Some(token.logprobs),
        });
        let entries = state.push(outputs, &self.text);
        let first = prompt_index * self.choices_per_prompt;
        let mut offset = self.offsets[first];
        let (text, arrays) = self.write_prompt(&mut state, &entries, &mut offset)?;
        let indices = first..first + self.choices_per_prompt;
        self.offsets[indices.clone()].fill(offset);
        let mut pieces: Vec<CompletionChoice> = indices
            .map(|index| CompletionChoice {
                index,
                text: text.clone(),
                logprobs: Some(arrays.clone()),
                ..CompletionChoice::default()
            })
            .collect();
        let held = if state.num_unscored == 0 {
            std::mem::take(&mut state.held)
        } else {
            Vec::new()
        };
        self.prompts[prompt_index] = state;
        for event in held {
            pieces.extend(self.pieces(event)?);
        }
        Ok(pieces)
    }

    /// Released entries; `None` where they would say nothing.
    fn delta_piece(
        &mut self,
        index: usize,
        entries: &[Entry],
    ) -> Result<Option<CompletionChoice>, ApiError> {
        let text = spell(entries);
        let mut logprobs = None;
        if let Some(mut writer) = self.writer(self.offsets[index]) {
            for entry in entries {
                writer.push(entry)?;
            }
            logprobs = Some(writer.arrays);
        }
        self.offsets[index] += text.chars().count();
        self.have_replied[index] |= !entries.is_empty();
        if text.is_empty() && logprobs.is_none() && !self.return_token_ids {
            return Ok(None);
        }
        let token_ids = || entries.iter().map(|entry| entry.output.token_id).collect();
        Ok(Some(CompletionChoice {
            index,
            text,
            logprobs,
            token_ids: self.return_token_ids.then(token_ids),
            ..CompletionChoice::default()
        }))
    }

    fn finish_piece(
        &self,
        index: usize,
        reason: &engine::FinishReason,
        end: Option<&TokenOutput>,
    ) -> Result<CompletionChoice, ApiError> {
        let (finish_reason, stop_reason) = finish(reason, 0);
        let mut logprobs = None;
        if let Some(mut writer) = self.writer(self.offsets[index]) {
            let has_no_place = match reason {
                engine::FinishReason::EndToken(_) => true,
                // A stop string that takes the whole reply with it.
                engine::FinishReason::StopString(_) => !self.have_replied[index],
                engine::FinishReason::Length => false,
            };
            if let (true, true, Some(output)) = (self.echo, has_no_place, end) {
                writer.push(&Entry {
                    output: output.clone(),
                    channel: Channel::Content,
                    is_continuation: false,
                    bytes: Vec::new(),
                    text: String::new(),
                    calls: Vec::new(),
                })?;
            }
            if self.logprobs_end {
                let end = end.map(|output| logprob_entries::end(output, writer.style, &self.text));
                writer.arrays.end = Some(end.transpose()?);
            }
            logprobs =
                Some(writer.arrays).filter(|arrays| *arrays != CompletionLogprobs::default());
        }
        Ok(CompletionChoice {
            index,
            logprobs,
            finish_reason: Some(finish_reason),
            stop_reason,
            ..CompletionChoice::default()
        })
    }

    fn object(
        &self,
        choices: Vec<CompletionChoice>,
        usage: Option<Option<Usage>>,
    ) -> TextCompletion {
        TextCompletion {
            id: self.names.id.clone(),
            object: "text_completion".to_owned(),
            created: self.names.created,
            model: self.names.model.clone(),
            choices,
            usage,
            system_fingerprint: self.names.system_fingerprint.clone(),
            seed: self.names.seed,
            logprobs_mode: self.style.map(|style| style.mode),
            receipt: None,
        }
    }

    fn chunk(&self, piece: CompletionChoice) -> TextCompletion {
        self.object(vec![piece], self.include_usage.then_some(None))
    }
}

impl PromptState {
    /// Stands in while the state is out of its place.
    fn through() -> Self {
        Self {
            speller: PromptSpeller::default(),
            is_at_start: false,
            num_unscored: 0,
            held: Vec::new(),
            scored: Vec::new(),
        }
    }

    /// Spells tokens; all that is left with the last one.
    fn push(
        &mut self,
        outputs: impl IntoIterator<Item = TokenOutput>,
        text: &ModelText,
    ) -> Vec<Entry> {
        let mut entries = Vec::new();
        for output in outputs {
            entries.append(&mut self.speller.push(output, text));
        }
        if self.num_unscored == 0 {
            entries.append(&mut self.speller.finish());
        }
        entries
    }
}

impl ReplyShape for CompletionShape {
    type Chunk = TextCompletion;
    type Whole = TextCompletion;

    fn opening(&mut self) -> Vec<TextCompletion> {
        let pieces = std::mem::take(&mut self.choices);
        let says_something =
            |piece: &CompletionChoice| self.echo || piece.prompt_token_ids.is_some();
        let pieces = pieces.into_iter().filter(says_something);
        pieces.map(|piece| self.chunk(piece)).collect()
    }

    fn chunks(&mut self, event: PromptEvent) -> Result<Vec<TextCompletion>, ApiError> {
        let pieces = self.pieces(event)?;
        Ok(pieces.into_iter().map(|piece| self.chunk(piece)).collect())
    }

    fn receive_receipt(&mut self, receipt: Value) {
        self.receipt = Some(receipt);
    }

    fn last_chunks(&mut self, usage: Usage) -> Vec<TextCompletion> {
        let receipt = self.receipt.take();
        let is_told = self.include_usage || receipt.is_some();
        let last = is_told.then(|| TextCompletion {
            receipt,
            ..self.object(Vec::new(), self.include_usage.then_some(Some(usage)))
        });
        last.into_iter().collect()
    }

    fn add(&mut self, event: PromptEvent) -> Result<(), ApiError> {
        for piece in self.pieces(event)? {
            append(&mut self.choices[piece.index], piece);
        }
        Ok(())
    }

    fn whole(mut self, usage: Usage) -> Result<TextCompletion, ApiError> {
        let mut choices = std::mem::take(&mut self.choices);
        if let Some(unfinished) = choices.iter().find(|choice| choice.finish_reason.is_none()) {
            let detail = format!("choice {} never finished", unfinished.index);
            return Err(ApiError::Internal(detail));
        }
        if let Some(num_top) = self.prompt_logprobs {
            let by_prompt = choices.chunks_mut(self.choices_per_prompt);
            for (state, choices) in std::iter::zip(&self.prompts, by_prompt) {
                let written = prompt_logprobs::write(&state.scored, num_top, &self.text)?;
                for choice in choices {
                    choice.prompt_logprobs = Some(written.clone());
                }
            }
        }
        Ok(TextCompletion {
            receipt: self.receipt.take(),
            ..self.object(choices, Some(Some(usage)))
        })
    }
}

/// Appends a piece to its choice.
fn append(choice: &mut CompletionChoice, piece: CompletionChoice) {
    choice.text.push_str(&piece.text);
    if let (Some(all), Some(arrays)) = (&mut choice.logprobs, piece.logprobs) {
        all.tokens.extend(arrays.tokens);
        all.token_logprobs.extend(arrays.token_logprobs);
        all.top_logprobs.extend(arrays.top_logprobs);
        all.text_offset.extend(arrays.text_offset);
        if let (Some(content), Some(more)) = (&mut all.content, arrays.content) {
            content.extend(more);
        }
        all.end = arrays.end.or(all.end.take());
    }
    if let (Some(all), Some(ids)) = (&mut choice.token_ids, piece.token_ids) {
        all.extend(ids);
    }
    choice.finish_reason = piece.finish_reason.or(choice.finish_reason);
    choice.stop_reason = piece.stop_reason.or(choice.stop_reason.take());
}

fn spell(entries: &[Entry]) -> String {
    entries.iter().map(|entry| entry.text.as_str()).collect()
}
