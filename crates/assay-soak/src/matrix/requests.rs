//! What runs in a cell: the probe, whose bits are compared under all conditions, and its company.

use anyhow::Result;
use assay_engine::{LogprobsMode, LogprobsParams, ReplyFormat, Request, RequestId, SamplingParams};
use assay_models::TokenId;

use crate::matrix::cell::Cell;
use crate::random::Random;
use crate::subject::Subject;

/// Tokens of the probe's reply.
const PROBE_TOKENS: u32 = 12;
/// Tokens of a companion's reply: they outlast the probe's prompt, and draft sometimes.
const COMPANION_TOKENS: u32 = 14;
/// Companions that there are to choose from, so that their references are shared by all cells.
const NUM_COMPANIONS: usize = 63;

const FRUIT: [&str; 8] = [
    "apples", "pears", "plums", "cherries", "quinces", "figs", "grapes", "melons",
];

/// The requests of a subject's cells.
pub(super) struct CellRequests {
    list_token_ids: Vec<TokenId>,
    companions: Vec<Request>,
}

impl CellRequests {
    /// Text and companions, from `subject`'s vocabulary.
    ///
    /// # Errors
    /// It cannot spell them.
    pub(super) fn new(subject: &Subject) -> Result<Self> {
        let mut random = Random::new(7);
        // A list repeats itself, but for its numbers: so prompt look-up is right and wrong.
        let mut list = String::new();
        let mut list_token_ids = Vec::new();
        while list_token_ids.len() < 2 * crate::subject::CONTEXT_TOKENS {
            for _ in 0..64 {
                let (fruit, crates) = (random.pick(&FRUIT), random.between(1, 30));
                let shed = random.between(1, 4);
                list.push_str(&format!("{fruit}: {crates} crates, shed {shed}\n"));
            }
            list_token_ids = subject.encode(&list)?;
        }
        let companions = (0..NUM_COMPANIONS)
            .map(|index| companion(subject, index))
            .collect::<Result<_>>()?;
        Ok(Self {
            list_token_ids,
            companions,
        })
    }

    /// The request that a cell is about.
    pub(super) fn probe(&self, cell: &Cell, seed: u64) -> Request {
        let mut random = Random::new(seed);
        // Lines begin all over the list; where a prompt begins is of no matter.
        let begin = random.below(crate::subject::CONTEXT_TOKENS / 2);
        let prompt = &self.list_token_ids[begin..begin + cell.num_prompt_tokens()];
        Request {
            sampling: SamplingParams {
                temperature: *random.pick(&[0.0, 0.5, 0.8]),
                seed,
                ..SamplingParams::greedy()
            },
            logprobs: Some(LogprobsParams {
                top_logprobs: 20,
                mode: LogprobsMode::Raw,
                include_end: false,
            }),
            ..request(prompt.to_vec(), PROBE_TOKENS)
        }
    }

    /// A request whose prompt begins as `probe`'s for `num_tokens` tokens, and then goes another way.
    pub(super) fn seeder(&self, probe: &Request, num_tokens: usize) -> Request {
        let mut prompt = probe.prompt_token_ids[..num_tokens].to_vec();
        let next = probe.prompt_token_ids[num_tokens];
        let other = self.list_token_ids.iter().find(|&&id| id != next);
        prompt.extend(other);
        request(prompt, 1)
    }

    /// The others of a cell, of which the probe shares no first token with any.
    pub(super) fn companions(&self, cell: &Cell) -> &[Request] {
        &self.companions[..cell.together - 1]
    }

    /// A request of one token, which no other begins with.
    pub(super) fn opener(&self) -> Request {
        request(self.companions[0].prompt_token_ids[..1].to_vec(), 1)
    }
}

fn companion(subject: &Subject, index: usize) -> Result<Request> {
    // Upper-case letters and brackets: no line of the list begins so.
    let letter = char::from(b'A' + u8::try_from(index % 26)?);
    let text = format!("[{letter}{index}] is a label. Another one is [{letter}");
    let mut prompt = subject.encode(&text)?;
    prompt.truncate(3 + index % 14);
    Ok(Request {
        sampling: SamplingParams {
            temperature: if index.is_multiple_of(2) { 1.0 } else { 0.0 },
            seed: index as u64,
            ..SamplingParams::greedy()
        },
        ..request(prompt, COMPANION_TOKENS)
    })
}

fn request(prompt_token_ids: Vec<TokenId>, max_tokens: u32) -> Request {
    Request {
        id: RequestId(0),
        prompt_token_ids,
        cache_salt: None,
        num_choices: 1,
        max_tokens,
        sampling: SamplingParams::greedy(),
        logprobs: Some(LogprobsParams {
            top_logprobs: 3,
            mode: LogprobsMode::Raw,
            include_end: false,
        }),
        prompt_logprobs: None,
        named_token_ids: Vec::new(),
        constraint: None,
        format: ReplyFormat::default(),
        stop: Vec::new(),
        // Replies are as long as they are asked to be, so that company lasts.
        end_token_ids: Vec::new(),
    }
}
