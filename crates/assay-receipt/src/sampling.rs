//! How tokens are drawn, as receipts write it, from the engine's request and back.

use assay_constrain::{Constraint, ConstraintError, ConstraintFactory};
use assay_engine::output::format::{PYTHON_TAG, TOOL_CALL_TAGS};
use assay_engine::{
    LogprobsMode, LogprobsParams, ReasoningFormat, ReasoningTags, ReplyFormat, Request,
    SamplingParams, ToolCallFormat,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::hex_values::Bits;

/// All that a draw depends on, the rows of logits aside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sampling {
    /// Key of the random numbers, together with choice and position.
    pub seed: i64,
    /// Choices of each prompt.
    pub num_choices: u32,
    /// Temperature; zero is greedy.
    pub temperature_bits: Bits,
    /// Keep the k most likely.
    pub top_k: Option<u32>,
    /// Smallest set whose mass reaches it.
    pub top_p_bits: Bits,
    /// Least share of the most likely one's probability.
    pub min_p_bits: Bits,
    /// Divides and multiplies logits of seen tokens.
    pub repetition_penalty_bits: Bits,
    /// Subtracted once for each token of the reply.
    pub presence_penalty_bits: Bits,
    /// Subtracted for each occurrence.
    pub frequency_penalty_bits: Bits,
    /// Added to the named logits.
    pub logit_bias_bits: Vec<(u32, Bits)>,
    /// `raw` or `processed`: where the recorded values of drawn tokens are read.
    pub logprobs_mode: Mode,
    /// Definition of what the reply must be, as JSON text; null where it may be anything.
    pub constraint: Option<String>,
    /// How the reply is told apart, as far as that guides it.
    pub reply_format: Format,
    /// Texts that end the reply.
    pub stop: Vec<String>,
}

/// Where values are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The model's own distribution.
    Raw,
    /// The one that was drawn from.
    Processed,
}

/// What a reply may hold beside content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Format {
    /// A block of reasoning.
    pub reasoning: Option<Reasoning>,
    /// How calls of tools are written.
    pub tool_calls: Option<ToolCalls>,
    /// Definition of what a call must be, as JSON text.
    pub call_constraint: Option<String>,
    /// Whether the reply ends with its first call.
    pub at_most_one_call: bool,
    /// Tags that are control tokens.
    pub control_tags: Vec<(u32, String)>,
}

/// A block of reasoning between `<think>` and `</think>`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reasoning {
    /// Whether the prompt has opened it.
    pub is_open: bool,
    /// Tokens before it is closed by force.
    pub budget: Option<u32>,
    /// Tokens of its opening tag.
    pub open_token_ids: Vec<u32>,
    /// Tokens of its closing tag.
    pub close_token_ids: Vec<u32>,
}

/// How calls are written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCalls {
    /// JSON between tags.
    Hermes,
    /// XML between tags.
    QwenXml,
    /// JSON alone, of these tools.
    Llama3Json(Vec<String>),
}

/// Sampling of a receipt that cannot be done here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SamplingError {
    /// A constraint does not compile.
    #[error("{member}: {error}")]
    Constraint {
        /// The member that defines it.
        member: &'static str,
        /// Why.
        error: ConstraintError,
    },
    /// A tag that no parser has.
    #[error("sampling.reply_format.control_tags: {0:?} is no tag that is known here")]
    UnknownTag(String),
}

impl Sampling {
    /// Of what the engine is asked.
    pub fn of(request: &Request) -> Self {
        let sampling = &request.sampling;
        let format = &request.format;
        let biases = sampling.logit_bias.iter();
        let definition = |constraint: &Constraint| constraint.definition().to_owned();
        Self {
            seed: sampling.seed.cast_signed(),
            num_choices: request.num_choices,
            temperature_bits: sampling.temperature.into(),
            top_k: sampling.top_k,
            top_p_bits: sampling.top_p.into(),
            min_p_bits: sampling.min_p.into(),
            repetition_penalty_bits: sampling.repetition_penalty.into(),
            presence_penalty_bits: sampling.presence_penalty.into(),
            frequency_penalty_bits: sampling.frequency_penalty.into(),
            logit_bias_bits: biases.map(|(id, bias)| (*id, (*bias).into())).collect(),
            logprobs_mode: match request.logprobs.map(|params| params.mode) {
                Some(LogprobsMode::Processed) => Mode::Processed,
                Some(LogprobsMode::Raw) | None => Mode::Raw,
            },
            constraint: request.constraint.as_ref().map(definition),
            reply_format: Format {
                reasoning: format.reasoning.as_ref().map(|reasoning| Reasoning {
                    is_open: reasoning.is_open,
                    budget: reasoning.budget,
                    open_token_ids: reasoning.open_token_ids.clone(),
                    close_token_ids: reasoning.close_token_ids.clone(),
                }),
                tool_calls: format.tool_calls.as_ref().map(|calls| match calls {
                    ToolCallFormat::Hermes => ToolCalls::Hermes,
                    ToolCallFormat::QwenXml => ToolCalls::QwenXml,
                    ToolCallFormat::Llama3Json { names } => ToolCalls::Llama3Json(names.clone()),
                }),
                call_constraint: format.call_constraint.as_ref().map(definition),
                at_most_one_call: format.at_most_one_call,
                control_tags: format
                    .control_tags
                    .iter()
                    .map(|(id, tag)| (*id, (*tag).to_owned()))
                    .collect(),
            },
            stop: request.stop.clone(),
        }
    }

