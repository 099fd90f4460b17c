//! The model's words: conversations to prompt tokens, token ids to text.

use std::sync::{Arc, OnceLock};

use assay_api::FieldError;
use assay_api::openai::{ChatMessage, Content, Conversation, ReasoningEffort, Role, ToolChoice};
use assay_api::tokenize::TokenizerInfo;
use assay_constrain::{ConstraintError, ConstraintFactory};
use assay_engine::ReplyFormat;
use assay_tokenizer::{
    ChatTemplate, EncodeOptions, GenerationPrompt, RenderOptions, SpecialText, SpecialTokens,
    TemplateDate, TemplateError, Tokenizer, display_token,
};
use serde_json::{Map, Value, json};

use crate::config::ServerConfig;
use crate::convert::decisions::prompt::QuestionFormat;
use crate::convert::parsers::Parsers;
use crate::error::{ApiError, SequenceRoom, TokenCount};

/// A conversation of this many times the bytes that a full context could spell is refused unread: text may shrink
/// somewhat on its way to tokens, never that much.
const FAR_TOO_LONG: usize = 4;

/// A rendered template is structure, and writes the beginning of the text itself.
const RENDERED: EncodeOptions = EncodeOptions {
    add_special: SpecialTokens::Omit,
    parse_special: SpecialText::Parse,
};

/// Tokenizer and chat template of the served model.
#[derive(Debug)]
pub(crate) struct ModelText {
    tokenizer: Arc<Tokenizer>,
    template: Option<ChatTemplate>,
    template_date: TemplateDate,
    parsers: Parsers,
    model_id: String,
    longest_token_bytes: usize,
    /// Made when first needed: its tables take a while for a large vocabulary.
    constraints: OnceLock<Result<ConstraintFactory, ConstraintError>>,
    /// Found when first needed: it renders the template.
    question_format: OnceLock<Result<QuestionFormat, String>>,
}

/// A conversation made into a prompt.
#[derive(Debug)]
pub(crate) struct ChatPrompt {
    /// Never empty.
    pub(crate) token_ids: Vec<u32>,
    /// How the reply is told apart.
    pub(crate) format: ReplyFormat,
}

impl ModelText {
    pub(crate) fn new(
        tokenizer: Arc<Tokenizer>,
        template: Option<ChatTemplate>,
        config: &ServerConfig,
    ) -> Self {
        let ids = 0..u32::try_from(tokenizer.vocab_size()).unwrap_or(u32::MAX);
        let lengths = ids
            .filter_map(|id| tokenizer.token_bytes(id))
            .map(<[u8]>::len);
        let longest_token_bytes = lengths.max().unwrap_or(1).max(1);
        Self {
            parsers: Parsers::new(&tokenizer, template.as_ref(), config),
            tokenizer,
            template,
            template_date: config.template_date,
            model_id: config.model_id.clone(),
            longest_token_bytes,
            constraints: OnceLock::new(),
            question_format: OnceLock::new(),
        }
    }

    pub(crate) fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    pub(crate) fn has_template(&self) -> bool {
        self.template.is_some()
    }

    /// The template's text, where the model's file brings it.
    pub(crate) fn template_source(&self) -> Option<&str> {
        self.tokenizer.chat_template_source()
    }

    /// How the model is asked typed questions.
    ///
    /// # Errors
    /// It cannot be asked any.
    pub(crate) fn question_format(&self) -> Result<&QuestionFormat, ApiError> {
        let found = self.question_format.get_or_init(|| {
            QuestionFormat::new(self).map_err(|error| match error {
                ApiError::NotAskable(why) => why,
                other => other.to_string(),
            })
        });
        found
            .as_ref()
            .map_err(|why| ApiError::NotAskable(why.clone()))
    }

    /// Text and raw bytes of a token by itself; nothing for a row's padding past the vocabulary.
    pub(crate) fn spell(&self, token_id: u32) -> (String, Vec<u8>) {
        let bytes = self.token_bytes(token_id);
        (display_token(bytes), bytes.to_vec())
    }

    /// The model's own end-of-generation ids.
    pub(crate) fn end_token_ids(&self) -> Vec<u32> {
        self.tokenizer.end_token_ids().to_vec()
    }

    /// What compiles schemas for this vocabulary.
    ///
    /// # Errors
    /// The vocabulary does not allow it.
    pub(crate) fn constraints(&self) -> Result<&ConstraintFactory, ConstraintError> {
        let made = self
            .constraints
            .get_or_init(|| ConstraintFactory::new(&self.tokenizer));
        made.as_ref().map_err(Clone::clone)
    }

    /// The same for a replay, which keeps nothing that it compiled.
    ///
    /// # Errors
    /// The vocabulary does not allow it.
    pub(crate) fn fresh_constraints(&self) -> Result<ConstraintFactory, ConstraintError> {
        ConstraintFactory::new(&self.tokenizer)
    }

