//! The tokenizer of a model file: text to ids and ids to bytes, as the file's own metadata defines them.
//!
//! Where the file is silent and its family has a published default, that default holds; where ids would be
//! a guess, loading fails and names the key.

use std::borrow::Cow;

use assay_formats::Metadata;

use crate::encode::{Alphabet, Bpe, SentencePiece, WholeWords, mark_spaces};
use crate::end_tokens::{end_token_ids, special_id};
use crate::error::TokenizerError;
use crate::fingerprint::Fingerprint;
use crate::literal_text;
use crate::pre_tokenizer::{PreTokenizer, begins_with_bos, takes_whole_words};
use crate::special_text::{Fragment, SpecialMatcher, Strip};
use crate::vocab::{Spelling, TokenKind, Vocab};

const MODEL: &str = "tokenizer.ggml.model";
const PRE: &str = "tokenizer.ggml.pre";
const BOS: &str = "tokenizer.ggml.bos_token_id";
const EOS: &str = "tokenizer.ggml.eos_token_id";
const UNKNOWN: &str = "tokenizer.ggml.unknown_token_id";
const ADD_BOS: &str = "tokenizer.ggml.add_bos_token";
const ADD_EOS: &str = "tokenizer.ggml.add_eos_token";
const ADD_SPACE_PREFIX: &str = "tokenizer.ggml.add_space_prefix";
const CHAT_TEMPLATE: &str = "tokenizer.chat_template";

/// Longest text encoded at once. Marked spaces take three bytes, so positions stay within 32 bits.
const TEXT_BYTES_MAX: usize = 1 << 30;

/// Whether the file's beginning and end tokens are put around the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SpecialTokens {
    /// BOS in front and EOS behind, each where the file's flags ask for it.
    #[default]
    Add,
    /// Only the text's own tokens. Rendered chat templates write BOS themselves.
    Omit,
}

/// What text that looks like a control token becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SpecialText {
    /// The control token: the text is structure, such as a rendered chat template. Words inside it that
    /// [`Tokenizer::mark_literal`] marked stay words.
    Parse,
    /// Ordinary tokens that spell it: the text is words, and can never become a control token.
    #[default]
    Literal,
}

/// How a text is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EncodeOptions {
    /// BOS and EOS around the text.
    pub add_special: SpecialTokens,
    /// Control tokens inside the text.
    pub parse_special: SpecialText,
}

#[derive(Debug)]
enum Model {
    Bpe(Bpe),
    SentencePiece(SentencePiece),
}

/// What is written in front of text that follows nothing or a special token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prefix {
    Nothing,
    Space,
}

/// A model's tokenizer.
#[derive(Debug)]
pub struct Tokenizer {
    vocab: Vocab,
    model: Model,
    /// How spaces are written before the model sees them.
    spelling: Spelling,
    prefix: Prefix,
    all_special: SpecialMatcher,
    user_defined: SpecialMatcher,
    bos: Option<u32>,
    eos: Option<u32>,
    unknown: Option<u32>,
    /// The BOS and EOS that the file's flags put around a text.
    around: (Option<u32>, Option<u32>),
    end_token_ids: Vec<u32>,
    chat_template: Option<String>,
    hash: [u8; 32],
}

