//! How a reply is told apart: which tags begin and end its reasoning, and how it writes tool calls.

use assay_constrain::Constraint;
use assay_models::TokenId;

/// What a reply may hold beside content. One without any is content from end to end.
#[derive(Clone, Debug, Default)]
pub struct ReplyFormat {
    /// The block of reasoning that may stand before the content.
    pub reasoning: Option<ReasoningFormat>,
    /// How tools are called; `None` where none may be.
    pub tool_calls: Option<ToolCallFormat>,
    /// What a call must be from its opening tag on, its closing tag included, where the reply as a whole is not
    /// constrained; only of formats with tags.
    pub call_constraint: Option<Constraint>,
    /// Whether the reply ends with its first call.
    pub at_most_one_call: bool,
    /// Tags that are control tokens of the vocabulary, with the text that they are: elsewhere such tokens spell
    /// nothing.
    pub control_tags: Vec<(TokenId, &'static str)>,
}

/// A block of reasoning; there is one at most, and it comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReasoningFormat {
    /// What opens and closes it.
    pub tags: ReasoningTags,
    /// Whether the prompt has opened it.
    pub is_open: bool,
    /// Tokens that it may have before it is closed by force; those that open and close it do not count.
    pub budget: Option<u32>,
    /// Tokens of the opening tag, never empty.
    pub open_token_ids: Vec<TokenId>,
    /// Tokens of the closing tag, never empty.
    pub close_token_ids: Vec<TokenId>,
}

/// What opens and closes a block of reasoning; neither is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReasoningTags {
    /// Opens it.
    pub open: &'static str,
    /// Closes it.
    pub close: &'static str,
}

impl ReasoningTags {
    /// The tags of most models that think.
    pub const THINK: Self = Self {
        open: "<think>",
        close: "</think>",
    };
}

/// How a model writes a call of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolCallFormat {
    /// `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, anywhere in the content (ChatML, Hermes, Qwen).
    Hermes,
    /// `<tool_call><function=NAME><parameter=KEY>…</parameter>…</function></tool_call>`, anywhere in the content
    /// (Qwen Coder).
    QwenXml,
    /// `{"name": …, "parameters": {…}}` alone, where the content begins, perhaps after a tag (Llama 3).
    Llama3Json {
        /// The tools' names: JSON of any other name is content.
        names: Vec<String>,
    },
}

/// Stand around a call of [`ToolCallFormat::Hermes`] and [`ToolCallFormat::QwenXml`].
pub const TOOL_CALL_TAGS: (&str, &str) = ("<tool_call>", "</tool_call>");
/// May stand before a call of [`ToolCallFormat::Llama3Json`].
pub const PYTHON_TAG: &str = "<|python_tag|>";

/// Which part of a reply a text belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Channel {
    /// What the model thinks before it answers.
    Reasoning,
    /// The answer.
    #[default]
    Content,
    /// Calls of tools, as the model wrote them between their tags.
    ToolCall,
}

/// What a reply said of its tool calls, piece by piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolCallPiece {
    /// A call begins: the tool's name. The pieces up to the next name are this call's.
    Name(String),
    /// The next text of the arguments, a JSON object as the model wrote it.
    Arguments(String),
    /// One argument of a format that does not write JSON, as text.
    Argument {
        /// Its name.
        name: String,
        /// Its value, without the line breaks that set it off.
        text: String,
    },
}
