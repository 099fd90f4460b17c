//! Mixed traffic, made from a seed: requests of every kind that the engine takes, and engines of every kind to take
//! them.

use std::num::NonZeroUsize;

use anyhow::Result;
use assay_constrain::{Constraint, ConstraintFactory};
use assay_engine::{
    CacheSalt, DraftEffort, EngineConfig, LogprobsMode, LogprobsParams, PrefixCache,
    PromptLogprobsParams, ReplyFormat, Request, RequestId, SamplingParams,
};
use assay_models::TokenId;

use crate::decisions::{DecisionVisit, any_decision};
use crate::random::Random;
use crate::rig::{Drafts, Setup, always};
use crate::subject::{CONTEXT_TOKENS, KV_BLOCKS, Subject, Use, Weights};

/// Schemas that replies are held to.
const SCHEMAS: [&str; 4] = [
    r#"{"type": "boolean"}"#,
    r#"{"enum": ["yes", "no", "yesterday"]}"#,
    r#"{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false}"#,
    r#"{"type": "array", "items": {"type": "string"}, "maxItems": 3}"#,
];

const STOPS: [&str; 6] = ["e", "\n", "th", ". ", "zz", " a"];

/// Different beginnings that prompts share.
const NUM_FAMILIES: usize = 6;

/// A request, and how its client behaves.
#[derive(Clone, Debug)]
pub struct Visit {
    /// The request.
    pub request: Request,
    /// Text of its constraint.
    pub schema: Option<&'static str>,
    /// Events after which the client leaves; `None` stays.
    pub leaves_after: Option<usize>,
}

/// An engine, and how many clients it has at once.
#[derive(Clone, Copy, Debug)]
pub struct Epoch {
    /// The engine.
    pub setup: Setup,
    /// Clients at most.
    pub num_clients: usize,
}

/// Makes visits for one subject.
pub struct Traffic {
    seed: u64,
    /// Different requests to draw from: each comes more than once, so that its reference pays.
    num_requests: u64,
    families: Vec<Vec<TokenId>>,
    end_token_ids: Vec<TokenId>,
    constraints: Vec<(&'static str, Constraint)>,
    longest_prompt: usize,
}

impl Traffic {
    /// Traffic of `seed` with so many different requests; prompts up to `longest_prompt` tokens.
    ///
    /// # Errors
    /// The vocabulary does not take the schemas.
    pub fn new(
        subject: &Subject,
        seed: u64,
        num_requests: u64,
        longest_prompt: usize,
    ) -> Result<Self> {
        let factory = ConstraintFactory::new(&subject.tokenizer)?;
        let constraints = SCHEMAS
            .iter()
            .map(|&schema| {
                let parsed = serde_json::from_str(schema)?;
                Ok((schema, factory.compile_json_schema(&parsed)?))
            })
            .collect::<Result<_>>()?;
        let families = (0..NUM_FAMILIES)
            .map(|index| family(subject, seed, index))
            .collect::<Result<_>>()?;
        Ok(Self {
            seed,
            num_requests: num_requests.max(1),
            families,
            end_token_ids: subject.end_token_ids(),
            constraints,
            longest_prompt: longest_prompt.min(CONTEXT_TOKENS - 1),
        })
    }

    /// Visit `index`: always the same one.
    pub fn visit(&self, index: u64) -> Visit {
        let mut random = Random::of(self.seed, index);
        let which = random.next_u64() % self.num_requests;
        let (request, schema) = self.request(which);
        let cache_salt: CacheSalt = match random.below(10) {
            0 => Some("a".into()),
            1 => Some("b".into()),
            _ => None,
        };
        Visit {
            request: Request {
                id: RequestId(index),
                cache_salt,
                ..request
            },
            schema,
            leaves_after: random.one_in(9).then(|| random.below(5)),
        }
    }

    /// The decision that comes with visit `index`, if one does: always the same one.
    pub fn decision(&self, index: u64) -> Option<DecisionVisit> {
        let mut random = Random::of(self.seed.rotate_left(9), index);
        if !random.one_in(6) {
            return None;
        }
        let which = random.next_u64() % self.num_requests.div_ceil(6);
        let leaves = random.one_in(9);
        let mut random = Random::of(!self.seed.rotate_left(9), which);
        let family = random.pick(&self.families);
        let salt: CacheSalt = random.one_in(5).then(|| "a".into());
        Some(DecisionVisit {
            request: any_decision(family, &self.end_token_ids, salt, &mut random),
            leaves,
        })
    }

