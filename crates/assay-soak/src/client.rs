//! A client of an engine, and what it got as bits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use assay_engine::{
    EngineHandle, Entry, Gone, OutputEvent, OutputSink, PromptToken, Request, SubmitError,
    TokenLogprobs, TokenOutput, TopLogprob,
};
use assay_models::TokenId;

/// Longest wait for an event: a hang ends the run with a name, not the machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// A token with its score's bits, and the alternatives with theirs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TokenBits {
    /// The token.
    pub token_id: TokenId,
    /// Its log-probability; `None` where the request did not ask.
    pub logprob: Option<u64>,
    /// Alternatives, most likely first.
    pub top_logprobs: Vec<(TokenId, u64)>,
    /// Mass of the named tokens, and each of them; `None` where the request named none.
    pub named: Option<(u64, Vec<(TokenId, u64)>)>,
    /// Text that became complete with it.
    pub text: String,
}

/// A scored token of the prompt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PromptBits {
    /// Its place and the place of its probability.
    pub position_and_rank: (u32, u32),
    /// The token and its scores.
    pub token: TokenBits,
}

/// All that one choice got and that must not depend on company: everything but what came from the cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ChoiceBits {
    /// Scored tokens of the prompt; choice 0 only.
    pub prompt: Vec<PromptBits>,
    /// Visible tokens.
    pub tokens: Vec<TokenBits>,
    /// Why it ended.
    pub finish: String,
    /// The token that ended it, where the request asked.
    pub end: Option<TokenBits>,
    /// Tokens of prompt and reply.
    pub usage: (u32, u32),
}

/// What a request came to: its choices, or the failure that it was told.
pub type Outcome = Result<Vec<ChoiceBits>, String>;

/// An outcome with what it owed to the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collected {
    /// What must not depend on company.
    pub outcome: Outcome,
    /// By choice.
    pub cached_tokens: Vec<u32>,
}

/// Receives a request's events; can leave.
pub struct Client {
    events: Receiver<OutputEvent>,
    is_gone: Arc<AtomicBool>,
    num_choices: usize,
}

struct ClientSink {
    events: std::sync::Mutex<Sender<OutputEvent>>,
    is_gone: Arc<AtomicBool>,
}

impl OutputSink for ClientSink {
    fn send(&mut self, event: OutputEvent) -> Result<(), Gone> {
        if self.is_gone() {
            return Err(Gone);
        }
        let events = self
            .events
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        events.send(event).map_err(|_| Gone)
    }

    fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }
}

impl Client {
    /// Hands a request to the engine.
    ///
    /// # Errors
    /// The engine's refusal.
    pub fn submit(engine: &EngineHandle, request: Request) -> Result<Self, SubmitError> {
        let (sender, events) = channel();
        let is_gone = Arc::new(AtomicBool::new(false));
        let num_choices = request.num_choices as usize;
        let sink = ClientSink {
            events: std::sync::Mutex::new(sender),
            is_gone: Arc::clone(&is_gone),
        };
        engine.submit(request, Box::new(sink))?;
        Ok(Self {
            events,
            is_gone,
            num_choices,
        })
    }

    /// Reads up to `num_events`, then leaves.
    pub fn leave_after(self, num_events: usize) {
        for _ in 0..num_events {
            if self.events.recv_timeout(PATIENCE).is_err() {
                break;
            }
        }
        self.is_gone.store(true, Ordering::Release);
    }

