//! Engine entries to the four arrays of completions. One entry gives one element of each; nothing is looked up
//! elsewhere.

use std::collections::BTreeSet;

use assay_api::openai::{CompletionLogprobs, LogprobEntry, TopLogprobs};
use assay_engine::{Entry, TokenOutput, TopLogprob};

use super::logprob_entries::{EntryStyle, Listing, finite, missing_scores, token_id_text, visible};
use crate::error::ApiError;
use crate::model_text::ModelText;

/// Arrays in the making.
#[derive(Debug)]
pub(crate) struct LegacyWriter<'a> {
    pub(crate) style: EntryStyle,
    pub(crate) num_top: u32,
    /// Whether entries are written besides.
    pub(crate) with_content: bool,
    pub(crate) text: &'a ModelText,
    /// Where the next text begins, in code points from the start of the prompt.
    pub(crate) offset: usize,
    pub(crate) arrays: CompletionLogprobs,
}

impl LegacyWriter<'_> {
    /// Appends a token of the text.
    pub(crate) fn push(&mut self, entry: &Entry) -> Result<(), ApiError> {
        let top = self.top_logprobs(&entry.output)?;
        let logprobs = entry.output.logprobs.as_ref();
        let logprob = logprobs.ok_or_else(|| missing_scores(entry.output.token_id))?;
        let logprob = finite(logprob.logprob, self.style.mode)?;
        if self.with_content {
            let written = visible(entry, self.style, self.text)?;
            self.push_content(Some(written));
        }
        self.push_element(entry.output.token_id, &entry.text, Some(logprob), Some(top));
        Ok(())
    }

    /// Appends the prompt's first token, which has no score.
    pub(crate) fn push_first(&mut self, entry: &Entry) {
        if self.with_content {
            self.push_content(None);
        }
        self.push_element(entry.output.token_id, &entry.text, None, None);
    }

    fn push_content(&mut self, entry: Option<LogprobEntry>) {
        self.arrays.content.get_or_insert_default().push(entry);
    }

    fn push_element(
        &mut self,
        token_id: u32,
        text: &str,
        logprob: Option<f64>,
        top: Option<TopLogprobs>,
    ) {
        let spelled = if self.style.as_token_ids {
            token_id_text(token_id)
        } else {
            text.to_owned()
        };
        let arrays = &mut self.arrays;
        arrays.tokens.push(spelled);
        arrays.token_logprobs.push(logprob);
        arrays.top_logprobs.push(top);
        arrays.text_offset.push(self.offset);
        self.offset += text.chars().count();
    }

    /// The named tokens where some are named, else the most likely ones and the chosen one.
    fn top_logprobs(&self, output: &TokenOutput) -> Result<TopLogprobs, ApiError> {
        let missing = || missing_scores(output.token_id);
        let scores = output.logprobs.as_ref().ok_or_else(missing)?;
        let chosen = TopLogprob {
            token_id: output.token_id,
            logprob: scores.logprob,
        };
        let listed: Vec<TopLogprob> = if self.style.listing != Listing::MostLikely {
            let named = scores.named.as_ref().ok_or_else(missing)?;
            named.candidates.clone()
        } else {
            let num_top = usize::try_from(self.num_top).unwrap_or(usize::MAX);
            let top = scores.top_logprobs.iter().take(num_top).copied();
            let mut listed: Vec<_> = top.collect();
            if listed.iter().all(|one| one.token_id != chosen.token_id) {
                listed.push(chosen);
            }
            listed
        };
        let mut keys = BTreeSet::new();
        let mut written = Vec::with_capacity(listed.len());
        for TopLogprob { token_id, logprob } in listed {
            let text = self.text.spell(token_id).0;
            // Of two tokens that print alike the likelier, which comes first, keeps the text.
            let is_free = !self.style.as_token_ids && keys.insert(text.clone());
            let key = if is_free {
                text
            } else {
                token_id_text(token_id)
            };
            written.push((key, finite(logprob, self.style.mode)?));
        }
        Ok(TopLogprobs(written))
    }
}
