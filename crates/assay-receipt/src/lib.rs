//! Receipts: what a reply's numbers were computed from, sealed against any change, and computed again on any machine.
//!
//! A server fills a [`Recording`] while it answers and seals the [`Receipt`] that it becomes ([`seal`]). Who holds one
//! opens it ([`open`]) and lets an engine read the recorded tokens once more ([`Replay`]): every bit must come out as it
//! stands there. Knows the engine; no HTTP, no files.
#![forbid(unsafe_code)]

mod canonical;
mod hex_values;
mod identity;
mod record;
mod recording;
mod replay;
mod sampling;
mod seal;

pub use canonical::{canonical, canonical_sha256, hex, sha256_hex};
pub use hex_values::{Bits, HexBytes, Sha256Hex};
pub use identity::{Identity, ModelFacts, Overrides};
pub use record::{Distribution, FORMAT, FinishReason, Label, Output, Reading, Receipt};
pub use recording::{RecordedToken, Recording, ReplyFacts};
pub use replay::{Difference, Replay, ReplayError, Replayed};
pub use sampling::{Format, Mode, Reasoning, Sampling, SamplingError, ToolCalls};
pub use seal::{MAX_RECEIPT_BYTES, SealError, open, seal, seal_of};
