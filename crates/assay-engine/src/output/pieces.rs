//! Released characters to entries: what each token spells, channel by channel.

use super::format::{Channel, ToolCallPiece};
use super::parser::Fate;
use super::{Entry, NamedLogprobs, TokenLogprobs, TokenOutput};

/// A token whose entries are in the making.
#[derive(Clone, Debug)]
pub(super) struct Pieces {
    output: TokenOutput,
    /// Bytes that are not given to a piece yet.
    rest: std::vec::IntoIter<u8>,
    /// Whether its bytes spell nothing in any channel: a control token that is no tag.
    is_silent: bool,
    runs: Vec<Run>,
}

/// Characters of one fate, side by side in one token.
#[derive(Clone, Debug)]
struct Run {
    fate: Fate,
    bytes: Vec<u8>,
    text: String,
    calls: Vec<ToolCallPiece>,
}

impl Pieces {
    pub(super) fn new(output: TokenOutput, bytes: Vec<u8>, is_silent: bool) -> Self {
        Self {
            output,
            rest: bytes.into_iter(),
            is_silent,
            runs: Vec::new(),
        }
    }

    /// Bytes that no character claimed yet.
    pub(super) fn num_bytes_left(&self) -> usize {
        self.rest.len()
    }

    /// Gives the next `num_bytes` to what has this fate.
    pub(super) fn take_bytes(&mut self, fate: Fate, num_bytes: usize) {
        let bytes = self.rest.by_ref().take(num_bytes);
        let bytes: Vec<u8> = bytes.collect();
        let is_silent = self.is_silent;
        let run = self.run(fate);
        if !is_silent {
            run.bytes.extend(bytes);
        }
    }

    /// Gives it a text that became complete with it.
    pub(super) fn push_text(&mut self, fate: Fate, char: char, calls: Vec<ToolCallPiece>) {
        let is_silent = self.is_silent;
        let run = self.run(fate);
        if !is_silent {
            run.text.push(char);
        }
        for piece in calls {
            match (run.calls.last_mut(), piece) {
                (Some(ToolCallPiece::Arguments(text)), ToolCallPiece::Arguments(more)) => {
                    text.push_str(&more);
                }
                (_, piece) => run.calls.push(piece),
            }
        }
    }

    fn run(&mut self, fate: Fate) -> &mut Run {
        if self.runs.last().is_none_or(|last| last.fate != fate) {
            self.runs.push(Run {
                fate,
                bytes: Vec::new(),
                text: String::new(),
                calls: Vec::new(),
            });
        }
        self.runs
            .last_mut()
            .expect("one was pushed if there was none")
    }

    /// The token's entries. One that spells nothing at all stands in `channel`; one that is all syntax has none.
    pub(super) fn into_entries(mut self, channel: Channel, entries: &mut Vec<Entry>) {
        if self.runs.is_empty() {
            let fate = Fate {
                channel,
                is_syntax: false,
            };
            self.run(fate);
        }
        let visible = self.runs.into_iter().filter(|run| !run.fate.is_syntax);
        let mut output = Some(self.output.clone());
        entries.extend(visible.map(|run| {
            let first = output.take();
            Entry {
                is_continuation: first.is_none(),
                output: first.unwrap_or_else(|| certain(&self.output)),
                channel: run.fate.channel,
                bytes: run.bytes,
                text: run.text,
                calls: run.calls,
            }
        }));
    }
}

/// The rest of a token whose begin is known.
fn certain(output: &TokenOutput) -> TokenOutput {
    let scores = output.logprobs.as_ref().map(|scores| TokenLogprobs {
        logprob: 0.0,
        top_logprobs: Vec::new(),
        named: scores.named.as_ref().map(|_| NamedLogprobs {
            candidates: Vec::new(),
            total_logprob: 0.0,
        }),
    });
    TokenOutput {
        token_id: output.token_id,
        logprobs: scores,
    }
}
