//! What can go wrong while a tokenizer is built from metadata, or while text is encoded.
//!
//! Every variant names the key, token or text at fault.

use assay_formats::GgufError;

/// Why a tokenizer cannot be built, or a text cannot be encoded.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// A metadata key has another type than its meaning needs.
    #[error(transparent)]
    Metadata(#[from] GgufError),

    /// A key this tokenizer model cannot do without is absent.
    #[error("metadata key `{key}` is missing")]
    MissingKey {
        /// The key.
        key: &'static str,
    },

    /// `tokenizer.ggml.model` names an algorithm we do not have.
    #[error("`tokenizer.ggml.model` is `{model}`; known are gpt2, llama and gemma4")]
    UnknownModel {
        /// The value found.
        model: String,
    },

    /// `tokenizer.ggml.pre` names a pre-tokenizer we do not have, so ids would be a guess.
    #[error("`tokenizer.ggml.pre` is `{pre}`, a pre-tokenizer this version does not know")]
    UnknownPreTokenizer {
        /// The value found.
        pre: String,
    },

    /// Two arrays that describe the same tokens differ in length.
    #[error("`{key}` has {found} elements for {expected} tokens")]
    LengthMismatch {
        /// The shorter or longer array.
        key: &'static str,
        /// Number of tokens.
        expected: usize,
        /// Number of elements found.
        found: usize,
    },

    /// The vocabulary is empty or larger than token ids can count.
    #[error("`tokenizer.ggml.tokens` has {found} elements; between 1 and {max} are possible")]
    VocabSize {
        /// Number of tokens found.
        found: usize,
        /// Most tokens accepted.
        max: usize,
    },

    /// Two ids have the same text, so the text has no single id.
    #[error("`tokenizer.ggml.tokens`: {first} and {second} are both {text:?}")]
    DuplicateToken {
        /// The lower id.
        first: u32,
        /// The higher id.
        second: u32,
        /// The shared text.
        text: String,
    },

    /// `tokenizer.ggml.token_type` holds a number without a meaning.
    #[error("`tokenizer.ggml.token_type`: token {id} has type {found}; 0 to 6 are defined")]
    TokenType {
        /// The token.
        id: u32,
        /// The number found.
        found: i32,
    },

    /// `tokenizer.ggml.scores` holds a number that has no order.
    #[error("`tokenizer.ggml.scores`: token {id} has score {found}")]
    Score {
        /// The token.
        id: u32,
        /// The number found.
        found: f32,
    },

    /// A byte token's text is not exactly `<0xHH>`.
    #[error("`tokenizer.ggml.tokens`: byte token {id} is {text:?}, not `<0xHH>`")]
    ByteToken {
        /// The token.
        id: u32,
        /// Its text.
        text: String,
    },

    /// A merge rule is not two tokens that join to a third.
    #[error("`tokenizer.ggml.merges`: rule {index} is {rule:?}: {problem}")]
    Merge {
        /// Position in the list.
        index: usize,
        /// The rule.
        rule: String,
        /// What is wrong with it.
        problem: &'static str,
    },

    /// A special token id lies outside the vocabulary.
    #[error("`{key}` is {id}, but there are {vocab_size} tokens")]
    SpecialId {
        /// The key.
        key: &'static str,
        /// The id found.
        id: u32,
        /// Number of tokens.
        vocab_size: usize,
    },

    /// The file asks for a special token on every text without naming it.
    #[error("`{flag}` is true, but `{key}` is missing")]
    FlagWithoutToken {
        /// The flag.
        flag: &'static str,
        /// The key that should name the token.
        key: &'static str,
    },

    /// The special tokens cannot be searched for.
    #[error("special tokens: {0}")]
    SpecialTokens(#[from] aho_corasick::BuildError),

    /// The vocabulary has no way to spell a byte of the text.
    #[error("no token spells byte 0x{byte:02x} of the text")]
    Unencodable {
        /// The byte.
        byte: u8,
    },

    /// The text is longer than positions can count.
    #[error("text of {found} bytes; at most {max} can be encoded at once")]
    TextTooLong {
        /// Bytes in the text.
        found: usize,
        /// Most bytes accepted.
        max: usize,
    },
}
