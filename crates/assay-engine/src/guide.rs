//! What a choice may draw next: its constraint, once the reasoning is over; a budget that ends the reasoning; what a
//! call must be; the end after a call where one is all that may come.
//!
//! While a constraint waits for the end of the reasoning, no token may end the reply, and none may close the
//! reasoning and begin the content at once: the constraint sees every byte of the content. What is forced is
//! drawn like any other token, so it is reported with its raw score.

use std::collections::{BTreeMap, VecDeque};

use assay_constrain::{MatchError, Matcher, TokenMask};
use assay_models::TokenId;

use crate::output::format::TOOL_CALL_TAGS;
use crate::output::{ReasoningFormat, ReasoningState, TextPipeline};
use crate::request::Request;
use crate::token_bytes::TokenBytes;

/// The next draws of one choice.
#[derive(Debug)]
pub(crate) struct Guide {
    matcher: Option<Matcher>,
    content: Content,
    /// Tokens to be drawn, whatever the model would.
    forced: VecDeque<TokenId>,
    /// What may be drawn next; `None` until it is computed, or where everything may.
    next: Option<Next>,
    /// Follows the call that is being written, where calls are constrained.
    call: Option<Matcher>,
    /// Masks that keep a token from opening a call and going on within it, by what may be the begin of the tag; `None`
    /// where no token does.
    call_masks: BTreeMap<String, Option<TokenMask>>,
    /// Masks of a reasoning that a constraint follows, by how much of the closing tag stands at its end.
    reasoning_masks: Vec<Option<TokenMask>>,
}

/// Whether the constraint has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// Reasoning may come first, and line breaks after it.
    Ahead,
    /// A line break came after the reasoning; one is enough.
    Next,
    Begun,
}

/// The next draw.
#[derive(Clone, Debug)]
struct Next {
    mask: Option<Result<TokenMask, MatchError>>,
    stage: Stage,
}

/// Whose token is drawn next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Forced,
    /// The reasoning's, or anything where nothing is constrained.
    Free,
    /// The constraint's, or the first one of a tag that opens the reasoning.
    Opening,
    /// The constraint's, or line breaks that are dropped.
    Separator,
    /// The constraint's.
    Constrained,
    /// The call's.
    Call,
}

impl Guide {
    pub(crate) fn new(request: &Request) -> Self {
        Self {
            matcher: request.constraint.as_ref().map(Matcher::new),
            content: Content::Ahead,
            forced: VecDeque::new(),
            next: None,
            call: None,
            call_masks: BTreeMap::new(),
            reasoning_masks: Vec::new(),
        }
    }

    /// What may be drawn next; `None` is everything.
    pub(crate) fn mask(&self) -> Option<&Result<TokenMask, MatchError>> {
        self.next.as_ref()?.mask.as_ref()
    }

    /// Computes what may be drawn next. A choice that was preempted comes again without having drawn.
    pub(crate) fn prepare(
        &mut self,
        request: &Request,
        text: &TextPipeline,
        token_bytes: &TokenBytes,
    ) {
        let reasoning = request.format.reasoning.as_ref();
        let is_last_call = request.format.at_most_one_call && text.has_ended_call();
        let has_calls = request.format.call_constraint.is_some();
        let is_free = self.matcher.is_none() && reasoning.is_none() && !is_last_call && !has_calls;
        if self.next.is_some() || is_free {
            return;
        }
        if !text.is_in_call() {
            self.call = None;
        }
        if is_last_call && self.matcher.is_none() && self.forced.is_empty() {
            self.forced.extend(request.end_token_ids.first());
        }
        let state = text.reasoning();
        if let (Some(reasoning), ReasoningState::Open { .. }) = (reasoning, state)
            && self.forced.is_empty()
            && is_spent(reasoning, text)
        {
            self.forced.extend(&reasoning.close_token_ids);
        }
        let stage = match state {
            _ if !self.forced.is_empty() => Stage::Forced,
            _ if self.matcher.is_none() => self.call_stage(request, text),
            _ if self.content != Content::Ahead => Stage::Constrained,
            ReasoningState::Unopened => Stage::Opening,
            ReasoningState::Open { .. } => Stage::Free,
            ReasoningState::Over {
                drops_separators: true,
            } => Stage::Separator,
            ReasoningState::Over { .. } => Stage::Constrained,
        };
        let mask = match (stage, state) {
            (Stage::Forced, _) => self
                .forced
                .front()
                .map(|&id| Ok(TokenMask::of(id as usize + 1, [id]))),
            (Stage::Call, _) => self.call.as_mut().map(Matcher::compute_mask),
            (Stage::Free, _) if self.matcher.is_none() => has_calls
                .then(|| self.call_mask(text.held_text(), token_bytes))
                .flatten()
                .map(Ok),
            (Stage::Free, ReasoningState::Open { num_matched_bytes }) => reasoning
                .and_then(|format| {
                    self.reasoning_mask(format, request, num_matched_bytes, token_bytes)
                })
                .map(Ok),
            (Stage::Free, _) => None,
            (Stage::Opening, _) => {
                let first = reasoning.and_then(|format| format.open_token_ids.first());
                self.constraint_or(first.copied())
            }
            (Stage::Separator, _) => {
                let num_tokens = token_bytes.num_tokens();
                let ids = (0..).take(num_tokens);
                self.constraint_or(ids.filter(|&id| is_separator(token_bytes.get(id))))
            }
            (Stage::Constrained, _) => self.constraint_or(None),
        };
        self.next = Some(Next { mask, stage });
    }

