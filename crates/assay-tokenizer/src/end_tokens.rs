//! Which tokens end a generation.
//!
//! The file's own keys come first. Files often name one end token and use another for the end of a turn,
//! so texts that model families publish as ends count too, where the vocabulary has them as structure.

use assay_formats::Metadata;

use crate::error::TokenizerError;
use crate::vocab::{TokenKind, Vocab};

/// Ends of a text, a turn or a tool call, by model family.
const END_TEXTS: [&str; 22] = [
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<turn|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|END_OF_TURN_TOKEN|>",
    "<end_of_utterance>",
    "<|EOT|>",
    "<EOT>",
    "[EOT]",
    "[EOS]",
    "<eos>",
    "<\u{ff5c}end\u{2581}of\u{2581}sentence\u{ff5c}>",
    "[e~[",
    "</s>",
];

/// In harmony-style vocabularies `<|end|>` only separates messages of one reply.
const SEPARATED_BY_END: [&str; 2] = ["<|return|>", "<|call|>"];

/// Reads the id under `key`, checked against the vocabulary.
pub(crate) fn special_id(
    metadata: Metadata<'_>,
    vocab: &Vocab,
    key: &'static str,
) -> Result<Option<u32>, TokenizerError> {
    let id = metadata.u32(key)?;
    match id {
        Some(id) if vocab.kind(id).is_none() => Err(TokenizerError::SpecialId {
            key,
            id,
            vocab_size: vocab.len(),
        }),
        _ => Ok(id),
    }
}

/// Every id that ends a generation, ascending.
pub(crate) fn end_token_ids(
    metadata: Metadata<'_>,
    vocab: &Vocab,
    eos: Option<u32>,
) -> Result<Vec<u32>, TokenizerError> {
    let mut ids = Vec::from_iter(eos);
    for key in ["tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"] {
        ids.extend(special_id(metadata, vocab, key)?);
    }
    let is_structure = |text: &str| match vocab.id(text).and_then(|id| vocab.kind(id)) {
        Some(TokenKind::Control) => true,
        // Gemma has `</s>` among its HTML tags.
        Some(TokenKind::UserDefined) => text != "</s>",
        _ => false,
    };
    let end_separates = SEPARATED_BY_END.into_iter().all(is_structure);
    for text in END_TEXTS {
        if is_structure(text) && !(end_separates && text == "<|end|>") {
            ids.extend(vocab.id(text));
        }
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}
