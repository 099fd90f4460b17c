//! What the server is told at start.

use std::time::Duration;

use assay_api::about::{DeviceFacts, ModelFacts};
use assay_receipt::Identity;
use assay_tokenizer::{ReasoningParser, TemplateDate, ToolParser};

use crate::ledger::Ledger;

/// Configuration of the server; the caller reads it from flags, environment or file.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Name of the served model.
    pub model_id: String,
    /// Further names that requests may use.
    pub aliases: Vec<String>,
    /// Whether every name is taken for the served model.
    pub any_model_name: bool,
    /// Keys, any of which opens the server; empty leaves it open.
    pub api_keys: Vec<String>,
    /// Whether the listening address is a loopback one.
    pub loopback: bool,
    /// Origins of web pages that may call, such as `https://example.org`.
    pub cors_origins: Vec<String>,
    /// When the model was loaded, seconds since 1970.
    pub created: u64,
    /// Who answers: all that can change a bit.
    pub identity: Identity,
    /// What was loaded, and onto what: told to who asks, of no effect.
    pub installed: Installed,
    /// Whether every reply that can carry its receipt does.
    pub receipts: bool,
    /// Where receipts of decisions and scored replies are kept.
    pub ledger: Option<Ledger>,
    /// The date that chat templates see; fixed, so that the same request gives the same prompt tomorrow.
    pub template_date: TemplateDate,
    /// How reasoning is told from content.
    pub reasoning_parser: ParserChoice<ReasoningParser>,
    /// How tool calls are told from content.
    pub tool_parser: ParserChoice<ToolParser>,
    /// How long running requests may go on once a shutdown began.
    pub drain_timeout: Duration,
    /// How long a request may take; `None` lets it take as long as it does.
    pub request_timeout: Option<Duration>,
    /// Limits on what clients send.
    pub limits: Limits,
}

/// What was loaded, and onto what.
#[derive(Clone, Debug, Default)]
pub struct Installed {
    /// The model's file.
    pub model: ModelFacts,
    /// What computes it.
    pub device: DeviceFacts,
    /// Bytes of one block of keys and values.
    pub kv_block_bytes: u64,
}

/// Which parser a model's replies get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParserChoice<T> {
    /// The one that its chat template asks for.
    #[default]
    Detect,
    /// None.
    Off,
    /// This one.
    Named(T),
}

impl<T> ParserChoice<T> {
    /// The parser, where the template asks for `detected`.
    pub(crate) fn or(self, detected: Option<T>) -> Option<T> {
        match self {
            Self::Detect => detected,
            Self::Off => None,
            Self::Named(parser) => Some(parser),
        }
    }
}

/// Limits on what clients send.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Largest body.
    pub body_bytes: usize,
    /// Bytes of all bodies that are being read or made into prompts.
    pub all_bodies_bytes: usize,
    /// Largest header block.
    pub header_bytes: usize,
    /// Most connections at once.
    pub num_connections: usize,
    /// Longest wait for a request's headers, also on an idle connection.
    pub header_timeout: Duration,
    /// Longest wait for the next piece of a body.
    pub body_timeout: Duration,
    /// Longest wait for a client that does not read its reply.
    pub write_timeout: Duration,
    /// Bytes of a stream that may wait for a client that reads slowly; beyond them it is cut off.
    pub backlog_bytes: usize,
    /// Silence in a stream after which a comment keeps it open.
    pub keep_alive: Duration,
    /// Most token edges of the labels of one decision request.
    pub max_trie_edges: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 32 << 20,
            all_bodies_bytes: 512 << 20,
            header_bytes: 64 << 10,
            num_connections: 4_096,
            header_timeout: Duration::from_secs(60),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(60),
            backlog_bytes: 64 << 20,
            keep_alive: Duration::from_secs(15),
            max_trie_edges: assay_engine::decision::DEFAULT_MAX_TRIE_EDGES,
        }
    }
}