impl Tokenizer {
    /// Builds the tokenizer that `metadata` defines.
    ///
    /// **Errors**: every [`TokenizerError`] but the two about texts. **Cost**: up to a second for the
    /// largest vocabularies.
    pub fn from_metadata(metadata: Metadata<'_>) -> Result<Tokenizer, TokenizerError> {
        let model_name = metadata
            .str(MODEL)?
            .ok_or(TokenizerError::MissingKey { key: MODEL })?;
        let spelling = match model_name {
            "gpt2" => Spelling::ByteLevel,
            "llama" | "gemma4" => Spelling::SpaceMark,
            other => {
                return Err(TokenizerError::UnknownModel {
                    model: other.to_owned(),
                });
            }
        };
        let mut vocab = Vocab::from_metadata(metadata, spelling)?;
        let bos = special_id(metadata, &vocab, BOS)?;
        let eos = special_id(metadata, &vocab, EOS)?;
        let unknown = special_id(metadata, &vocab, UNKNOWN)?;
        let end_token_ids = end_token_ids(metadata, &vocab, eos)?;
        for &id in &end_token_ids {
            if vocab.kind(id) == Some(TokenKind::UserDefined) {
                // Words in a prompt must not end a turn, whatever type the converter gave the token.
                vocab.set_kind(id, TokenKind::Control);
            }
        }

        let (model, pre, bos_by_default) = match model_name {
            "gpt2" => {
                let pre = metadata
                    .str(PRE)?
                    .ok_or(TokenizerError::MissingKey { key: PRE })?;
                let whole_words = if takes_whole_words(pre) {
                    WholeWords::Take
                } else {
                    WholeWords::Merge
                };
                let words = PreTokenizer::new(pre)?;
                let bpe =
                    Bpe::from_metadata(metadata, &vocab, words, Alphabet::Bytes, whole_words)?;
                (Model::Bpe(bpe), pre, begins_with_bos(pre))
            }
            "gemma4" => {
                let words = PreTokenizer::new(model_name)?;
                let line_feeds = WholeWords::TakeLineFeeds;
                let bpe =
                    Bpe::from_metadata(metadata, &vocab, words, Alphabet::Characters, line_feeds)?;
                (Model::Bpe(bpe), model_name, true)
            }
            _ => {
                let pre = metadata.str(PRE)?.unwrap_or("default");
                if pre != "default" {
                    return Err(TokenizerError::UnknownPreTokenizer {
                        pre: pre.to_owned(),
                    });
                }
                let pieces = SentencePiece::from_metadata(metadata, &vocab, unknown)?;
                (Model::SentencePiece(pieces), pre, true)
            }
        };
        let prefix = match metadata.bool(ADD_SPACE_PREFIX)?.unwrap_or(true) {
            true if model_name == "llama" => Prefix::Space,
            _ => Prefix::Nothing,
        };
        let around = (
            around_token(metadata, ADD_BOS, bos_by_default, BOS, bos)?,
            around_token(metadata, ADD_EOS, false, EOS, eos)?,
        );
        let strip = strip_rule(metadata)?;
        let always = |kind| kind == TokenKind::UserDefined;
        let special =
            |kind| always(kind) || matches!(kind, TokenKind::Control | TokenKind::Unknown);
        let hash = {
            let mut fingerprint = Fingerprint::new();
            fingerprint.list([model_name, pre].into_iter());
            fingerprint.list(vocab.iter().map(|(_, text, _)| text));
            fingerprint.list(
                vocab
                    .iter()
                    .map(|(_, text, kind)| [kind as u8, strip(text) as u8]),
            );
            let merges = metadata.str_array("tokenizer.ggml.merges")?;
            fingerprint.list(merges.into_iter().flatten());
            let scores = metadata.f32_array("tokenizer.ggml.scores")?;
            let scores = scores.into_iter().flatten();
            fingerprint.list(scores.map(|score| score.to_bits().to_le_bytes()));
            let ids = [bos, eos, unknown, around.0, around.1];
            fingerprint.list(
                ids.iter()
                    .map(|id| id.map_or(Vec::new(), |id| id.to_le_bytes().to_vec())),
            );
            fingerprint.list(end_token_ids.iter().map(|id| id.to_le_bytes()));
            fingerprint.list([[prefix as u8]].into_iter());
            fingerprint.finish()
        };
        Ok(Tokenizer {
            all_special: SpecialMatcher::new(&vocab, special, &strip)?,
            user_defined: SpecialMatcher::new(&vocab, always, &strip)?,
            vocab,
            model,
            spelling,
            prefix,
            bos,
            eos,
            unknown,
            around,
            end_token_ids,
            chat_template: metadata.str(CHAT_TEMPLATE)?.map(str::to_owned),
            hash,
        })
    }

