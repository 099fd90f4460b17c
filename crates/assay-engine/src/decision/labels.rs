//! From a prompt's text and labels' texts to token paths that part at the right place.
//!
//! A tokenizer may cut prompt and label together otherwise than the prompt alone. Then the question's prompt ends
//! where all of them still agree, and what was taken back is healed: see [`LabelQuestion::healed_bytes`].

use std::collections::BTreeMap;

use assay_models::TokenId;
use assay_tokenizer::{EncodeOptions, SpecialText, SpecialTokens, Tokenizer, TokenizerError};
use thiserror::Error;

use super::request::LabelQuestion;

/// Control tokens in a prompt are meant; what comes in front of it is the caller's to say.
const PROMPT: EncodeOptions = EncodeOptions {
    add_special: SpecialTokens::Omit,
    parse_special: SpecialText::Parse,
};

/// A prompt's text as it is encoded: control tokens in it are meant, words that look like them were marked by
/// [`Tokenizer::mark_literal`].
#[derive(Clone, Copy, Debug)]
pub struct LabelPrompt<'a> {
    /// Token in front of the text, which a rendered chat template writes itself.
    pub bos: Option<TokenId>,
    /// The text up to where the label begins.
    pub text: &'a str,
}

/// Why labels cannot stand behind a prompt.
#[derive(Debug, Error)]
pub enum LabelError {
    /// A label has no text.
    #[error("label {0} is empty")]
    Empty(usize),
    /// Two labels have the same text, or the same tokens.
    #[error("labels {0} and {1} are the same")]
    Duplicate(usize, usize),
    /// The prompt has no token to score a label behind.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// The vocabulary has no token that ends a label.
    #[error("the model's vocabulary has no token that ends a label")]
    NoEnd,
    /// The tokenizer refused a text.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
}

/// The question whether `labels` follow `prompt`, each ended by one of `end_token_ids`. `healed_bytes` is not empty
/// where a label merges with the prompt's end.
///
/// # Errors
/// [`LabelError`], with the labels' indices.
pub fn tokenize_labels(
    tokenizer: &Tokenizer,
    prompt: LabelPrompt<'_>,
    labels: &[&str],
    end_token_ids: &[TokenId],
) -> Result<LabelQuestion, LabelError> {
    if end_token_ids.is_empty() {
        return Err(LabelError::NoEnd);
    }
    if let Some(index) = labels.iter().position(|label| label.is_empty()) {
        return Err(LabelError::Empty(index));
    }
    let (structure, words) = tokenizer.split_behind_structure(prompt.text);
    let mut prompt_token_ids = Vec::from_iter(prompt.bos);
    prompt_token_ids.extend(tokenizer.encode(structure, PROMPT)?);
    let words_alone = tokenizer.encode(words, PROMPT)?;
    let joint: Vec<Vec<TokenId>> = labels
        .iter()
        .map(|label| tokenizer.encode(&tokenizer.join_literal(words, label), PROMPT))
        .collect::<Result<_, _>>()?;
    let num_common = joint
        .iter()
        .map(|joint| num_shared(joint, &words_alone))
        .min()
        .unwrap_or(words_alone.len());
    prompt_token_ids.extend_from_slice(&words_alone[..num_common]);
    if prompt_token_ids.is_empty() {
        return Err(LabelError::EmptyPrompt);
    }
    let labels: Vec<Vec<TokenId>> = joint
        .into_iter()
        .map(|mut joint| joint.split_off(num_common))
        .collect();
    let mut first_of: BTreeMap<&[TokenId], usize> = BTreeMap::new();
    for (index, label) in labels.iter().enumerate() {
        if label.is_empty() {
            return Err(LabelError::Empty(index));
        }
        if let Some(first) = first_of.insert(label, index) {
            return Err(LabelError::Duplicate(first, index));
        }
    }
    Ok(LabelQuestion {
        prompt_token_ids,
        labels,
        end_token_ids: end_token_ids.to_vec(),
        healed_bytes: tokenizer.decode(&words_alone[num_common..]),
    })
}

fn num_shared(a: &[TokenId], b: &[TokenId]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
