//! How a question is put to the model: by its chat template where it has one, as plain text otherwise.
//!
//! The state comes first, so that all questions about it share its tokens. Earlier questions with their answers may
//! follow it; then the question; then the answer begins.

use assay_api::openai::{
    ChatMessage, Content, Conversation, ReasoningEffort, ReasoningParams, Role, Tools,
};
use assay_engine::decision::{Ending, LabelPrompt, end_token_ids};
use serde_json::Map;

use super::wording::above_questions;
use crate::error::ApiError;
use crate::model_text::ModelText;

/// Name and version of what this file and `wording.rs` write.
pub const PROMPT_FORMAT: &str = "assay-1";

/// What parts state and questions.
const BETWEEN: &str = "\n\n";

/// Blocks in which models think before they answer, as they begin and end.
const THINKING: [(&str, &str); 7] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
];

/// A model that writes its reply into channels answers in this one.
const CHANNEL: &str = "<|channel|>";
const ANSWER_CHANNEL: &str = "<|channel|>final<|message|>";

/// How the served model is asked.
#[derive(Debug)]
pub(crate) struct QuestionFormat {
    ending: Ending,
    /// What ends an answer; never empty.
    pub(crate) end_token_ids: Vec<u32>,
}

/// A question as text, in its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// What it is about; may be empty.
    pub(crate) state: &'a str,
    /// Questions before it, with their answers.
    pub(crate) earlier: &'a [(String, String)],
    /// The question.
    pub(crate) question: &'a str,
}

impl QuestionFormat {
    /// Finds how the model is asked.
    ///
    /// # Errors
    /// Its template leaves it thinking, or its vocabulary has nothing that ends an answer.
    pub(crate) fn new(text: &ModelText) -> Result<Self, ApiError> {
        let ending = if text.has_template() {
            check_thinking(text)?;
            Ending::Turn
        } else {
            Ending::Line
        };
        let end_token_ids = end_token_ids(text.tokenizer(), ending);
        if end_token_ids.is_empty() {
            let why = "its vocabulary has no token that ends an answer";
            return Err(ApiError::NotAskable(why.to_owned()));
        }
        Ok(Self {
            ending,
            end_token_ids,
        })
    }

    /// The prompt up to where the answer begins.
    ///
    /// # Errors
    /// The template refuses the conversation.
    pub(crate) fn render(&self, asked: Asked<'_>, text: &ModelText) -> Result<String, ApiError> {
        match self.ending {
            Ending::Turn => text.render(&conversation(asked), true),
            Ending::Line => Ok(text.tokenizer().mark_literal(&plain(asked)).into_owned()),
        }
    }

    /// `rendered` as the scorer takes it.
    pub(crate) fn label_prompt<'a>(&self, rendered: &'a str, text: &ModelText) -> LabelPrompt<'a> {
        let bos = match self.ending {
            // The template writes it.
            Ending::Turn => None,
            Ending::Line => text.tokenizer().added_bos(),
        };
        LabelPrompt {
            bos,
            text: rendered,
        }
    }

    /// An answer as it stands behind the prompt.
    ///
    /// # Errors
    /// Why it cannot stand there.
    pub(crate) fn label(&self, answer: &str) -> Result<String, &'static str> {
        match self.ending {
            Ending::Turn => Ok(answer.to_owned()),
            Ending::Line if answer.contains(['\n', '\r']) => Err(
                "must not hold a line break, which ends an answer of a model without a chat template",
            ),
            Ending::Line => Ok(format!(" {answer}")),
        }
    }
}

/// State and first question are one turn: templates may want turns to alternate.
fn conversation(asked: Asked<'_>) -> Conversation {
    let message = |role, content: &str| ChatMessage {
        role,
        content: Content::Text(content.to_owned()),
        name: None,
        tool_call_id: None,
        tool_calls: Vec::new(),
        reasoning_content: None,
    };
    let mut messages = Vec::with_capacity(2 * asked.earlier.len() + 1);
    let mut before = above_questions(asked.state) + BETWEEN;
    for (question, answer) in asked.earlier {
        before.push_str(question);
        messages.push(message(Role::User, &before));
        messages.push(message(Role::Assistant, answer));
        before.clear();
    }
    before.push_str(asked.question);
    messages.push(message(Role::User, &before));
    Conversation {
        messages,
        chat_template_kwargs: Map::new(),
        tools: Tools::default(),
        reasoning: ReasoningParams {
            effort: Some(ReasoningEffort::None),
            budget: None,
        },
    }
}

fn plain(asked: Asked<'_>) -> String {
    let mut text = above_questions(asked.state) + BETWEEN;
    for (question, answer) in asked.earlier {
        text.push_str(&format!("{question}\nAnswer: {answer}{BETWEEN}"));
    }
    text + asked.question + "\nAnswer:"
}

/// Refuses a model whose reply would begin with thoughts.
fn check_thinking(text: &ModelText) -> Result<(), ApiError> {
    let probe = conversation(Asked {
        state: "",
        earlier: &[],
        question: "probe",
    });
    let without = text.render(&probe, false)?;
    let with = text.render(&probe, true)?;
    let shared = std::iter::zip(without.char_indices(), with.chars());
    let parting = shared
        .take_while(|((_, a), b)| a == b)
        .last()
        .map_or(0, |((at, a), _)| at + a.len_utf8());
    let opening = with.get(parting..).unwrap_or_default();
    let is_open = |(begin, end): &&(&str, &str)| opening.rfind(begin) > opening.rfind(end);
    let block = THINKING.iter().find(is_open).map(|(begin, _)| *begin);
    let has_channels = text
        .template_source()
        .is_some_and(|source| source.contains(CHANNEL));
    let channel = (has_channels && !opening.contains(ANSWER_CHANNEL)).then_some(CHANNEL);
    match block.or(channel) {
        None => Ok(()),
        Some(begin) => Err(ApiError::NotAskable(format!(
            "its chat template leaves {begin} open although thinking is switched off, so that a reply would begin with \
             thoughts instead of an answer"
        ))),
    }
}
