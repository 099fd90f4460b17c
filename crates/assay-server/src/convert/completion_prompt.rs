//! A completion's prompt: its token ids, and how they spell it.

use assay_api::openai::Prompt;
use assay_engine::{Entry, Pushed, TextEnd, TextPipeline, TokenOutput};

use super::request::{ModelLimits, no_token};
use crate::error::ApiError;
use crate::model_text::ModelText;

/// A prompt in tokens.
#[derive(Clone, Debug)]
pub(crate) struct CompletionPrompt {
    /// Never empty.
    pub(crate) token_ids: Vec<u32>,
    /// Leading bytes of the tokens that are not the prompt's: a beginning token, a space that the vocabulary
    /// puts in front.
    num_foreign_bytes: usize,
}

impl CompletionPrompt {
    /// Tokenises a text; takes ids as they are. `path` names the prompt in errors.
    ///
    /// # Errors
    /// An id is no token's, the prompt has no token, or is far too long.
    pub(crate) fn new(
        prompt: &Prompt,
        path: &str,
        add_special_tokens: bool,
        text: &ModelText,
        limits: ModelLimits,
    ) -> Result<Self, ApiError> {
        match prompt {
            Prompt::TokenIds(token_ids) => {
                let unknown = token_ids.iter().find(|id| **id >= limits.vocab_size);
                if let Some(&id) = unknown {
                    return Err(no_token(path, path, id, limits.vocab_size));
                }
                Ok(Self {
                    token_ids: token_ids.clone(),
                    num_foreign_bytes: 0,
                })
            }
            Prompt::Text(prompt) => {
                let token_ids =
                    text.completion_prompt(prompt, path, add_special_tokens, limits.room)?;
                let spelled = text.decode(&token_ids);
                let is_own = spelled.ends_with(prompt.as_bytes());
                Ok(Self {
                    num_foreign_bytes: if is_own {
                        spelled.len() - prompt.len()
                    } else {
                        0
                    },
                    token_ids,
                })
            }
        }
    }

    /// The prompt as its tokens spell it.
    pub(crate) fn text(&self, text: &ModelText) -> String {
        let spelled = text.decode(&self.token_ids);
        String::from_utf8_lossy(&spelled[self.num_foreign_bytes..]).into_owned()
    }

    /// Spells the tokens one by one.
    pub(crate) fn speller(&self) -> PromptSpeller {
        PromptSpeller {
            num_foreign_bytes: self.num_foreign_bytes,
            ..PromptSpeller::default()
        }
    }
}

/// The text pipeline of replies, for a prompt: tokens in, entries with their text out.
#[derive(Debug)]
pub(crate) struct PromptSpeller {
    pipeline: TextPipeline,
    num_foreign_bytes: usize,
}

impl Default for PromptSpeller {
    fn default() -> Self {
        Self {
            pipeline: TextPipeline::new(&[]),
            num_foreign_bytes: 0,
        }
    }
}

impl PromptSpeller {
    /// Takes the next token; entries that are final now.
    pub(crate) fn push(&mut self, output: TokenOutput, text: &ModelText) -> Vec<Entry> {
        let bytes = text.token_bytes(output.token_id);
        let num_cut = self.num_foreign_bytes.min(bytes.len());
        self.num_foreign_bytes -= num_cut;
        let pushed = self.pipeline.push(output, &bytes[num_cut..]);
        entries(pushed)
    }

    /// The entries that are left when the prompt ends.
    pub(crate) fn finish(&mut self) -> Vec<Entry> {
        entries(self.pipeline.finish(TextEnd::Complete))
    }
}

fn entries(pushed: Pushed) -> Vec<Entry> {
    match pushed {
        Pushed::Continues(entries) | Pushed::Stopped { entries, .. } => entries,
    }
}
