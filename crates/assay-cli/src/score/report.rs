//! What `assay score` prints: a line a token, then the sum and the perplexity.

use std::io::Write;

use assay_engine::PromptToken;
use assay_kernels::exp64::exp64;
use assay_models::Numerics;
use assay_tokenizer::{Detokenizer, display_token};
use serde::Serialize;

use crate::config::ModelConfig;
use crate::load::Loaded;

/// A scored text. Values are the engine's own f64, in JSON's shortest form that reads back to the same bits, and the
/// bits themselves.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) model: String,
    pub(super) system_fingerprint: String,
    pub(super) numerics: &'static str,
    /// What was scored: a file, standard input, or the argument.
    pub(super) source: String,
    /// What the first token is; it has no score.
    first_token: FirstToken,
    pub(super) tokens: Vec<Token>,
    pub(super) num_scored: usize,
    /// Of the scored tokens' log-probabilities, in order; `null` where none is scored, as below.
    pub(super) sum: Option<f64>,
    sum_bits: Option<String>,
    /// `exp(-sum / num_scored)`.
    pub(super) perplexity: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum FirstToken {
    /// The model's beginning token: every token of the text is scored.
    BeginningOfText,
    /// The text's own: this model puts nothing before a text, so its first token has no score.
    Text,
}

#[derive(Debug, Serialize)]
pub(super) struct Token {
    pub(super) position: usize,
    pub(super) token_id: u32,
    pub(super) token: String,
    /// What of the text became complete with it: a character of several tokens is the last one's.
    #[serde(skip)]
    pub(super) text: String,
    pub(super) logprob: Option<f64>,
    logprob_bits: Option<String>,
    pub(super) rank: Option<u32>,
    /// The most likely tokens at this place, where they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) top: Vec<Alternative>,
}

#[derive(Debug, Serialize)]
pub(super) struct Alternative {
    token_id: u32,
    pub(super) token: String,
    pub(super) logprob: f64,
}

impl Report {
    pub(super) fn new(
        loaded: &Loaded,
        config: &ModelConfig,
        source: &str,
        token_ids: &[u32],
        scored: &[PromptToken],
    ) -> Self {
        let first_token = if token_ids.first().copied() == loaded.tokenizer.bos() {
            FirstToken::BeginningOfText
        } else {
            FirstToken::Text
        };
        let scores = std::iter::once(None).chain(scored.iter().map(Some));
        let mut detokenizer = Detokenizer::new();
        let tokens = token_ids
            .iter()
            .zip(scores)
            .enumerate()
            .map(|(position, (&token_id, scores))| {
                let bytes = loaded.tokenizer.token_bytes(token_id).unwrap_or_default();
                Token {
                    position,
                    token_id,
                    token: display_token(bytes),
                    text: detokenizer.push(bytes),
                    logprob: scores.map(|scores| scores.logprobs.logprob),
                    logprob_bits: scores.map(|scores| bits(scores.logprobs.logprob)),
                    rank: scores.map(|scores| scores.rank),
                    top: scores.map_or_else(Vec::new, |scores| alternatives(loaded, scores)),
                }
            })
            .collect();
        let sum = (!scored.is_empty()).then(|| {
            scored
                .iter()
                .fold(0.0, |sum, token| sum + token.logprobs.logprob)
        });
        Self {
            model: loaded.model_id.clone(),
            system_fingerprint: loaded.identity.fingerprint(),
            numerics: match config.numerics {
                Numerics::Exact => "exact",
                Numerics::Fast => "fast",
            },
            source: source.to_owned(),
            first_token,
            tokens,
            num_scored: scored.len(),
            sum,
            sum_bits: sum.map(bits),
            perplexity: sum.map(|sum| exp64(-sum / scored.len() as f64)),
        }
    }

    /// For people.
    ///
    /// # Errors
    /// The writer's.
    pub(super) fn write_text(&self, out: &mut impl Write) -> std::io::Result<()> {
        writeln!(
            out,
            "{:>8} {:>8} {:>6}  {:<23}  token",
            "position", "id", "rank", "logprob"
        )?;
        for token in &self.tokens {
            writeln!(
                out,
                "{:>8} {:>8} {:>6}  {:<23}  \"{}\"",
                token.position,
                token.token_id,
                token
                    .rank
                    .map_or_else(|| "-".to_owned(), |rank| rank.to_string()),
                token
                    .logprob
                    .map_or_else(|| "-".to_owned(), |logprob| logprob.to_string()),
                token.token.escape_debug()
            )?;
        }
        let first = match self.first_token {
            FirstToken::BeginningOfText => "the first is the model's beginning-of-text token",
            FirstToken::Text => {
                "the first has none before it, and this model has no beginning-of-text token"
            }
        };
        writeln!(
            out,
            "\n{} of {} tokens scored: {first}",
            self.num_scored,
            self.tokens.len()
        )?;
        if let (Some(sum), Some(perplexity)) = (self.sum, self.perplexity) {
            writeln!(out, "sum         {sum}\nperplexity  {perplexity}")?;
        }
        writeln!(
            out,
            "{}, {}, {}, text from {}",
            self.model, self.numerics, self.system_fingerprint, self.source
        )
    }
}

fn alternatives(loaded: &Loaded, scores: &PromptToken) -> Vec<Alternative> {
    let top = scores.logprobs.top_logprobs.iter().map(|top| Alternative {
        token_id: top.token_id,
        token: display_token(
            loaded
                .tokenizer
                .token_bytes(top.token_id)
                .unwrap_or_default(),
        ),
        logprob: top.logprob,
    });
    top.collect()
}

/// Hex of the IEEE value.
fn bits(value: f64) -> String {
    format!("{:016x}", value.to_bits())
}
