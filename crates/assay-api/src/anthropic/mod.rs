//! The Anthropic shapes: messages, their token count, and errors.

pub mod content;
pub mod error;
pub mod reply;
pub mod request;

pub use error::{MessagesError, MessagesErrorObject};
pub use reply::{
    Block, BlockDelta, Message, MessageEnd, MessageEvent, MessagesUsage, StopReason, TokenCount,
};
pub use request::MessagesRequest;
