//! SentencePiece's BPE: neighbours merge while their joined text is a piece, best score first.
//!
//! Source: Kudo and Richardson 2018 (arXiv 1808.06226). A character that is no piece becomes its bytes.

use assay_formats::Metadata;

use super::merge::{Merge, Merger};
use crate::error::TokenizerError;
use crate::vocab::{SPACE_MARK, Vocab};

const SCORES: &str = "tokenizer.ggml.scores";

/// Scores over a vocabulary.
#[derive(Debug)]
pub(crate) struct SentencePiece {
    /// By id; the best score is the lowest order.
    orders: Vec<u32>,
    byte_ids: [Option<u32>; 256],
    unknown: Option<u32>,
}

impl SentencePiece {
    pub(crate) fn from_metadata(
        metadata: Metadata<'_>,
        vocab: &Vocab,
        unknown: Option<u32>,
    ) -> Result<SentencePiece, TokenizerError> {
        let scores = metadata
            .f32_array(SCORES)?
            .ok_or(TokenizerError::MissingKey { key: SCORES })?;
        if scores.len() != vocab.len() {
            return Err(TokenizerError::LengthMismatch {
                key: SCORES,
                expected: vocab.len(),
                found: scores.len(),
            });
        }
        let orders = (0..)
            .zip(scores)
            .map(|(id, score)| merge_order(score).ok_or(TokenizerError::Score { id, found: score }))
            .collect::<Result<_, _>>()?;
        Ok(SentencePiece {
            orders,
            byte_ids: vocab.byte_tokens(),
            unknown,
        })
    }

    /// Appends the ids of `text`, in which spaces are already marks.
    pub(crate) fn encode(
        &self,
        vocab: &Vocab,
        text: &str,
        ids: &mut Vec<u32>,
    ) -> Result<(), TokenizerError> {
        let mut merger = Merger::default();
        for (start, character) in text.char_indices() {
            let len = character.len_utf8();
            let id = text
                .get(start..start + len)
                .and_then(|piece| vocab.spellable_id(piece));
            merger.push(start as u32, len as u32, id);
        }
        let symbols = merger.run(|left, right| {
            // Neighbours are adjacent in the text, so their joined text is one slice of it.
            let start = left.start as usize;
            let piece = text.get(start..start + left.len as usize + right.len as usize)?;
            let id = vocab.spellable_id(piece)?;
            Some(Merge {
                order: *self.orders.get(id as usize)?,
                id,
            })
        });
        for symbol in symbols {
            if let Some(id) = symbol.id {
                ids.push(id);
                continue;
            }
            self.encode_bytes(symbol.bytes(text), ids)?;
        }
        Ok(())
    }

    fn encode_bytes(&self, bytes: &[u8], ids: &mut Vec<u32>) -> Result<(), TokenizerError> {
        let byte_ids = bytes.iter().map(|&byte| self.byte_ids[usize::from(byte)]);
        match byte_ids.collect::<Option<Vec<u32>>>() {
            Some(byte_ids) => ids.extend(byte_ids),
            None => {
                let byte = bytes.first().copied().unwrap_or_default();
                ids.push(self.unknown.ok_or(TokenizerError::Unencodable { byte })?);
            }
        }
        Ok(())
    }
}

/// Spaces as the vocabulary writes them, with one more in front if asked.
pub(crate) fn mark_spaces(text: &str, prefix: bool) -> String {
    let marked = text.replace(' ', SPACE_MARK);
    if prefix {
        format!("{SPACE_MARK}{marked}")
    } else {
        marked
    }
}

/// An integer that is lower for a better score, or `None` for NaN.
fn merge_order(score: f32) -> Option<u32> {
    if score.is_nan() {
        return None;
    }
    // Adding zero turns -0.0 into 0.0, which compare equal but have other bits.
    let bits = (score + 0.0).to_bits();
    let ascending = if bits >> 31 == 0 {
        bits | 1 << 31
    } else {
        !bits
    };
    Some(!ascending)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_sort_scores_best_first() {
        let scores = [
            f32::INFINITY,
            3.5,
            1.0,
            f32::MIN_POSITIVE,
            0.0,
            -1e-30,
            -1.0,
            -261_635.0,
            f32::NEG_INFINITY,
        ];
        for pair in scores.windows(2) {
            assert!(merge_order(pair[0]) < merge_order(pair[1]), "{pair:?}");
        }
        assert_eq!(merge_order(-0.0), merge_order(0.0));
        assert_eq!(merge_order(f32::NAN), None);
    }
}
