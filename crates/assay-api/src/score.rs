//! `POST /v1/score`: the log-probability of each of several continuations of one text.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::error::FieldError;
use crate::fields::Fields;
use crate::json;
use crate::openai::completion_request::read_prompt;
use crate::openai::{Conversation, Prompt, Usage};

/// Most items in one request.
pub const MAX_ITEMS: usize = 1_024;

/// A score request whose fields are well-formed and in range.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoreRequest {
    /// Model asked for; `None` is the served one.
    pub model: Option<String>,
    /// What stands before every item.
    pub context: ScoreContext,
    /// 1 to [`MAX_ITEMS`] continuations.
    pub items: Vec<Prompt>,
    /// Keeps what the prefix cache learns of the context to requests of the same salt; never empty.
    pub cache_salt: Option<String>,
    /// Paths of fields that the server does not know.
    pub ignored: Vec<String>,
}

/// What stands before every item.
#[derive(Clone, Debug, PartialEq)]
pub enum ScoreContext {
    /// Text or token ids; a text begins with the model's beginning token where it has one.
    Query(Prompt),
    /// A conversation, rendered up to the reply that each item is.
    Conversation(Box<Conversation>),
}

impl ScoreRequest {
    /// Reads a request body.
    ///
    /// # Errors
    /// Not JSON, or the first field that is missing, of a wrong type, out of range or not supported.
    pub fn from_json(body: &[u8]) -> Result<Self, FieldError> {
        let mut body = Fields::new("", json::parse(body)?)?;
        let mut ignored = Vec::new();
        let request = Self {
            model: body.string("model")?,
            cache_salt: crate::openai::generation::read_cache_salt(&mut body)?,
            items: read_items(&mut body)?,
            context: read_context(&mut body, &mut ignored)?,
            ignored: Vec::new(),
        };
        ignored.splice(0..0, body.untaken());
        Ok(Self { ignored, ..request })
    }
}

fn read_context(body: &mut Fields, ignored: &mut Vec<String>) -> Result<ScoreContext, FieldError> {
    match body.take("query") {
        None => {
            let conversation = Conversation::read(body, ignored)?;
            Ok(ScoreContext::Conversation(Box::new(conversation)))
        }
        Some(_) if body.take("messages").is_some() => {
            let message =
                "`messages`: may not stand beside `query`: one of them comes before the items";
            Err(FieldError::new("messages", message))
        }
        Some(query) => Ok(ScoreContext::Query(read_prompt("query".to_owned(), query)?)),
    }
}

fn read_items(body: &mut Fields) -> Result<Vec<Prompt>, FieldError> {
    let items: Vec<Value> = body.array("items")?.unwrap_or_default();
    if !(1..=MAX_ITEMS).contains(&items.len()) {
        let message = format!(
            "`items`: must hold 1 to {MAX_ITEMS} items, not {}",
            items.len()
        );
        return Err(FieldError::new("items", message));
    }
    let numbered = items.into_iter().enumerate();
    numbered
        .map(|(index, item)| read_prompt(format!("items[{index}]"), item))
        .collect()
}

/// The scores.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Scores {
    /// Name of the reply.
    pub id: String,
    /// Always `list`.
    #[schemars(extend("const" = "list"))]
    pub object: String,
    /// Seconds since 1970.
    pub created: u64,
    /// The model that scored.
    pub model: String,
    /// In the order of the items.
    pub data: Vec<ItemScore>,
    /// Token counts: of the context with each item.
    pub usage: Usage,
    /// Weights, numerics and version in one short hash.
    pub system_fingerprint: String,
}

/// The score of one item.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ItemScore {
    /// Which item.
    pub index: usize,
    /// Always `score`.
    #[schemars(extend("const" = "score"))]
    pub object: String,
    /// Natural log of the item's probability after the context: the sum of its tokens', in order.
    pub logprob: f64,
    /// Ids of its tokens.
    pub token_ids: Vec<u32>,
    /// Natural log of each token's probability, given all before it; raw.
    pub token_logprobs: Vec<f64>,
    /// Whether at every place its token was the most likely one.
    pub is_greedy: bool,
}
