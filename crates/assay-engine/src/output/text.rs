//! The text pipeline of one choice: tokens with their scores in, entries with their text out.
//!
//! Detokenizer, parser, stop matcher and release gate in one, because text and token outputs travel
//! together: what is held back is held with its entries, what is cut is cut with them. Every entry
//! leaves once, in order, as soon as nothing later can change it:
//! - all its bytes are decoded (the halves of a split character leave together),
//! - each of its characters has a fate: none may still turn out to be the begin of a tag, and
//! - none of its text may still turn out to be the begin of a stop string.
//!
//! A character's text belongs to the entry that completed it, or that proved its bytes invalid. Stop strings are
//! matched in content alone; none reaches over what is not content.

use std::collections::VecDeque;

use super::format::{Channel, ReplyFormat, ToolCallPiece};
use super::parser::{Decision, Fate, ReasoningState, ReplyParser};
use super::pieces::Pieces;
use super::stop::StopMatcher;
use super::utf8::{DecodedChar, Utf8Decoder};
use super::{Entry, TokenOutput};

/// What a token did to the text.
#[derive(Clone, Debug, PartialEq)]
pub enum Pushed {
    /// The text goes on; entries that are final now.
    Continues(Vec<Entry>),
    /// A stop string is complete; the last entries, cut before it.
    Stopped {
        /// The last entries.
        entries: Vec<Entry>,
        /// The stop string.
        stop: String,
    },
}

/// Why no more tokens come, as far as text is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextEnd {
    /// The model ended the text: an unfinished character is invalid and becomes U+FFFD.
    Complete,
    /// The text was cut by a limit: an unfinished character stays unspelled, its bytes are kept.
    Truncated,
}

/// A token that is not released.
#[derive(Clone, Debug)]
struct HeldToken {
    output: TokenOutput,
    bytes: Vec<u8>,
    /// A control token: it is a tag, or it spells nothing.
    is_control: bool,
}

/// A character that is decoded but not released.
#[derive(Clone, Debug)]
struct HeldChar {
    decoded: DecodedChar,
    /// Running number of the token that its text belongs to.
    token_number: usize,
    /// Known for the first `num_decided`.
    fate: Fate,
    /// What it completed of tool calls.
    calls: Vec<ToolCallPiece>,
}

/// Text and tokens of one choice that are not final yet.
///
/// The held tokens' bytes are exactly the bytes of the held characters followed by those in the
/// decoder: tokens and characters are only released where both end at the same byte.
#[derive(Clone, Debug)]
pub struct TextPipeline {
    decoder: Utf8Decoder,
    /// `None` where all is content.
    parser: Option<ReplyParser>,
    control_tags: Vec<(u32, &'static str)>,
    stops: StopMatcher,
    /// Tokens not released.
    tokens: VecDeque<HeldToken>,
    /// Running number of the first of `tokens`.
    first_token_number: usize,
    /// Characters not released.
    chars: VecDeque<HeldChar>,
    /// So many of `chars` have their fate.
    num_decided: usize,
    /// Where the last released character led to.
    channel: Channel,
    num_reasoning_tokens: u32,
}

impl TextPipeline {
    /// The begin of a reply that is all content and ends at any of `stops`; none is empty.
    pub fn new(stops: &[String]) -> Self {
        Self::with_format(stops, &ReplyFormat::default())
    }

    /// The begin of a reply whose parts `format` tells apart.
    pub fn with_format(stops: &[String], format: &ReplyFormat) -> Self {
        let has_parts = format.reasoning.is_some() || format.tool_calls.is_some();
        let is_open = format.reasoning.as_ref().is_some_and(|block| block.is_open);
        Self {
            decoder: Utf8Decoder::default(),
            parser: has_parts.then(|| ReplyParser::new(format)),
            control_tags: format.control_tags.clone(),
            stops: StopMatcher::new(stops),
            tokens: VecDeque::new(),
            first_token_number: 0,
            chars: VecDeque::new(),
            num_decided: 0,
            channel: if is_open {
                Channel::Reasoning
            } else {
                Channel::Content
            },
            num_reasoning_tokens: 0,
        }
    }

    /// Takes a token that spells `bytes`.
    pub fn push(&mut self, output: TokenOutput, bytes: &[u8]) -> Pushed {
        let tag = self
            .control_tags
            .iter()
            .find(|(token_id, _)| *token_id == output.token_id);
        let bytes = tag.map_or(bytes, |(_, text)| text.as_bytes()).to_vec();
        let was_reasoning = self.is_reasoning();
        let token_number = self.first_token_number + self.tokens.len();
        self.tokens.push_back(HeldToken {
            output,
            bytes: bytes.clone(),
            is_control: tag.is_some(),
        });
        for decoded in self.decoder.push(&bytes) {
            if let Some(stopped) = self.push_char(decoded, token_number) {
                return stopped;
            }
        }
        if was_reasoning || self.is_reasoning() {
            // Also those that turned out to be its opening tag only now.
            self.num_reasoning_tokens = u32::try_from(token_number + 1).unwrap_or(u32::MAX);
        }
        Pushed::Continues(self.release_final())
    }

