//! The tokens as the matcher sees them: bytes for text, nothing for structure.

use std::sync::Arc;

use llguidance::toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};

use crate::error::ConstraintError;

/// Longest token that the trie's tables can hold.
const TOKEN_BYTES_MAX: usize = u8::MAX as usize;

/// Builds the trie of all tokens. A `None` is structure: it spells nothing, so no text can match it.
///
/// The environment claims no canonical spelling, hence the matcher never forces tokens of its own.
pub(crate) fn token_environment(
    tokens: Vec<Option<Vec<u8>>>,
    end_token_ids: &[u32],
) -> Result<TokEnv, ConstraintError> {
    let vocab_size = u32::try_from(tokens.len()).map_err(|_| ConstraintError::Vocabulary {
        reason: "more tokens than 32 bits count".to_owned(),
    })?;
    let Some(&first_end) = end_token_ids.first() else {
        return Err(ConstraintError::NoEndToken);
    };
    if let Some(id) = end_token_ids.iter().find(|&&id| id >= vocab_size) {
        return Err(ConstraintError::Vocabulary {
            reason: format!("end token {id} is not below the vocabulary size {vocab_size}"),
        });
    }
    let words: Vec<Vec<u8>> = (0..)
        .zip(tokens)
        .map(|(id, bytes)| match bytes {
            // A longer one could only ever be left out; it stays unmatched rather than cut.
            Some(bytes) if bytes.len() <= TOKEN_BYTES_MAX && !end_token_ids.contains(&id) => bytes,
            _ => Vec::new(),
        })
        .collect();
    let trie = TokTrie::from(&TokRxInfo::new(vocab_size, first_end), &words);
    let trie = trie.with_eos_tokens(end_token_ids);
    Ok(Arc::new(ApproximateTokEnv::new(trie)))
}
