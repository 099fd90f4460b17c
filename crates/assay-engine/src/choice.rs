//! One choice of a request while it is generated: its text, its count, and when it ends.

use assay_constrain::{Constraint, MatchError, TokenMask};
use assay_models::TokenId;

use crate::guide::Guide;
use crate::output::{Entry, FinishReason, Pushed, TextEnd, TextPipeline, TokenOutput};
use crate::request::Request;
use crate::sampler::{self, SeenTokens};
use crate::token_bytes::TokenBytes;

/// State of one choice, from its first draw to its end.
#[derive(Debug)]
pub(crate) struct Choice {
    text: TextPipeline,
    /// Filled only where the sampling parameters look at it.
    pub(crate) seen: SeenTokens,
    guide: Guide,
    num_output_tokens: u32,
}

/// What one drawn token did to its choice.
#[derive(Debug)]
pub(crate) struct Advance {
    /// Entries that are final now.
    pub(crate) entries: Vec<Entry>,
    /// Set if the choice ended.
    pub(crate) finish: Option<Finish>,
}

/// How a choice ended.
#[derive(Debug)]
pub(crate) struct Finish {
    pub(crate) reason: FinishReason,
    pub(crate) end: Option<TokenOutput>,
    pub(crate) completion_tokens: u32,
    pub(crate) reasoning_tokens: u32,
}

impl Choice {
    pub(crate) fn new(request: &Request) -> Self {
        let seen = if sampler::needs_seen_tokens(&request.sampling) {
            SeenTokens::of_prompt(&request.prompt_token_ids)
        } else {
            SeenTokens::default()
        };
        Self {
            text: TextPipeline::with_format(&request.stop, &request.format),
            seen,
            guide: Guide::new(request),
            num_output_tokens: 0,
        }
    }

    /// Tokens drawn so far.
    pub(crate) fn num_output_tokens(&self) -> u32 {
        self.num_output_tokens
    }

    /// Computes what may be drawn next, where not everything may.
    pub(crate) fn prepare_mask(&mut self, request: &Request, token_bytes: &TokenBytes) {
        self.guide.prepare(request, &self.text, token_bytes);
    }

    /// What may be drawn next; `None` is everything.
    pub(crate) fn mask(&self) -> Option<&Result<TokenMask, MatchError>> {
        self.guide.mask()
    }

    /// Tells what guides the reply which token was drawn.
    pub(crate) fn accept(
        &mut self,
        token_id: TokenId,
        request: &Request,
        token_bytes: &TokenBytes,
    ) -> Result<(), MatchError> {
        self.guide
            .accept(token_id, request, &mut self.text, token_bytes)
    }

    /// Takes the drawn token through the text pipeline and decides whether the reply goes on.
    ///
    /// An end token spells nothing and has no entry. A stop string wins over `max_tokens` where one
    /// token brings both.
    pub(crate) fn advance(
        &mut self,
        request: &Request,
        output: TokenOutput,
        token_bytes: &TokenBytes,
    ) -> Advance {
        let token_id = output.token_id;
        self.count(request, token_id);
        let includes_end = request.logprobs.is_some_and(|params| params.include_end);
        let end_output = includes_end.then(|| output.clone());

        let ends_constraint =
            |constraint: &Constraint| constraint.end_token_ids().contains(&token_id);
        if request.end_token_ids.contains(&token_id)
            || request.constraint.as_ref().is_some_and(ends_constraint)
        {
            let reason = FinishReason::EndToken(token_id);
            return self.finish(TextEnd::Complete, reason, end_output);
        }
        match self.text.push(output, token_bytes.get(token_id)) {
            Pushed::Stopped { entries, stop } => Advance {
                entries,
                finish: Some(self.end(FinishReason::StopString(stop), end_output)),
            },
            Pushed::Continues(mut entries) if self.num_output_tokens >= request.max_tokens => {
                let mut last = self.finish(TextEnd::Truncated, FinishReason::Length, None);
                entries.append(&mut last.entries);
                Advance { entries, ..last }
            }
            Pushed::Continues(entries) => Advance {
                entries,
                finish: None,
            },
        }
    }

    /// The end of a choice that generates nothing: its prompt is scored.
    pub(crate) fn finish_scored(&self) -> Finish {
        self.end(FinishReason::Length, None)
    }

    fn count(&mut self, request: &Request, token_id: TokenId) {
        self.num_output_tokens += 1;
        if sampler::needs_seen_tokens(&request.sampling) {
            self.seen.push(token_id);
        }
    }

    /// Releases what the pipeline holds; a last U+FFFD may still complete a stop string.
    fn finish(
        &mut self,
        text_end: TextEnd,
        reason: FinishReason,
        end_output: Option<TokenOutput>,
    ) -> Advance {
        let (entries, reason) = match self.text.finish(text_end) {
            Pushed::Continues(entries) => (entries, reason),
            Pushed::Stopped { entries, stop } => (entries, FinishReason::StopString(stop)),
        };
        Advance {
            entries,
            finish: Some(self.end(reason, end_output)),
        }
    }

    fn end(&self, reason: FinishReason, end: Option<TokenOutput>) -> Finish {
        Finish {
            reason,
            end,
            completion_tokens: self.num_output_tokens,
            reasoning_tokens: self.text.num_reasoning_tokens(),
        }
    }
}
