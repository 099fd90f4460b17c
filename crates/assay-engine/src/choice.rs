//! One choice of a request while it is generated: its text, its count, and when it ends.

use assay_constrain::{Constraint, MatchError, Matcher, TokenMask};
use assay_models::TokenId;

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
    constrained: Option<Constrained>,
    num_output_tokens: u32,
}

/// A choice's place in its request's constraint.
#[derive(Debug)]
struct Constrained {
    matcher: Matcher,
    /// What may follow the last token; `None` until it is computed for the next draw.
    mask: Option<Result<TokenMask, MatchError>>,
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
}

impl Choice {
    pub(crate) fn new(request: &Request) -> Self {
        let seen = if sampler::needs_seen_tokens(&request.sampling) {
            SeenTokens::of_prompt(&request.prompt_token_ids)
        } else {
            SeenTokens::default()
        };
        Self {
            text: TextPipeline::new(&request.stop),
            seen,
            constrained: request.constraint.as_ref().map(|constraint| Constrained {
                matcher: Matcher::new(constraint),
                mask: None,
            }),
            num_output_tokens: 0,
        }
    }

    /// Tokens drawn so far.
    pub(crate) fn num_output_tokens(&self) -> u32 {
        self.num_output_tokens
    }

    /// Computes what may be drawn next, where a constraint says so.
    pub(crate) fn prepare_mask(&mut self) {
        if let Some(Constrained { matcher, mask }) = &mut self.constrained {
            // A preempted choice comes again without having drawn.
            mask.get_or_insert_with(|| matcher.compute_mask());
        }
    }

    /// What may be drawn next; `None` is everything.
    pub(crate) fn mask(&self) -> Option<&Result<TokenMask, MatchError>> {
        self.constrained.as_ref()?.mask.as_ref()
    }

    /// Tells the constraint which token was drawn.
    pub(crate) fn accept(&mut self, token_id: TokenId) -> Result<(), MatchError> {
        let Some(Constrained { matcher, mask }) = &mut self.constrained else {
            return Ok(());
        };
        *mask = None;
        matcher.accept(token_id)
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
        }
    }
}
