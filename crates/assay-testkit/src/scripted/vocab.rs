//! A vocabulary small enough to read, with every single byte in it.

use assay_models::TokenId;

/// A small vocabulary of bytes for scripted models.
///
/// Ids 0..=255 are the single bytes (so halves of characters are there), then come pieces of several
/// bytes, then one end token that spells nothing.
#[derive(Clone, Debug)]
pub struct ScriptedVocab {
    token_bytes: Vec<Vec<u8>>,
}

impl ScriptedVocab {
    /// The vocabulary with `pieces` after the single bytes.
    pub fn new<T: AsRef<[u8]>>(pieces: impl IntoIterator<Item = T>) -> Self {
        let mut token_bytes: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
        token_bytes.extend(pieces.into_iter().map(|piece| piece.as_ref().to_vec()));
        token_bytes.push(Vec::new());
        Self { token_bytes }
    }

    /// Bytes of each token, by id.
    pub fn token_bytes(&self) -> &[Vec<u8>] {
        &self.token_bytes
    }

    /// Number of tokens, the end token included.
    pub fn vocab_size(&self) -> usize {
        self.token_bytes.len()
    }

    /// The end token.
    pub fn end_token_id(&self) -> TokenId {
        TokenId::try_from(self.token_bytes.len() - 1).expect("a vocabulary is counted by u32")
    }

    /// Tokens that spell `text`, the longest piece first at each place.
    pub fn encode(&self, text: &[u8]) -> Vec<TokenId> {
        let mut token_ids = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (token_id, piece) = (0..)
                .zip(&self.token_bytes)
                .filter(|(_, piece)| !piece.is_empty() && rest.starts_with(piece))
                .max_by_key(|(_, piece)| piece.len())
                .expect("every single byte is a token");
            token_ids.push(token_id);
            rest = &rest[piece.len()..];
        }
        token_ids
    }
}
