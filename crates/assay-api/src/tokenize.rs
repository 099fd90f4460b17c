//! `POST /tokenize`, `/detokenize` and `/apply-template`, `GET /tokenizer_info`, in the shapes of vLLM and, for the
//! template, llama.cpp.

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::FieldError;
use crate::fields::Fields;
use crate::json;
use crate::openai::Conversation;
use crate::openai::generation::token_ids;

/// A text or a conversation to be tokenised.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenizeRequest {
    /// Model asked for; `None` is the served one.
    pub model: Option<String>,
    /// What to tokenise.
    pub input: TokenizeInput,
    /// Whether to list texts and bytes of the tokens.
    pub with_pieces: bool,
    /// Paths of fields that the server does not know.
    pub ignored: Vec<String>,
}

/// What to tokenise.
#[derive(Clone, Debug, PartialEq)]
pub enum TokenizeInput {
    /// A text, with the model's beginning token in front if `add_special_tokens`.
    Text {
        /// The text; may be empty.
        prompt: String,
        /// Whether the beginning token is added.
        add_special_tokens: bool,
    },
    /// A conversation, rendered by the model's template.
    Conversation(Box<TemplateRequest>),
}

/// A conversation to be rendered.
#[derive(Clone, Debug, PartialEq)]
pub struct TemplateRequest {
    /// Model asked for; `None` is the served one.
    pub model: Option<String>,
    /// What was said.
    pub conversation: Conversation,
    /// Whether the model's turn is opened.
    pub add_generation_prompt: bool,
    /// Paths of fields that the server does not know.
    pub ignored: Vec<String>,
}

/// Tokens to be spelled.
#[derive(Clone, Debug, PartialEq)]
pub struct DetokenizeRequest {
    /// Model asked for; `None` is the served one.
    pub model: Option<String>,
    /// Not yet checked against a vocabulary; may be empty.
    pub tokens: Vec<u32>,
    /// Paths of fields that the server does not know.
    pub ignored: Vec<String>,
}

impl TokenizeRequest {
    /// Reads a request body.
    ///
    /// # Errors
    /// Not JSON, or the first field that is missing, of a wrong type or not supported.
    pub fn from_json(body: &[u8]) -> Result<Self, FieldError> {
        let mut body = Fields::new("", json::parse(body)?)?;
        let mut ignored = Vec::new();
        let model = body.string("model")?;
        let strings = body.boolean("return_token_strs")?.unwrap_or(false);
        let pieces = body.boolean("with_pieces")?.unwrap_or(false);
        let add_special_tokens = body.boolean("add_special_tokens")?;
        let input = match body.string("prompt")? {
            Some(prompt) => TokenizeInput::Text {
                prompt,
                add_special_tokens: add_special_tokens.unwrap_or(true),
            },
            None if add_special_tokens == Some(true) => {
                let what = "true for a conversation (its template writes them itself)";
                return Err(FieldError::unsupported("add_special_tokens", what));
            }
            None => {
                let request = read_template(&mut body, &mut ignored)?;
                TokenizeInput::Conversation(Box::new(request))
            }
        };
        ignored.splice(0..0, body.untaken());
        Ok(Self {
            model,
            input,
            with_pieces: strings || pieces,
            ignored,
        })
    }
}

impl TemplateRequest {
    /// Reads a request body.
    ///
    /// # Errors
    /// Not JSON, or the first field that is missing, of a wrong type or not supported.
    pub fn from_json(body: &[u8]) -> Result<Self, FieldError> {
        let mut body = Fields::new("", json::parse(body)?)?;
        let mut ignored = Vec::new();
        let model = body.string("model")?;
        let request = read_template(&mut body, &mut ignored)?;
        ignored.splice(0..0, body.untaken());
        Ok(Self {
            model,
            ignored,
            ..request
        })
    }
}

fn read_template(
    body: &mut Fields,
    ignored: &mut Vec<String>,
) -> Result<TemplateRequest, FieldError> {
    let add_generation_prompt = body.boolean("add_generation_prompt")?.unwrap_or(true);
    for name in ["continue_final_message", "chat_template"] {
        body.only(name, "false")?;
    }
    Ok(TemplateRequest {
        model: None,
        conversation: Conversation::read(body, ignored)?,
        add_generation_prompt,
        ignored: Vec::new(),
    })
}

impl DetokenizeRequest {
    /// Reads a request body.
    ///
    /// # Errors
    /// Not JSON, or the first field that is missing or of a wrong type.
    pub fn from_json(body: &[u8]) -> Result<Self, FieldError> {
        let mut body = Fields::new("", json::parse(body)?)?;
        let Some(values) = body.array("tokens")? else {
            return Err(FieldError::new("tokens", "`tokens`: is required"));
        };
        Ok(Self {
            model: body.string("model")?,
            tokens: token_ids("tokens", &values)?,
            ignored: body.untaken().collect(),
        })
    }
}

/// The tokens of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Tokenized {
    /// How many.
    pub count: usize,
    /// Longest prompt and reply together, in tokens.
    pub max_model_len: u32,
    /// Their ids.
    pub tokens: Vec<u32>,
    /// Their texts; null where the request did not ask.
    pub token_strs: Option<Vec<String>>,
    /// Their texts and bytes; present where the request asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pieces: Option<Vec<Piece>>,
}

/// One token as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "TokenPiece")]
pub struct Piece {
    /// Its id.
    pub id: u32,
    /// Its text, or `bytes:\xHH…` where its bytes are not text by themselves.
    pub token: String,
    /// Its raw bytes.
    pub bytes: Vec<u8>,
}

/// What tokens spell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Detokenized {
    /// The text; bytes that are none become U+FFFD.
    pub prompt: String,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// A rendered conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RenderedTemplate {
    /// The prompt that a chat request of the same conversation gets, as people read it: in it, what a message says
    /// can no longer be told from the template's control tokens. `/tokenize` of the conversation can.
    pub prompt: String,
}

/// What clients that tokenise for themselves want to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TokenizerInfo {
    /// Always `assay`.
    #[schemars(extend("const" = "assay"))]
    pub tokenizer_class: String,
    /// Number of token ids.
    pub vocab_size: usize,
    /// Longest prompt and reply together, in tokens.
    pub model_max_length: u32,
    /// The beginning token, as the file writes it.
    pub bos_token: Option<String>,
    /// Its id.
    pub bos_token_id: Option<u32>,
    /// The end token, as the file writes it.
    pub eos_token: Option<String>,
    /// Its id.
    pub eos_token_id: Option<u32>,
    /// Always null: nothing is padded.
    #[schemars(with = "()")]
    pub pad_token: Option<String>,
    /// The token for what cannot be spelled.
    pub unk_token: Option<String>,
    /// Every id that ends a reply.
    pub end_token_ids: Vec<u32>,
    /// Whether a text gets the beginning token.
    pub add_bos_token: bool,
    /// The model's own chat template.
    pub chat_template: Option<String>,
}
