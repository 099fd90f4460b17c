//! Byte-pair encoding: a ranked list of merges applied to each pre-tokenised word.
//!
//! Source: Sennrich et al. 2016 (arXiv 1508.07909); the byte alphabet is GPT-2's.

use std::collections::HashMap;

use assay_formats::Metadata;

use super::merge::{Merge, Merger};
use crate::byte_level;
use crate::error::TokenizerError;
use crate::pre_tokenizer::PreTokenizer;
use crate::vocab::{TokenKind, Vocab};

const MERGES: &str = "tokenizer.ggml.merges";

/// What merging starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alphabet {
    /// One letter for each byte of the word.
    Bytes,
    /// Characters; one that is no token falls back to `<0xHH>` tokens.
    Characters,
}

/// Whether a word that is a token is taken as it stands, without merging.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WholeWords {
    /// Always merge.
    Merge,
    /// Take the token, even if no merges lead to it.
    Take,
    /// Take the token if the word is nothing but line feeds.
    TakeLineFeeds,
}

/// Merge rules over a vocabulary.
#[derive(Debug)]
pub(crate) struct Bpe {
    alphabet: Alphabet,
    whole_words: WholeWords,
    pre_tokenizer: PreTokenizer,
    /// By the ids of the pair.
    merges: HashMap<(u32, u32), Merge>,
    /// The token of each single byte: its letter, or its `<0xHH>`.
    byte_ids: [Option<u32>; 256],
}

impl Bpe {
    pub(crate) fn from_metadata(
        metadata: Metadata<'_>,
        vocab: &Vocab,
        pre_tokenizer: PreTokenizer,
        alphabet: Alphabet,
        whole_words: WholeWords,
    ) -> Result<Bpe, TokenizerError> {
        let byte_ids = match alphabet {
            Alphabet::Characters => vocab.byte_tokens(),
            Alphabet::Bytes => {
                let mut ids = [None; 256];
                for (byte, id) in (0..=u8::MAX).zip(&mut ids) {
                    *id = vocab.spellable_id(byte_level::letter(byte).encode_utf8(&mut [0; 4]));
                }
                ids
            }
        };
        let merges = read_merges(metadata, vocab)?;
        Ok(Bpe {
            alphabet,
            whole_words,
            pre_tokenizer,
            merges,
            byte_ids,
        })
    }

    /// Appends the ids of `text`.
    pub(crate) fn encode(
        &self,
        vocab: &Vocab,
        text: &str,
        ids: &mut Vec<u32>,
    ) -> Result<(), TokenizerError> {
        let mut merger = Merger::default();
        let mut letters = String::new();
        for word in self.pre_tokenizer.split(text) {
            if let Some(id) = self.whole_word(vocab, word, &mut letters) {
                ids.push(id);
            } else {
                self.encode_word(vocab, word, &mut merger, ids)?;
            }
        }
        Ok(())
    }

    fn whole_word(&self, vocab: &Vocab, word: &str, letters: &mut String) -> Option<u32> {
        match self.whole_words {
            WholeWords::Merge => return None,
            WholeWords::Take => {}
            WholeWords::TakeLineFeeds if word.bytes().all(|byte| byte == b'\n') => {}
            WholeWords::TakeLineFeeds => return None,
        }
        match self.alphabet {
            Alphabet::Characters => vocab.spellable_id(word),
            Alphabet::Bytes => {
                letters.clear();
                letters.extend(word.bytes().map(byte_level::letter));
                vocab.spellable_id(letters)
            }
        }
    }

    fn encode_word(
        &self,
        vocab: &Vocab,
        word: &str,
        merger: &mut Merger,
        ids: &mut Vec<u32>,
    ) -> Result<(), TokenizerError> {
        merger.clear();
        match self.alphabet {
            Alphabet::Bytes => {
                for (start, byte) in (0..).zip(word.bytes()) {
                    merger.push(start, 1, self.byte_ids[usize::from(byte)]);
                }
            }
            Alphabet::Characters => {
                for (start, character) in word.char_indices() {
                    let mut buffer = [0; 4];
                    let id = vocab.spellable_id(character.encode_utf8(&mut buffer));
                    merger.push(start as u32, character.len_utf8() as u32, id);
                }
            }
        }
        let symbols = merger.run(|left, right| self.merges.get(&(left.id?, right.id?)).copied());
        for symbol in symbols {
            if let Some(id) = symbol.id {
                ids.push(id);
                continue;
            }
            for &byte in symbol.bytes(word) {
                let id = self.byte_ids[usize::from(byte)];
                ids.push(id.ok_or(TokenizerError::Unencodable { byte })?);
            }
        }
        Ok(())
    }
}

/// Merges that would spell a control token are left out: plain text never becomes one.
fn read_merges(
    metadata: Metadata<'_>,
    vocab: &Vocab,
) -> Result<HashMap<(u32, u32), Merge>, TokenizerError> {
    let rules = metadata
        .str_array(MERGES)?
        .ok_or(TokenizerError::MissingKey { key: MERGES })?;
    let mut merges = HashMap::with_capacity(rules.len());
    let mut joined = String::new();
    for (index, rule) in rules.enumerate() {
        let error = |problem| TokenizerError::Merge {
            index,
            rule: rule.to_owned(),
            problem,
        };
        // The left part may itself begin with a space.
        let Some(space) = rule
            .bytes()
            .skip(1)
            .position(|byte| byte == b' ')
            .map(|at| at + 1)
        else {
            return Err(error("no space between two parts"));
        };
        let (left, right) = (&rule[..space], &rule[space + 1..]);
        joined.clear();
        joined.push_str(left);
        joined.push_str(right);
        let id = |text: &str| vocab.id(text);
        let (Some(left), Some(right)) = (id(left), id(right)) else {
            return Err(error("a part is no token"));
        };
        let merged = id(&joined).ok_or_else(|| error("the joined text is no token"))?;
        let order = u32::try_from(index).map_err(|_| error("more rules than ranks"))?;
        if !matches!(
            vocab.kind(merged),
            Some(TokenKind::Control | TokenKind::Unknown | TokenKind::Byte)
        ) {
            // Of two equal rules the first counts.
            merges
                .entry((left, right))
                .or_insert(Merge { order, id: merged });
        }
    }
    Ok(merges)
}