    fn request(&self, which: u64) -> (Request, Option<&'static str>) {
        let mut random = Random::of(!self.seed, which);
        let prompt_token_ids = self.prompt(&mut random);
        let room = CONTEXT_TOKENS - prompt_token_ids.len();
        let prompt_logprobs =
            (prompt_token_ids.len() > 1 && random.one_in(4)).then(|| PromptLogprobsParams {
                first_position: small(random.between(1, prompt_token_ids.len() - 1)),
                top_logprobs: small(random.below(21)),
            });
        let only_scores = prompt_logprobs.is_some() && random.one_in(2);
        let longest = if random.one_in(40) { 120 } else { 20 };
        let constraint =
            (!only_scores && random.one_in(10)).then(|| random.pick(&self.constraints).clone());
        let mut end_token_ids = self.end_token_ids.clone();
        if random.one_in(3) {
            let family = random.pick(&self.families);
            end_token_ids.extend((0..2).map(|_| *random.pick(family)));
        }
        let logprobs = (!random.one_in(6)).then(|| LogprobsParams {
            top_logprobs: small(random.below(21)),
            mode: if random.one_in(3) {
                LogprobsMode::Processed
            } else {
                LogprobsMode::Raw
            },
            include_end: random.one_in(2),
        });
        let is_raw = logprobs.is_none_or(|params| params.mode == LogprobsMode::Raw);
        let mut named_token_ids = Vec::new();
        if is_raw && random.one_in(6) {
            let family = random.pick(&self.families);
            named_token_ids.extend_from_slice(&family[..random.between(1, 12)]);
            named_token_ids.sort_unstable();
            named_token_ids.dedup();
        }
        let request = Request {
            id: RequestId(0),
            cache_salt: None,
            num_choices: match random.below(8) {
                _ if only_scores => 1,
                0 => 2,
                1 => small(random.between(3, 5)),
                _ => 1,
            },
            max_tokens: if only_scores {
                0
            } else {
                small(random.between(1, room.min(longest)))
            },
            sampling: self.sampling(&mut random),
            logprobs,
            prompt_logprobs,
            named_token_ids,
            constraint: constraint
                .as_ref()
                .map(|(_, constraint)| constraint.clone()),
            format: ReplyFormat::default(),
            stop: (0..random.below(3) * random.below(2))
                .map(|_| (*random.pick(&STOPS)).to_owned())
                .collect(),
            end_token_ids,
            prompt_token_ids,
        };
        (request, constraint.map(|(schema, _)| schema))
    }

    /// The beginning of a family, and often an end of its own.
    fn prompt(&self, random: &mut Random) -> Vec<TokenId> {
        let longest = *random.pick(&[8, 24, 24, 60, 60, 120, 300, CONTEXT_TOKENS - 1]);
        let num_tokens = random.between(1, longest.min(self.longest_prompt));
        let family = random.pick(&self.families);
        let mut prompt = family[..num_tokens].to_vec();
        if random.one_in(2) {
            let own = random.between(1, num_tokens.min(20));
            let from = random.below(family.len() - own);
            prompt.truncate(num_tokens - own);
            prompt.extend_from_slice(&family[from..from + own]);
        }
        prompt
    }

    fn sampling(&self, random: &mut Random) -> SamplingParams {
        let seed = random.next_u64();
        if random.one_in(3) {
            return SamplingParams {
                seed,
                ..SamplingParams::greedy()
            };
        }
        let family = &self.families[0];
        SamplingParams {
            logit_bias: (0..random.below(3) * random.below(2))
                .map(|_| (*random.pick(family), 10.0 * random.unit() - 5.0))
                .collect(),
            repetition_penalty: if random.one_in(4) { 1.2 } else { 1.0 },
            presence_penalty: if random.one_in(4) { 0.7 } else { 0.0 },
            frequency_penalty: if random.one_in(4) { -0.3 } else { 0.0 },
            temperature: *random.pick(&[0.0, 0.3, 0.8, 1.0, 1.7]),
            top_k: random.one_in(4).then(|| small(random.between(1, 50))),
            top_p: if random.one_in(4) { 0.9 } else { 1.0 },
            min_p: if random.one_in(5) { 0.05 } else { 0.0 },
            seed,
        }
    }

    /// Engine `index`: always the same one.
    pub fn epoch(&self, index: u64) -> Epoch {
        let mut random = Random::of(self.seed.rotate_left(17), index);
        let max_num_seqs = *random.pick(&[1, 2, 8, 16, 64]);
        let drafts = *random.pick(&[Drafts::Off, Drafts::Ngram, Drafts::Model, Drafts::Both]);
        Epoch {
            setup: Setup {
                mutation: None,
                threads: NonZeroUsize::MIN.saturating_add(random.below(2)),
                weights: if random.one_in(4) {
                    Weights::LoadedAnew
                } else {
                    Weights::Kept
                },
                use_: Use::Target,
                drafts,
                // The least holds one whole context.
                num_kv_blocks: *random.pick(&[64, 72, 120, KV_BLOCKS]),
                config: EngineConfig {
                    max_num_seqs,
                    max_num_batched_tokens: max_num_seqs + *random.pick(&[0, 14, 60, 500]),
                    prefill_chunk: NonZeroUsize::new(*random.pick(&[0, 0, 1, 16, 64])),
                    draft_effort: if random.one_in(2) {
                        DraftEffort::Worthwhile
                    } else {
                        always(random.between(1, 6))
                    },
                    prefix_cache: if random.one_in(7) {
                        PrefixCache::Off
                    } else {
                        PrefixCache::On
                    },
                    ..EngineConfig::default()
                },
            },
            num_clients: *random.pick(&[1, 4, 20, 80]),
        }
    }
}

/// Text that many prompts begin with.
fn family(subject: &Subject, seed: u64, index: usize) -> Result<Vec<TokenId>> {
    let mut random = Random::of(seed, 1_000_003 + index as u64);
    const WORDS: [&str; 16] = [
        "the", "model", "answers", "with", "a", "number", "that", "stays", "same", "yes", "no",
        "one", "two", "list", "of", "things",
    ];
    let mut text = format!("{index}. ");
    let mut token_ids = Vec::new();
    while token_ids.len() < CONTEXT_TOKENS {
        for _ in 0..CONTEXT_TOKENS {
            text.push_str(WORDS[random.below(WORDS.len())]);
            text.push_str(if random.one_in(12) { ".\n" } else { " " });
        }
        token_ids = subject.encode(&text)?;
    }
    Ok(token_ids)
}

fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
