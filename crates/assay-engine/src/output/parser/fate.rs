//! What the parser tells: fates of characters, and where the reasoning stands.

use crate::output::format::{Channel, ToolCallPiece};

/// What becomes of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::output) struct Fate {
    /// The part that it belongs to; for syntax, the part that follows it.
    pub(in crate::output) channel: Channel,
    /// Whether it is a tag's or a separator: in no text.
    pub(in crate::output) is_syntax: bool,
}

impl Fate {
    pub(in crate::output) const CONTENT: Self = Self {
        channel: Channel::Content,
        is_syntax: false,
    };

    pub(super) fn text(channel: Channel) -> Self {
        Self {
            channel,
            is_syntax: false,
        }
    }

    pub(super) fn syntax(channel: Channel) -> Self {
        Self {
            channel,
            is_syntax: true,
        }
    }
}

/// The fate of the next undecided character, with what it completed of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::output) struct Decision {
    pub(in crate::output) fate: Fate,
    pub(in crate::output) calls: Vec<ToolCallPiece>,
}

/// Where the block of reasoning stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReasoningState {
    /// It may still open.
    Unopened,
    /// It is open; so many bytes at the text's end may be the begin of its closing tag.
    Open {
        /// Bytes of the closing tag.
        num_matched_bytes: usize,
    },
    /// It is closed, or never opens. Whether separators after it are still dropped.
    Over {
        /// They are.
        drops_separators: bool,
    },
}