    /// Takes the token that was drawn, before it goes into `text`.
    pub(crate) fn accept(
        &mut self,
        token_id: TokenId,
        request: &Request,
        text: &mut TextPipeline,
        token_bytes: &TokenBytes,
    ) -> Result<(), MatchError> {
        let stage = self.next.take().map_or(Stage::Free, |next| next.stage);
        if let (Stage::Call, Some(call)) = (stage, &mut self.call) {
            return call.accept(token_id);
        }
        let Some(matcher) = &mut self.matcher else {
            self.forced.pop_front();
            return Ok(());
        };
        match stage {
            Stage::Forced => {
                self.forced.pop_front();
                return Ok(());
            }
            Stage::Free | Stage::Call => return Ok(()),
            Stage::Opening => {
                let open = request.format.reasoning.iter();
                let open: Vec<TokenId> = open
                    .flat_map(|format| format.open_token_ids.clone())
                    .collect();
                if open.first() == Some(&token_id) && !matcher.compute_mask()?.allows(token_id) {
                    self.forced.extend(&open[1..]);
                    return Ok(());
                }
            }
            Stage::Separator if is_separator(token_bytes.get(token_id)) => {
                self.content = Content::Next;
                return Ok(());
            }
            Stage::Separator | Stage::Constrained => {}
        }
        matcher.accept(token_id)?;
        if self.content != Content::Begun {
            text.begin_content();
            self.content = Content::Begun;
        }
        Ok(())
    }

    /// Begins to follow a call where one begins.
    fn call_stage(&mut self, request: &Request, text: &TextPipeline) -> Stage {
        if self.call.is_none() && text.is_at_call() {
            self.call = request.format.call_constraint.as_ref().map(Matcher::new);
        }
        if self.call.is_some() {
            Stage::Call
        } else {
            Stage::Free
        }
    }

    /// Leaves out the tokens that would complete the opening tag, whose begin is `tail`, and go on within the call.
    fn call_mask(&mut self, tail: String, token_bytes: &TokenBytes) -> Option<TokenMask> {
        let mask = self.call_masks.entry(tail).or_insert_with_key(|tail| {
            let tag = TOOL_CALL_TAGS.0.as_bytes();
            let num_tokens = token_bytes.num_tokens();
            let goes_on = |id: &TokenId| {
                let rest = after_tag(tail.as_bytes(), token_bytes.get(*id), tag);
                rest.is_some_and(|rest| !rest.is_empty())
            };
            let ids = || (0..).take(num_tokens);
            ids()
                .any(|id| goes_on(&id))
                .then(|| TokenMask::of(num_tokens, ids().filter(|id| !goes_on(id))))
        });
        mask.clone()
    }

    /// What the constraint allows, and `more`.
    fn constraint_or(
        &mut self,
        more: impl IntoIterator<Item = TokenId>,
    ) -> Option<Result<TokenMask, MatchError>> {
        let allowed = self.matcher.as_mut()?.compute_mask();
        Some(allowed.map(|mask| mask.with(more)))
    }

    /// Allows what goes on with the reasoning or closes it; `None` where no constraint follows.
    fn reasoning_mask(
        &mut self,
        format: &ReasoningFormat,
        request: &Request,
        num_matched_bytes: usize,
        token_bytes: &TokenBytes,
    ) -> Option<TokenMask> {
        let constraint = request.constraint.as_ref()?;
        let close = format.tags.close.as_bytes();
        let num_matched_bytes = num_matched_bytes.min(close.len() - 1);
        self.reasoning_masks.resize(close.len(), None);
        let mask = self.reasoning_masks[num_matched_bytes].get_or_insert_with(|| {
            let tail = &close[..num_matched_bytes];
            let ends = |id: &TokenId| {
                constraint.end_token_ids().contains(id) || request.end_token_ids.contains(id)
            };
            let num_tokens = token_bytes.num_tokens();
            let ids = (0..).take(num_tokens);
            let allowed =
                ids.filter(|&id| !ends(&id) && !begins_content(tail, token_bytes.get(id), close));
            TokenMask::of(num_tokens, allowed)
        });
        Some(mask.clone())
    }
}

fn is_spent(format: &ReasoningFormat, text: &TextPipeline) -> bool {
    let num_uncounted = if format.is_open {
        0
    } else {
        u32::try_from(format.open_token_ids.len()).unwrap_or(u32::MAX)
    };
    let num_tokens = text.num_reasoning_tokens().saturating_sub(num_uncounted);
    format.budget.is_some_and(|budget| num_tokens >= budget)
}

/// Whether a token is all line breaks.
fn is_separator(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| matches!(byte, b'\n' | b'\r'))
}

/// Whether `bytes` after `tail` complete the closing tag and go on with more than line breaks.
fn begins_content(tail: &[u8], bytes: &[u8], close: &[u8]) -> bool {
    let rest = after_tag(tail, bytes, close);
    rest.is_some_and(|rest| !rest.is_empty() && !is_separator(&rest))
}

/// What follows `tag` in `bytes` after `tail`; `None` where they do not complete it.
fn after_tag(tail: &[u8], bytes: &[u8], tag: &[u8]) -> Option<Vec<u8>> {
    let last = tag.last()?;
    if !bytes.contains(last) {
        return None;
    }
    let text = [tail, bytes].concat();
    let begin = text.windows(tag.len()).position(|window| window == tag)?;
    Some(text[begin + tag.len()..].to_vec())
}