    /// Ends the text and releases what is left. A last U+FFFD, or text that turns out to be no tag, can still
    /// complete a stop string.
    pub fn finish(&mut self, end: TextEnd) -> Pushed {
        if end == TextEnd::Complete
            && let Some(decoded) = self.decoder.finish()
        {
            // No later token proved it invalid: it goes to the last token that has a part in it.
            let last_with_bytes = self
                .tokens
                .iter()
                .rposition(|token| !token.bytes.is_empty())
                .expect("bytes held by the decoder belong to a held token");
            let token_number = self.first_token_number + last_with_bytes;
            if let Some(stopped) = self.push_char(decoded, token_number) {
                return stopped;
            }
        }
        let decisions = self.parser.as_mut().map(ReplyParser::finish);
        if let Some(stopped) = self.decide(decisions.unwrap_or_default()) {
            return stopped;
        }
        let entries = self.release(self.tokens.len(), self.chars.len());
        Pushed::Continues(entries)
    }

    /// Tokens generated up to the end of the reasoning, its tags included.
    pub fn num_reasoning_tokens(&self) -> u32 {
        self.num_reasoning_tokens
    }

    /// Where the block of reasoning stands after the last token.
    pub(crate) fn reasoning(&self) -> ReasoningState {
        let over = ReasoningState::Over {
            drops_separators: false,
        };
        self.parser.as_ref().map_or(over, ReplyParser::reasoning)
    }

    /// Whether the text ends with a tag that opens a call.
    pub(crate) fn is_at_call(&self) -> bool {
        self.parser.as_ref().is_some_and(ReplyParser::is_at_call)
    }

    /// Whether the text ends within a call.
    pub(crate) fn is_in_call(&self) -> bool {
        self.parser.as_ref().is_some_and(ReplyParser::is_in_call)
    }

    /// The end of the text that may be the begin of a tag.
    pub(crate) fn held_text(&self) -> String {
        self.parser
            .as_ref()
            .map_or_else(String::new, ReplyParser::held)
    }

    /// Whether a tool call is complete.
    pub(crate) fn has_ended_call(&self) -> bool {
        self.parser
            .as_ref()
            .is_some_and(ReplyParser::has_ended_call)
    }

    /// Whatever comes next is content, to the byte.
    pub(crate) fn begin_content(&mut self) {
        if let Some(parser) = &mut self.parser {
            parser.begin_content();
        }
    }

    fn is_reasoning(&self) -> bool {
        matches!(self.reasoning(), ReasoningState::Open { .. })
    }

    /// Appends a character; the end of the text if a stop string is complete.
    fn push_char(&mut self, decoded: DecodedChar, token_number: usize) -> Option<Pushed> {
        self.chars.push_back(HeldChar {
            decoded,
            token_number,
            fate: Fate::CONTENT,
            calls: Vec::new(),
        });
        match &mut self.parser {
            Some(parser) => {
                let decisions = parser.push(decoded.char);
                self.decide(decisions)
            }
            None => self.decide_next(),
        }
    }

    /// Gives the next characters their fates.
    fn decide(&mut self, decisions: Vec<Decision>) -> Option<Pushed> {
        for decision in decisions {
            let held = &mut self.chars[self.num_decided];
            held.fate = decision.fate;
            held.calls = decision.calls;
            if let Some(stopped) = self.decide_next() {
                return Some(stopped);
            }
        }
        None
    }

    /// Counts the next character as decided, by the fate that it has.
    fn decide_next(&mut self) -> Option<Pushed> {
        let held = &self.chars[self.num_decided];
        let is_silent = self.tokens[held.token_number - self.first_token_number].is_control;
        self.num_decided += 1;
        if held.fate != Fate::CONTENT || is_silent {
            self.stops.reset();
            return None;
        }
        let stop = self.stops.push(held.decoded.char)?.to_owned();
        let entries = self.cut_before(stop.len());
        Some(Pushed::Stopped { entries, stop })
    }

