//! Tells the parts of a reply apart, character by character.
//!
//! Every character gets one [`Fate`], in order, as soon as nothing later can change it: at once, but for what may
//! be the begin of a tag or of a call. Tags and the separators after them are syntax: they spell nothing.

mod call;
mod fate;
mod json_call;
mod tag;
mod xml_call;

use std::collections::VecDeque;

use super::format::{Channel, PYTHON_TAG, ReplyFormat, TOOL_CALL_TAGS, ToolCallFormat};
use call::{Call, CallStep};
pub(crate) use fate::ReasoningState;
pub(super) use fate::{Decision, Fate};
use json_call::JsonCall;
use tag::{TagMatch, match_tag};
use xml_call::XmlCall;

/// Blanks that may stand before an opening tag or a bare call; more are content.
const MAX_BLANKS: usize = 64;

/// Parser of one reply.
#[derive(Clone, Debug)]
pub(super) struct ReplyParser {
    format: ReplyFormat,
    state: State,
    /// Characters without a fate.
    held: VecDeque<char>,
    has_ended_call: bool,
}

#[derive(Clone, Debug)]
enum State {
    /// Nothing but blanks came: reasoning may open.
    Start,
    Reasoning,
    /// Line breaks are dropped until something else comes.
    Separator(Channel),
    /// Bare calls may only stand where the content begins.
    Content {
        is_begin: bool,
    },
    /// What is held may be the begin of a call; its first `num_syntax` characters are syntax then.
    Header {
        num_syntax: usize,
        num_read: usize,
        call: Call,
    },
    Body(Call),
    /// A bare call is over: blanks and semicolons are dropped.
    AfterBareCall,
}

impl ReplyParser {
    /// At the begin of a reply.
    pub(super) fn new(format: &ReplyFormat) -> Self {
        let state = match &format.reasoning {
            Some(reasoning) if reasoning.is_open => State::Separator(Channel::Reasoning),
            Some(_) => State::Start,
            None => State::Content { is_begin: true },
        };
        Self {
            format: format.clone(),
            state,
            held: VecDeque::new(),
            has_ended_call: false,
        }
    }

    /// Whether a call is complete.
    pub(super) fn has_ended_call(&self) -> bool {
        self.has_ended_call
    }

    /// Takes the next character; the fates that are certain now.
    pub(super) fn push(&mut self, char: char) -> Vec<Decision> {
        self.held.push_back(char);
        let mut decisions = Vec::new();
        while !self.held.is_empty() && self.step(&mut decisions) {}
        decisions
    }

    /// No character follows: the fates of all that is held.
    pub(super) fn finish(&mut self) -> Vec<Decision> {
        let fate = match self.state {
            State::Reasoning => Fate::text(Channel::Reasoning),
            State::Body(_) => Fate::text(Channel::ToolCall),
            _ => Fate::CONTENT,
        };
        let mut decisions = Vec::new();
        self.take(self.held.len(), fate, &mut decisions);
        decisions
    }

    /// Whether all that is held is a tag that opens a call.
    pub(super) fn is_at_call(&self) -> bool {
        matches!(self.state, State::Header { num_syntax, .. } if num_syntax == self.held.len())
    }

    /// Whether what comes next is a call's, or may be.
    pub(super) fn is_in_call(&self) -> bool {
        matches!(self.state, State::Header { .. } | State::Body(_))
    }

    /// The text that has no fate yet.
    pub(super) fn held(&self) -> String {
        self.held.iter().collect()
    }

    /// Whatever comes next is content: no tag opens, no separator is dropped.
    pub(super) fn begin_content(&mut self) {
        if let State::Start | State::Separator(Channel::Content) = self.state {
            self.state = State::Content { is_begin: true };
        }
    }

    pub(super) fn reasoning(&self) -> ReasoningState {
        match self.state {
            State::Start => ReasoningState::Unopened,
            State::Reasoning => ReasoningState::Open {
                // Tags are matched from the held text's begin on.
                num_matched_bytes: self.held.iter().map(|char| char.len_utf8()).sum(),
            },
            State::Separator(Channel::Reasoning) => ReasoningState::Open {
                num_matched_bytes: 0,
            },
            State::Separator(_) => ReasoningState::Over {
                drops_separators: true,
            },
            _ => ReasoningState::Over {
                drops_separators: false,
            },
        }
    }

