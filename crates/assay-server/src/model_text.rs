//! The model's words: conversations to prompt tokens, token ids to text.

use std::sync::Arc;

use assay_api::openai::{ChatCompletionRequest, ChatMessage, Role};
use assay_tokenizer::{
    ChatTemplate, EncodeOptions, SpecialText, SpecialTokens, Tokenizer, display_token,
};
use serde_json::{Map, Value, json};

use crate::error::{ApiError, TokenCount};

/// A prompt of this many times the bytes that a full context could spell is refused unread: text may shrink
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
    model_id: String,
    longest_token_bytes: usize,
}

impl ModelText {
    pub(crate) fn new(
        tokenizer: Arc<Tokenizer>,
        template: Option<ChatTemplate>,
        model_id: &str,
    ) -> Self {
        let ids = 0..u32::try_from(tokenizer.vocab_size()).unwrap_or(u32::MAX);
        let lengths = ids.filter_map(|id| tokenizer.token_bytes(id)).map(<[u8]>::len);
        let longest_token_bytes = lengths.max().unwrap_or(1).max(1);
        Self {
            tokenizer,
            template,
            model_id: model_id.to_owned(),
            longest_token_bytes,
        }
    }

    /// Text and raw bytes of a token by itself; nothing for a row's padding past the vocabulary.
    pub(crate) fn spell(&self, token_id: u32) -> (String, Vec<u8>) {
        let bytes = self.tokenizer.token_bytes(token_id).unwrap_or_default();
        (display_token(bytes), bytes.to_vec())
    }

    /// The model's own end-of-generation ids.
    pub(crate) fn end_token_ids(&self) -> Vec<u32> {
        self.tokenizer.end_token_ids().to_vec()
    }

    /// Renders the conversation by the model's template and tokenises it; never empty.
    ///
    /// # Errors
    /// There is no template, it refuses the messages, or the text is far past `context_length`.
    pub(crate) fn chat_prompt(
        &self,
        chat: &ChatCompletionRequest,
        context_length: u32,
    ) -> Result<Vec<u32>, ApiError> {
        let Some(template) = &self.template else {
            return Err(ApiError::NoTemplate(self.model_id.clone()));
        };
        let messages: Vec<Value> = chat.messages.iter().map(template_message).collect();
        let rendered = template.render(&messages, &chat.chat_template_kwargs);
        let prompt = rendered.map_err(|error| ApiError::Template(error.to_string()))?;
        let at_least = prompt.len() / self.longest_token_bytes / FAR_TOO_LONG;
        if usize::try_from(context_length).is_ok_and(|most| at_least > most) {
            return Err(ApiError::PromptTooLong {
                prompt_tokens: TokenCount::AtLeast(at_least),
                context_length,
            });
        }
        let token_ids = self
            .tokenizer
            .encode(&prompt, RENDERED)
            .map_err(|error| ApiError::Internal(error.to_string()))?;
        if token_ids.is_empty() {
            let message = "it rendered nothing at all";
            return Err(ApiError::Template(message.to_owned()));
        }
        Ok(token_ids)
    }
}

/// A message as templates know it; they call a developer's message a system one.
fn template_message(message: &ChatMessage) -> Value {
    let role = match message.role {
        Role::System | Role::Developer => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let mut fields = Map::new();
    fields.insert("role".to_owned(), json!(role));
    fields.insert("content".to_owned(), json!(message.content));
    if let Some(name) = &message.name {
        fields.insert("name".to_owned(), json!(name));
    }
    if let Some(id) = &message.tool_call_id {
        fields.insert("tool_call_id".to_owned(), json!(id));
    }
    Value::Object(fields)
}
