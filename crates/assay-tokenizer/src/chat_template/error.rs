//! Why a chat template cannot be used or a conversation cannot be rendered with it.

/// Errors of [`ChatTemplate`](crate::ChatTemplate).
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The source is no template.
    #[error("chat template, line {line}: {message}")]
    Syntax {
        /// One-based line of the source, 0 if unknown.
        line: usize,
        /// What the parser found.
        message: String,
    },

    /// The source is longer than a template may be.
    #[error("chat template of {found} bytes; at most {max} are accepted")]
    SourceTooLong {
        /// Bytes in the source.
        found: usize,
        /// Most bytes accepted.
        max: usize,
    },

    /// The template itself refuses the conversation, such as roles that do not alternate.
    #[error("the model's chat template refuses these messages: {message}")]
    Refused {
        /// The template's words.
        message: String,
    },

    /// A message is not shaped as the template needs it.
    #[error("messages[{index}]{field}: {problem}")]
    Message {
        /// Position in the list.
        index: usize,
        /// Path inside the message, such as `.content[0]`; empty for the message itself.
        field: String,
        /// What is wrong.
        problem: String,
    },

    /// `messages` is no list, or `tools` or an extra argument is unusable.
    #[error("{field}: {problem}")]
    Argument {
        /// The argument.
        field: String,
        /// What is wrong.
        problem: String,
    },

    /// The template ran for too many steps.
    #[error("chat template did not finish within {max} steps")]
    Steps {
        /// The limit.
        max: u64,
    },

    /// The rendered text, or a value on the way to it, is too large.
    #[error("chat template renders to more than {max} bytes")]
    Output {
        /// The limit.
        max: usize,
    },

    /// The template failed while running.
    #[error("chat template, line {line}: {message}")]
    Render {
        /// One-based line of the source, 0 if unknown.
        line: usize,
        /// What went wrong.
        message: String,
    },
}