    /// Reads all choices to their end.
    ///
    /// # Errors
    /// The engine broke the order of events, sent one after the end, or fell silent: never a request's own failure.
    pub fn collect(self) -> Result<Collected, String> {
        let mut choices = vec![ChoiceBits::default(); self.num_choices];
        let mut cached_tokens = vec![0; self.num_choices];
        let mut num_unfinished = self.num_choices;
        while num_unfinished > 0 {
            let event = self.events.recv_timeout(PATIENCE);
            match event.map_err(|error| format!("no event came: {error}"))? {
                OutputEvent::Prompt { tokens } => {
                    choices[0].prompt.extend(tokens.iter().map(prompt_bits));
                }
                OutputEvent::Delta {
                    choice_index,
                    entries,
                } => {
                    let choice = unfinished(&mut choices, choice_index)?;
                    choice.tokens.extend(entries.iter().map(entry_bits));
                }
                OutputEvent::Finished {
                    choice_index,
                    reason,
                    end,
                    usage,
                } => {
                    let choice = unfinished(&mut choices, choice_index)?;
                    choice.finish = format!("{reason:?}");
                    choice.end = end.as_ref().map(|output| token_bits(output, ""));
                    choice.usage = (usage.prompt_tokens, usage.completion_tokens);
                    cached_tokens[choice_index as usize] = usage.cached_tokens;
                    num_unfinished -= 1;
                }
                OutputEvent::Failed(error) => {
                    return Ok(Collected {
                        outcome: Err(error.to_string()),
                        cached_tokens,
                    });
                }
            }
        }
        match self.events.try_recv() {
            Ok(event) => Err(format!("an event after the end: {event:?}")),
            Err(_) => Ok(Collected {
                outcome: Ok(choices),
                cached_tokens,
            }),
        }
    }
}

fn unfinished(choices: &mut [ChoiceBits], index: u32) -> Result<&mut ChoiceBits, String> {
    choices
        .get_mut(index as usize)
        .filter(|choice| choice.finish.is_empty())
        .ok_or_else(|| format!("an event for choice {index}, which is not there or has ended"))
}

fn entry_bits(entry: &Entry) -> TokenBits {
    token_bits(&entry.output, &entry.text)
}

fn token_bits(output: &TokenOutput, text: &str) -> TokenBits {
    TokenBits {
        text: text.to_owned(),
        ..scored(output.token_id, output.logprobs.as_ref())
    }
}

fn prompt_bits(token: &PromptToken) -> PromptBits {
    PromptBits {
        position_and_rank: (token.position, token.rank),
        token: scored(token.token_id, Some(&token.logprobs)),
    }
}

fn scored(token_id: TokenId, scores: Option<&TokenLogprobs>) -> TokenBits {
    let top = scores.map_or(&[][..], |scores| &scores.top_logprobs);
    let named = scores.and_then(|scores| scores.named.as_ref());
    TokenBits {
        token_id,
        logprob: scores.map(|scores| scores.logprob.to_bits()),
        top_logprobs: alternatives(top),
        named: named.map(|named| {
            let total = named.total_logprob.to_bits();
            (total, alternatives(&named.candidates))
        }),
        text: String::new(),
    }
}

fn alternatives(alternatives: &[TopLogprob]) -> Vec<(TokenId, u64)> {
    alternatives
        .iter()
        .map(|alternative| (alternative.token_id, alternative.logprob.to_bits()))
        .collect()
}

/// Where two outcomes part, for people.
pub fn first_difference(got: &Outcome, expected: &Outcome) -> String {
    let (got, expected) = match (got, expected) {
        (Ok(got), Ok(expected)) => (got, expected),
        (got, expected) => return format!("got {got:?}, alone {expected:?}"),
    };
    for (index, (got, expected)) in got.iter().zip(expected).enumerate() {
        let pairs = got.tokens.iter().zip(&expected.tokens).enumerate();
        for (place, (got, expected)) in pairs {
            if got != expected {
                return format!("choice {index}, token {place}: got {got:?}, alone {expected:?}");
            }
        }
        let pairs = got.prompt.iter().zip(&expected.prompt);
        for (got, expected) in pairs {
            if got != expected {
                return format!("prompt: got {got:?}, alone {expected:?}");
            }
        }
        if got != expected {
            return format!(
                "choice {index}: {} tokens, {} scored, {} {:?} {:?}; alone {}, {}, {} {:?} {:?}",
                got.tokens.len(),
                got.prompt.len(),
                got.finish,
                got.usage,
                got.end,
                expected.tokens.len(),
                expected.prompt.len(),
                expected.finish,
                expected.usage,
                expected.end,
            );
        }
    }
    format!("{} choices, alone {}", got.len(), expected.len())
}