    /// Drops the last `num_text_bytes` of the decided text, and all after it; releases the rest.
    fn cut_before(&mut self, num_text_bytes: usize) -> Vec<Entry> {
        let num_chars = self.num_chars_before(num_text_bytes);
        self.chars.truncate(num_chars);
        self.num_decided = num_chars;
        let mut num_visible_bytes: usize =
            self.chars.iter().map(|held| held.decoded.num_bytes).sum();

        let mut num_tokens = 0;
        for token in &mut self.tokens {
            if token.bytes.len() > num_visible_bytes {
                token.bytes.truncate(num_visible_bytes);
                num_tokens += usize::from(num_visible_bytes > 0);
                break;
            }
            num_visible_bytes -= token.bytes.len();
            num_tokens += 1;
        }
        // An invalid sequence proved so by a token that is cut: its U+FFFD goes to its own bytes.
        let last_token_number = (self.first_token_number + num_tokens).saturating_sub(1);
        for held in &mut self.chars {
            held.token_number = held.token_number.min(last_token_number);
        }
        self.release(num_tokens, num_chars)
    }

    /// Releases every token that nothing later can change.
    fn release_final(&mut self) -> Vec<Entry> {
        let num_final_chars = self.num_chars_before(self.stops.num_held_bytes());
        let mut num_tokens = 0;
        let mut num_token_bytes = 0;
        let mut num_chars = 0;
        let mut num_char_bytes = 0;
        let mut last_token_number = None;
        let mut released = (0, 0);
        // Walks tokens and characters in step; every byte where both end, and where all text so
        // far belongs to the tokens so far, is a place to release up to.
        for token in &self.tokens {
            num_tokens += 1;
            num_token_bytes += token.bytes.len();
            while num_char_bytes < num_token_bytes && num_chars < num_final_chars {
                let held = &self.chars[num_chars];
                num_chars += 1;
                num_char_bytes += held.decoded.num_bytes;
                last_token_number = last_token_number.max(Some(held.token_number));
            }
            let owns_its_text = last_token_number < Some(self.first_token_number + num_tokens);
            if num_char_bytes == num_token_bytes && owns_its_text {
                released = (num_tokens, num_chars);
            }
        }
        self.release(released.0, released.1)
    }

    /// Decided characters before the last `num_text_bytes` of the decided text, which end between characters.
    fn num_chars_before(&self, num_text_bytes: usize) -> usize {
        let mut num_chars = self.num_decided;
        let mut num_bytes_left = num_text_bytes;
        while num_bytes_left > 0 {
            let Some(held) = num_chars
                .checked_sub(1)
                .and_then(|index| self.chars.get(index))
            else {
                break;
            };
            num_chars -= 1;
            num_bytes_left = num_bytes_left.saturating_sub(held.decoded.char.len_utf8());
        }
        num_chars
    }

    /// Hands out the entries of the first `num_tokens` tokens, which spell the first `num_chars` characters.
    fn release(&mut self, num_tokens: usize, num_chars: usize) -> Vec<Entry> {
        let mut pieces: Vec<Pieces> = self
            .tokens
            .drain(..num_tokens)
            .map(|token| Pieces::new(token.output, token.bytes, token.is_control))
            .collect();
        let mut channels = vec![self.channel; num_tokens];
        let chars: Vec<HeldChar> = self.chars.drain(..num_chars).collect();
        self.num_decided -= num_chars;
        let mut index = 0;
        for (number, held) in chars.iter().enumerate() {
            let mut num_bytes = held.decoded.num_bytes;
            let mut last_index = index;
            while num_bytes > 0 {
                if pieces[index].num_bytes_left() == 0 {
                    index += 1;
                    channels[index] = self.channel;
                    continue;
                }
                let num_taken = num_bytes.min(pieces[index].num_bytes_left());
                pieces[index].take_bytes(held.fate, num_taken);
                last_index = index;
                num_bytes -= num_taken;
            }
            self.channel = held.fate.channel;
            // What proved a sequence invalid may belong to another channel: then the text stays with its own bytes.
            let prover = held.token_number - self.first_token_number;
            let next = chars.get(number + 1);
            let goes_on = next.is_none_or(|next| next.fate == held.fate);
            let owner = if goes_on { prover } else { last_index };
            pieces[owner].push_text(held.fate, held.decoded.char, held.calls.clone());
        }
        for channel in channels.iter_mut().skip(index + 1) {
            *channel = self.channel;
        }
        self.first_token_number += num_tokens;
        let mut entries = Vec::with_capacity(num_tokens);
        for (mut one, channel) in pieces.into_iter().zip(channels) {
            let num_unspelled = one.num_bytes_left();
            if num_unspelled > 0 {
                let fate = Fate {
                    channel: self.channel,
                    is_syntax: false,
                };
                one.take_bytes(fate, num_unspelled);
            }
            one.into_entries(channel, &mut entries);
        }
        entries
    }
}