    /// Decides on the first held characters; false if more must come.
    fn step(&mut self, decisions: &mut Vec<Decision>) -> bool {
        match &mut self.state {
            State::Start => self.step_start(decisions),
            State::Reasoning => self.step_reasoning(decisions),
            State::Separator(channel) => {
                let channel = *channel;
                if self.starts_with(&['\n', '\r']) {
                    self.take(1, Fate::syntax(channel), decisions);
                } else {
                    self.state = match channel {
                        Channel::Reasoning => State::Reasoning,
                        Channel::Content | Channel::ToolCall => State::Content { is_begin: true },
                    };
                }
                true
            }
            State::Content { is_begin } => {
                let is_begin = *is_begin;
                self.step_content(is_begin, decisions)
            }
            State::Header { .. } => self.step_header(decisions),
            State::Body(_) => self.step_body(decisions),
            State::AfterBareCall => {
                if self.starts_with(&['\n', '\r', ' ', '\t', ';']) {
                    self.take(1, Fate::syntax(Channel::Content), decisions);
                } else {
                    self.state = State::Content { is_begin: true };
                }
                true
            }
        }
    }

    fn step_start(&mut self, decisions: &mut Vec<Decision>) -> bool {
        let Some(reasoning) = &self.format.reasoning else {
            self.state = State::Content { is_begin: true };
            return true;
        };
        let num_blanks = self.num_blanks();
        let num_tag_chars = reasoning.tags.open.chars().count();
        match match_tag(self.held.iter().skip(num_blanks), reasoning.tags.open) {
            TagMatch::Open if num_blanks <= MAX_BLANKS => false,
            TagMatch::Whole if num_blanks <= MAX_BLANKS => {
                let fate = Fate::syntax(Channel::Reasoning);
                self.take(num_blanks + num_tag_chars, fate, decisions);
                self.state = State::Separator(Channel::Reasoning);
                true
            }
            _ => {
                self.state = State::Content { is_begin: true };
                true
            }
        }
    }

    fn step_reasoning(&mut self, decisions: &mut Vec<Decision>) -> bool {
        let Some(reasoning) = &self.format.reasoning else {
            self.state = State::Content { is_begin: true };
            return true;
        };
        let tag = reasoning.tags.close;
        self.step_tag(
            tag,
            Channel::Reasoning,
            State::Separator(Channel::Content),
            decisions,
        )
    }

    /// Takes what comes before `closing_tag` as text of `channel`, and the tag itself as syntax.
    fn step_tag(
        &mut self,
        closing_tag: &str,
        channel: Channel,
        after: State,
        decisions: &mut Vec<Decision>,
    ) -> bool {
        match match_tag(self.held.iter(), closing_tag) {
            TagMatch::Open => false,
            TagMatch::Whole => {
                let num_chars = closing_tag.chars().count();
                self.take(num_chars, Fate::syntax(Channel::Content), decisions);
                self.state = after;
                true
            }
            TagMatch::No => {
                self.take(1, Fate::text(channel), decisions);
                true
            }
        }
    }

    fn step_content(&mut self, is_begin: bool, decisions: &mut Vec<Decision>) -> bool {
        let (num_syntax, call) = match &self.format.tool_calls {
            None => {
                self.take(self.held.len(), Fate::CONTENT, decisions);
                return true;
            }
            Some(ToolCallFormat::Llama3Json { names }) => {
                let found = is_begin.then(|| self.find_bare_call());
                match found {
                    Some(TagMatch::Open) => return false,
                    Some(TagMatch::Whole) => {
                        let call = Call::Json(JsonCall::new("parameters", Some(names.clone())));
                        let num_syntax = self.held.len() - 1;
                        (num_syntax, call)
                    }
                    Some(TagMatch::No) | None => {
                        self.take(self.held.len(), Fate::CONTENT, decisions);
                        self.state = State::Content { is_begin: false };
                        return true;
                    }
                }
            }
            Some(tagged) => match match_tag(self.held.iter(), TOOL_CALL_TAGS.0) {
                TagMatch::Open => return false,
                TagMatch::No => {
                    self.take(1, Fate::CONTENT, decisions);
                    self.state = State::Content { is_begin: false };
                    return true;
                }
                TagMatch::Whole => {
                    let call = match tagged {
                        ToolCallFormat::QwenXml => Call::Xml(XmlCall::default()),
                        _ => Call::Json(JsonCall::new("arguments", None)),
                    };
                    (TOOL_CALL_TAGS.0.chars().count(), call)
                }
            },
        };
        self.state = State::Header {
            num_syntax,
            num_read: num_syntax,
            call,
        };
        true
    }