    /// Number of token ids; every id is below it.
    #[must_use]
    pub fn vocab_size(&self) -> usize {
        self.vocab.len()
    }

    /// The token ids of `text`.
    ///
    /// **Errors**: [`TokenizerError::TextTooLong`] past 1 GiB, [`TokenizerError::Unencodable`] where the
    /// vocabulary lacks a byte. **Cost**: O(n log n) in the text's length, whatever it holds.
    pub fn encode(&self, text: &str, options: EncodeOptions) -> Result<Vec<u32>, TokenizerError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(TokenizerError::TextTooLong {
                found: text.len(),
                max: TEXT_BYTES_MAX,
            });
        }
        let (first, last) = match options.add_special {
            SpecialTokens::Add => self.around,
            SpecialTokens::Omit => (None, None),
        };
        let matcher = match options.parse_special {
            SpecialText::Parse => &self.all_special,
            SpecialText::Literal => &self.user_defined,
        };
        let mut ids = Vec::with_capacity(text.len() / 3 + 2);
        ids.extend(first);
        let mut prefix = self.prefix;
        for fragment in matcher.split(text) {
            match fragment {
                Fragment::Token(id) => {
                    ids.push(id);
                    prefix = self.prefix;
                }
                Fragment::Text(text) => {
                    let text = match options.parse_special {
                        SpecialText::Parse => literal_text::unmarked(text),
                        SpecialText::Literal => Cow::Borrowed(text),
                    };
                    self.encode_fragment(&text, prefix, &mut ids)?;
                    prefix = Prefix::Nothing;
                }
            }
        }
        ids.extend(last);
        Ok(ids)
    }

    /// `words` so that no part of them becomes a control token when a text they stand in is encoded with
    /// [`SpecialText::Parse`]; the marks are taken out again there.
    #[must_use]
    pub fn mark_literal<'t>(&'t self, words: &'t str) -> Cow<'t, str> {
        literal_text::marked(
            words,
            self.all_special.begins(words, |id| self.is_special(id)),
        )
    }

    /// `text`, whose control tokens are meant, so that encoding it with [`SpecialText::Parse`] loses no character
    /// that happens to be the mark of [`Tokenizer::mark_literal`].
    #[must_use]
    pub fn mark_structure<'t>(&self, text: &'t str) -> Cow<'t, str> {
        literal_text::marked(text, std::iter::empty())
    }

    /// `text`, to be encoded with [`SpecialText::Parse`], in two: up to the last control token that is written out in it,
    /// with the blanks that this owns, and the rest. Their tokens together are the text's, whatever stands behind.
    #[must_use]
    pub fn split_behind_structure<'t>(&self, text: &'t str) -> (&'t str, &'t str) {
        text.split_at(self.all_special.end_of_last(text, |id| self.is_special(id)))
    }

    /// `text`, in which no control token is written out, with `words` behind it: to be encoded with
    /// [`SpecialText::Parse`], without becoming a control token together.
    #[must_use]
    pub fn join_literal(&self, text: &str, words: &str) -> String {
        let words = self.mark_literal(words);
        let joined = [text, &words].concat();
        let crosses_border = |start| start < text.len();
        let is_control = |id| self.is_special(id);
        if self
            .all_special
            .begins(&joined, is_control)
            .any(crosses_border)
        {
            return literal_text::parted(text, &words);
        }
        joined
    }

    /// A text that holds marked words, as people read it: encoded again, its words are words no longer.
    #[must_use]
    pub fn unmark<'t>(&self, text: &'t str) -> Cow<'t, str> {
        literal_text::unmarked(text)
    }

    fn encode_fragment(
        &self,
        text: &str,
        prefix: Prefix,
        ids: &mut Vec<u32>,
    ) -> Result<(), TokenizerError> {
        let text = match self.spelling {
            Spelling::ByteLevel => Cow::Borrowed(text),
            Spelling::SpaceMark => Cow::Owned(mark_spaces(text, prefix == Prefix::Space)),
        };
        match &self.model {
            Model::Bpe(bpe) => bpe.encode(&self.vocab, &text, ids),
            Model::SentencePiece(pieces) => pieces.encode(&self.vocab, &text, ids),
        }
    }

    /// The token's own raw bytes, or `None` past the vocabulary.
    ///
    /// Byte letters are mapped back, `<0xHH>` is decoded, `▁` is a space; a special token's bytes are its
    /// text. They may be part of a character.
    #[must_use]
    pub fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        self.vocab.token_bytes(id)
    }

    /// The token's text as the file writes it, or `None` past the vocabulary.
    #[must_use]
    pub fn token_text(&self, id: u32) -> Option<&str> {
        self.vocab.text(id)
    }

    /// What the token is for, or `None` past the vocabulary.
    #[must_use]
    pub fn token_kind(&self, id: u32) -> Option<TokenKind> {
        self.vocab.kind(id)
    }

    /// The id whose text in the file is `text`.
    #[must_use]
    pub fn token_id(&self, text: &str) -> Option<u32> {
        self.vocab.id(text)
    }

    /// Whether the token is structure rather than text: control and unknown tokens.
    #[must_use]
    pub fn is_special(&self, id: u32) -> bool {
        matches!(
            self.vocab.kind(id),
            Some(TokenKind::Control | TokenKind::Unknown)
        )
    }

    /// The beginning-of-text token, if the file names one.
    #[must_use]
    pub fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// The beginning-of-text token that [`SpecialTokens::Add`] puts in front of a text, if it does.
    #[must_use]
    pub fn added_bos(&self) -> Option<u32> {
        self.around.0
    }

    /// The end-of-text token, if the file names one.
    #[must_use]
    pub fn eos(&self) -> Option<u32> {
        self.eos
    }

    /// The token for what cannot be spelled, if the file names one.
    #[must_use]
    pub fn unknown(&self) -> Option<u32> {
        self.unknown
    }

    /// Every id that ends a generation, ascending.
    ///
    /// The file's end-of-text, end-of-turn and end-of-message tokens, and the end tokens that model
    /// families publish, where the vocabulary has them as special tokens.
    #[must_use]
    pub fn end_token_ids(&self) -> &[u32] {
        &self.end_token_ids
    }

    /// The bytes of `ids`, joined; ids past the vocabulary add nothing.
    #[must_use]
    pub fn decode(&self, ids: &[u32]) -> Vec<u8> {
        ids.iter()
            .filter_map(|&id| self.token_bytes(id))
            .flatten()
            .copied()
            .collect()
    }

    /// The file's own chat template, if it has one.
    #[must_use]
    pub fn chat_template_source(&self) -> Option<&str> {
        self.chat_template.as_deref()
    }

    /// A stable SHA-256 of what decides ids and bytes; the chat template is no part of it.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        self.hash
    }
}

/// The token that `flag` puts at one end of a text.
fn around_token(
    metadata: Metadata<'_>,
    flag: &'static str,
    default: bool,
    key: &'static str,
    token: Option<u32>,
) -> Result<Option<u32>, TokenizerError> {
    match (metadata.bool(flag)?, token) {
        // A default cannot add a token the file does not name: absent is not some usual id.
        (None, token) => Ok(token.filter(|_| default)),
        (Some(false), _) => Ok(None),
        (Some(true), None) => Err(TokenizerError::FlagWithoutToken { flag, key }),
        (Some(true), token) => Ok(token),
    }
}

/// Phi-3's added tokens own the blanks after them; no key says so, only the model's name.
fn strip_rule(metadata: Metadata<'_>) -> Result<impl Fn(&str) -> Strip + use<>, TokenizerError> {
    let name = metadata
        .str("general.name")?
        .unwrap_or_default()
        .to_ascii_lowercase();
    let is_phi3 = name.contains("phi-3") || name.contains("phi3");
    Ok(move |text: &str| match text {
        "<unk>" | "<s>" | "<|endoftext|>" => Strip::Neither,
        _ if is_phi3 => Strip::Right,
        _ => Strip::Neither,
    })
}