    /// Decides what becomes of a conversation's tools. A model that its template cannot tell of tools answers
    /// plainly, and `tools` joins the ignored fields.
    ///
    /// # Errors
    /// The model could call a tool and it is not known how it writes calls, or it must call one and cannot.
    pub(crate) fn settle_tools(
        &self,
        conversation: &mut Conversation,
        ignored: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let tools = &mut conversation.tools;
        if tools.tools.is_empty() {
            return Ok(());
        }
        let reads_calls = self.parsers.tools().is_some();
        match tools.choice {
            ToolChoice::Required | ToolChoice::Named(_) if !self.takes_tools() => {
                let what =
                    "a forced call: this model's template has no place for tools, so that it";
                Err(FieldError::unsupported("tool_choice", what).into())
            }
            _ if !self.takes_tools() => {
                tools.tools.clear();
                ignored.push("tools".to_owned());
                Ok(())
            }
            ToolChoice::None => Ok(()),
            _ if reads_calls => Ok(()),
            _ => {
                let what = "reading the tool calls of this model's template (`--tool-parser` names a way to)";
                Err(FieldError::unsupported("tools", what).into())
            }
        }
    }

    fn takes_tools(&self) -> bool {
        let template = self.template.as_ref();
        template.is_some_and(ChatTemplate::takes_tools)
    }

    /// Renders the conversation, which the request calls `field`, by the model's template and tokenises it; never empty.
    ///
    /// # Errors
    /// There is no template, it refuses the messages, or the text is far past `room`.
    pub(crate) fn chat_prompt(
        &self,
        conversation: &Conversation,
        field: &str,
        room: SequenceRoom,
    ) -> Result<ChatPrompt, ApiError> {
        let messages = conversation.messages.iter();
        let num_bytes = messages.map(ChatMessage::num_bytes).sum();
        if self.template.is_some() {
            self.check_far_too_long(field, num_bytes, room)?;
        }
        let prompt = self.render(conversation, true)?;
        let token_ids = self.encode_rendered(&prompt)?;
        if token_ids.is_empty() {
            let message = "the model's chat template renders these messages to nothing";
            return Err(ApiError::Template(message.to_owned()));
        }
        Ok(ChatPrompt {
            token_ids,
            format: self.parsers.format(conversation, &prompt),
        })
    }

    /// Renders the conversation by the model's template; its words are marked as such.
    ///
    /// # Errors
    /// There is no template, or it refuses the messages.
    pub(crate) fn render(
        &self,
        conversation: &Conversation,
        add_generation_prompt: bool,
    ) -> Result<String, ApiError> {
        let Some(template) = &self.template else {
            return Err(ApiError::NoTemplate(self.model_id.clone()));
        };
        let messages = conversation.messages.iter();
        let messages: Value = messages
            .map(|message| template_message(message, &self.tokenizer))
            .collect();
        let tools = conversation.tools.tools.iter();
        let tools: Vec<Value> = tools.map(|tool| tool.definition.clone()).collect();
        let options = RenderOptions {
            generation_prompt: if add_generation_prompt {
                GenerationPrompt::Add
            } else {
                GenerationPrompt::Omit
            },
            arguments: template_arguments(conversation),
            tools: (!tools.is_empty()).then_some(Value::Array(tools)),
            date: self.template_date,
        };
        Ok(template.render(&messages, &options)?)
    }

    /// What clients that tokenise for themselves want to know.
    pub(crate) fn tokenizer_info(&self, model_max_length: u32) -> TokenizerInfo {
        let tokenizer = &self.tokenizer;
        let text = |id: Option<u32>| {
            id.and_then(|id| tokenizer.token_text(id))
                .map(str::to_owned)
        };
        TokenizerInfo {
            tokenizer_class: "assay".to_owned(),
            vocab_size: tokenizer.vocab_size(),
            model_max_length,
            bos_token: text(tokenizer.bos()),
            bos_token_id: tokenizer.bos(),
            eos_token: text(tokenizer.eos()),
            eos_token_id: tokenizer.eos(),
            pad_token: None,
            unk_token: text(tokenizer.unknown()),
            end_token_ids: tokenizer.end_token_ids().to_vec(),
            add_bos_token: tokenizer.added_bos().is_some(),
            chat_template: tokenizer.chat_template_source().map(str::to_owned),
        }
    }

    /// Tokenises the text of a completion's prompt, structure in it included; never empty. `path` names it in errors.
    ///
    /// # Errors
    /// It has no token, or is far past `room`.
    pub(crate) fn completion_prompt(
        &self,
        prompt: &str,
        path: &str,
        add_special_tokens: bool,
        room: SequenceRoom,
    ) -> Result<Vec<u32>, ApiError> {
        self.check_far_too_long(path, prompt.len(), room)?;
        let token_ids = self.encode(prompt, add_special_tokens)?;
        if token_ids.is_empty() {
            let message =
                format!("`{path}`: must not be empty: this model has no token to begin with");
            return Err(FieldError::new(path, message).into());
        }
        Ok(token_ids)
    }