    /// Whether blanks, a tag and an opening brace are held, and no more. Called for every character that comes.
    fn find_bare_call(&self) -> TagMatch {
        let num_blanks = self.num_blanks();
        let rest = || self.held.iter().skip(num_blanks);
        let num_tag_chars = match match_tag(rest(), PYTHON_TAG) {
            TagMatch::Open => return TagMatch::Open,
            TagMatch::Whole => PYTHON_TAG.chars().count(),
            TagMatch::No => 0,
        };
        let mut rest = rest().skip(num_tag_chars).skip_while(|char| **char == ' ');
        match rest.next() {
            _ if self.held.len() > MAX_BLANKS + PYTHON_TAG.len() => TagMatch::No,
            None => TagMatch::Open,
            Some('{') => TagMatch::Whole,
            Some(_) => TagMatch::No,
        }
    }

    fn step_header(&mut self, decisions: &mut Vec<Decision>) -> bool {
        let State::Header {
            num_syntax,
            num_read,
            call,
        } = &mut self.state
        else {
            return true;
        };
        let Some(&char) = self.held.get(*num_read) else {
            return false;
        };
        *num_read += 1;
        match call.push(char) {
            CallStep::Open => true,
            CallStep::Refuted => {
                // The text after its first character may hold another tag.
                self.take(1, Fate::CONTENT, decisions);
                self.state = State::Content { is_begin: false };
                true
            }
            CallStep::Pieces(pieces) => {
                let (num_syntax, num_read, call) = (*num_syntax, *num_read, call.clone());
                self.state = State::Body(call);
                self.take(num_syntax, Fate::syntax(Channel::ToolCall), decisions);
                let fate = Fate::text(Channel::ToolCall);
                self.take(num_read - num_syntax, fate, decisions);
                if let Some(last) = decisions.last_mut() {
                    last.calls = pieces;
                }
                self.end_bare_call();
                true
            }
        }
    }

    fn step_body(&mut self, decisions: &mut Vec<Decision>) -> bool {
        let is_tagged = !self.is_bare();
        let State::Body(call) = &mut self.state else {
            return true;
        };
        if is_tagged && !call.is_inside_value() {
            match match_tag(self.held.iter(), TOOL_CALL_TAGS.1) {
                TagMatch::Open => return false,
                TagMatch::No => {}
                TagMatch::Whole => {
                    let num_chars = TOOL_CALL_TAGS.1.chars().count();
                    self.take(num_chars, Fate::syntax(Channel::Content), decisions);
                    self.state = State::Separator(Channel::Content);
                    self.has_ended_call = true;
                    return true;
                }
            }
        }
        let Some(&char) = self.held.front() else {
            return false;
        };
        let step = call.push(char);
        self.take(1, Fate::text(Channel::ToolCall), decisions);
        if let (CallStep::Pieces(pieces), Some(last)) = (step, decisions.last_mut()) {
            last.calls = pieces;
        }
        self.end_bare_call();
        true
    }

    /// A bare call has no closing tag: it ends with its object.
    fn end_bare_call(&mut self) {
        let is_closed = matches!(&self.state, State::Body(Call::Json(call)) if call.is_closed());
        if is_closed && self.is_bare() {
            self.state = State::AfterBareCall;
            self.has_ended_call = true;
        }
    }

    fn is_bare(&self) -> bool {
        let calls = &self.format.tool_calls;
        matches!(calls, Some(ToolCallFormat::Llama3Json { .. }))
    }

    fn take(&mut self, num_chars: usize, fate: Fate, decisions: &mut Vec<Decision>) {
        self.held.drain(..num_chars);
        decisions.extend((0..num_chars).map(|_| Decision {
            fate,
            calls: Vec::new(),
        }));
    }

    fn starts_with(&self, chars: &[char]) -> bool {
        let first = self.held.front();
        first.is_some_and(|first| chars.contains(first))
    }

    fn num_blanks(&self) -> usize {
        let is_blank = |char: &&char| char.is_ascii_whitespace();
        self.held.iter().take_while(is_blank).count()
    }
}