    /// Whether every token is simply the most likely one.
    pub(crate) fn is_plain_greedy(&self) -> bool {
        let penalties = [
            (self.repetition_penalty_bits, 1.0),
            (self.presence_penalty_bits, 0.0),
            (self.frequency_penalty_bits, 0.0),
        ];
        self.temperature_bits.value() == 0.0
            && self.logit_bias_bits.is_empty()
            && penalties.iter().all(|(bits, off)| bits.value() == *off)
            && self.logprobs_mode == Mode::Raw
            && self.constraint.is_none()
            && self.reply_format == Format::default()
            && self.stop.is_empty()
    }

    pub(crate) fn params(&self) -> SamplingParams {
        let biases = self.logit_bias_bits.iter();
        SamplingParams {
            logit_bias: biases.map(|(id, bias)| (*id, bias.value())).collect(),
            repetition_penalty: self.repetition_penalty_bits.value(),
            presence_penalty: self.presence_penalty_bits.value(),
            frequency_penalty: self.frequency_penalty_bits.value(),
            temperature: self.temperature_bits.value(),
            top_k: self.top_k,
            top_p: self.top_p_bits.value(),
            min_p: self.min_p_bits.value(),
            seed: self.seed.cast_unsigned(),
        }
    }

    pub(crate) fn logprobs(&self) -> LogprobsParams {
        LogprobsParams {
            top_logprobs: 0,
            mode: match self.logprobs_mode {
                Mode::Raw => LogprobsMode::Raw,
                Mode::Processed => LogprobsMode::Processed,
            },
            include_end: false,
        }
    }

    /// What guides the draws, compiled for the vocabulary of `constraints`.
    pub(crate) fn guides(
        &self,
        constraints: Option<&ConstraintFactory>,
    ) -> Result<(Option<Constraint>, ReplyFormat), SamplingError> {
        let compile = |member, definition: &Option<String>| {
            let (Some(definition), Some(factory)) = (definition, constraints) else {
                return Ok(None);
            };
            let compiled = factory.compile_definition(definition).map(Some);
            compiled.map_err(|error| SamplingError::Constraint { member, error })
        };
        let format = &self.reply_format;
        let reasoning = format.reasoning.as_ref().map(|reasoning| ReasoningFormat {
            tags: ReasoningTags::THINK,
            is_open: reasoning.is_open,
            budget: reasoning.budget,
            open_token_ids: reasoning.open_token_ids.clone(),
            close_token_ids: reasoning.close_token_ids.clone(),
        });
        let tool_calls = format.tool_calls.as_ref().map(|calls| match calls {
            ToolCalls::Hermes => ToolCallFormat::Hermes,
            ToolCalls::QwenXml => ToolCallFormat::QwenXml,
            ToolCalls::Llama3Json(names) => ToolCallFormat::Llama3Json {
                names: names.clone(),
            },
        });
        let tags = format.control_tags.iter().map(|(id, tag)| {
            let known = known_tag(tag).ok_or_else(|| SamplingError::UnknownTag(tag.clone()));
            known.map(|tag| (*id, tag))
        });
        Ok((
            compile("sampling.constraint", &self.constraint)?,
            ReplyFormat {
                reasoning,
                tool_calls,
                call_constraint: compile(
                    "sampling.reply_format.call_constraint",
                    &format.call_constraint,
                )?,
                at_most_one_call: format.at_most_one_call,
                control_tags: tags.collect::<Result<_, _>>()?,
            },
        ))
    }

    /// Whether a constraint is to be compiled.
    pub(crate) fn is_constrained(&self) -> bool {
        self.constraint.is_some() || self.reply_format.call_constraint.is_some()
    }
}

fn known_tag(tag: &str) -> Option<&'static str> {
    let known = [
        ReasoningTags::THINK.open,
        ReasoningTags::THINK.close,
        TOOL_CALL_TAGS.0,
        TOOL_CALL_TAGS.1,
        PYTHON_TAG,
    ];
    known.into_iter().find(|known| *known == tag)
}