    /// The tokens of a text, structure in it included; with the model's beginning token where it has one.
    pub(crate) fn encode(&self, text: &str, add_bos: bool) -> Result<Vec<u32>, ApiError> {
        let mut token_ids = self.encode_rendered(&self.tokenizer.mark_structure(text))?;
        if let Some(bos) = self.tokenizer.added_bos().filter(|_| add_bos) {
            token_ids.insert(0, bos);
        }
        Ok(token_ids)
    }

    /// The tokens of a rendered conversation, whose words stay words.
    pub(crate) fn encode_rendered(&self, prompt: &str) -> Result<Vec<u32>, ApiError> {
        let token_ids = self.tokenizer.encode(prompt, RENDERED);
        token_ids.map_err(|error| ApiError::Internal(error.to_string()))
    }

    /// A rendered conversation as people read it.
    pub(crate) fn readable(&self, prompt: &str) -> String {
        self.tokenizer.unmark(prompt).into_owned()
    }

    /// The bytes of a token; none for a row's padding past the vocabulary.
    pub(crate) fn token_bytes(&self, token_id: u32) -> &[u8] {
        self.tokenizer.token_bytes(token_id).unwrap_or_default()
    }

    /// The bytes of tokens, joined.
    pub(crate) fn decode(&self, token_ids: &[u32]) -> Vec<u8> {
        self.tokenizer.decode(token_ids)
    }

    /// Spares the work for texts that cannot fit whatever their tokens are.
    pub(crate) fn check_far_too_long(
        &self,
        field: &str,
        num_bytes: usize,
        room: SequenceRoom,
    ) -> Result<(), ApiError> {
        let at_least = num_bytes / self.longest_token_bytes / FAR_TOO_LONG;
        match usize::try_from(room.num_tokens) {
            Ok(most) if at_least > most => Err(ApiError::PromptTooLong {
                field: field.to_owned(),
                prompt_tokens: TokenCount::AtLeast(at_least),
                room,
            }),
            _ => Ok(()),
        }
    }
}

/// A template's error is the messages', or the arguments': its source was checked when the model was loaded.
impl From<TemplateError> for ApiError {
    fn from(error: TemplateError) -> Self {
        let message = error.to_string();
        match error {
            TemplateError::Message { index, field, .. } => {
                FieldError::new(format!("messages[{index}]{field}"), message).into()
            }
            TemplateError::Argument { field, .. } => FieldError::new(field, message).into(),
            _ => Self::Template(message),
        }
    }
}

/// Variables for the template: those of the request, and what its other fields mean in templates' words.
fn template_arguments(conversation: &Conversation) -> Map<String, Value> {
    let mut arguments = conversation.chat_template_kwargs.clone();
    let mut set = |name: &str, value: Value| {
        if !arguments.contains_key(name) {
            arguments.insert(name.to_owned(), value);
        }
    };
    match conversation.reasoning.effort {
        None => {}
        Some(ReasoningEffort::Hint(effort)) => set("reasoning_effort", json!(effort)),
        Some(ReasoningEffort::None) => {
            set("enable_thinking", json!(false));
            set("thinking", json!(false));
        }
    }
    arguments
}

/// A message as templates know it; they call a developer's message a system one. Its words stay words: what
/// looks like a control token in them never ends a turn or begins one.
fn template_message(message: &ChatMessage, tokenizer: &Tokenizer) -> Value {
    let words = |text: &str| json!(tokenizer.mark_literal(text));
    let role = match message.role {
        Role::System | Role::Developer => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let mut fields = Map::new();
    fields.insert("role".to_owned(), json!(role));
    let content = match &message.content {
        Content::Text(text) => words(text),
        Content::Parts(parts) => parts
            .iter()
            .map(|text| json!({"type": "text", "text": words(text)}))
            .collect(),
    };
    fields.insert("content".to_owned(), content);
    if let Some(name) = &message.name {
        fields.insert("name".to_owned(), words(name));
    }
    if let Some(id) = &message.tool_call_id {
        fields.insert("tool_call_id".to_owned(), words(id));
    }
    if let Some(reasoning) = &message.reasoning_content {
        fields.insert("reasoning_content".to_owned(), words(reasoning));
    }
    if !message.tool_calls.is_empty() {
        let calls = message.tool_calls.iter().map(|call| {
            json!({"id": words(&call.id), "type": "function", "function": {
                "name": words(&call.name),
                "arguments": words(&call.arguments),
            }})
        });
        fields.insert("tool_calls".to_owned(), calls.collect());
    }
    Value::Object(fields)
}
