//! The test vocabulary: the 256 bytes, some pieces of several bytes, two control tokens, and one that
//! prints like a piece; read by the real
//! tokenizer from a GGUF file made here.

use assay_formats::gguf::Gguf;
use assay_testkit::gguf_writer::GgufWriter;
use assay_tokenizer::{ChatTemplate, TemplateTokens, Tokenizer};

/// Pieces after the single bytes: words, stop-like text, halves of characters joined to letters, tags and pieces over
/// their edges.
pub(crate) const PIECES: [&[u8]; 21] = [
    b"Hello",
    b" world",
    b".!",
    b"!x",
    b"end",
    b"\n\n",
    "日".as_bytes(),
    "本語".as_bytes(),
    "é".as_bytes(),
    // The first half of an emoji after a letter, and its second half before one.
    b"a\xf0\x9f",
    b"\x99\x82b",
    b"\xe6\x97",
    b"11",
    b"STOP",
    "Ω".as_bytes(),
    b"<think>",
    b"</think>",
    b" it</think>\n\nis",
    b"k>{\"",
    b"x\n<tool_call>",
    b"all>\n{",
];

/// A piece that a control token is written like.
pub(crate) const OMEGA: u32 = 256 + 14;
/// Opens and closes the reasoning, each in one token.
pub(crate) const THINK: u32 = 256 + 15;
pub(crate) const END_THINK: u32 = 256 + 16;
/// A piece over the edge of the reasoning.
pub(crate) const STRADDLE: u32 = 256 + 17;
/// Ends the prompt.
pub(crate) const GO: u32 = 256 + 21;
/// Ends the reply.
pub(crate) const END: u32 = GO + 1;
/// A control token that is written like [`OMEGA`].
pub(crate) const TWIN: u32 = END + 1;

pub(crate) const TEMPLATE: &str = "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n\
    {% endfor %}{% if shout is defined %}{{ shout }}{% endif %}<|go|>";

pub(crate) fn size() -> usize {
    PIECES.len() + 259
}

pub(crate) fn size_u32() -> u32 {
    TWIN + 1
}

/// Bytes of a token that spells something.
pub(crate) fn bytes(id: u32) -> Vec<u8> {
    match (u8::try_from(id), usize::try_from(id).expect("small")) {
        (Ok(byte), _) => vec![byte],
        (_, index) => PIECES
            .get(index - 256)
            .map_or(Vec::new(), |piece| piece.to_vec()),
    }
}

/// Single bytes as tokens.
pub(crate) fn encode(text: &[u8]) -> Vec<u32> {
    text.iter().map(|byte| u32::from(*byte)).collect()
}

/// The letter that byte-level vocabularies write for a byte.
fn letter(byte: u8) -> char {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    if printable(byte) {
        return char::from(byte);
    }
    let earlier = (0..byte).filter(|byte| !printable(*byte)).count();
    char::from_u32(256 + u32::try_from(earlier).expect("small")).expect("a letter")
}

/// Reads the vocabulary as a model file's.
pub(crate) fn tokenizer() -> Tokenizer {
    let bytes: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
    let spelled = bytes.iter().map(Vec::as_slice).chain(PIECES);
    let mut texts: Vec<String> = spelled
        .map(|bytes| bytes.iter().map(|byte| letter(*byte)).collect())
        .collect();
    let mut kinds = vec![1; texts.len()];
    // Added pieces: matched whole in a prompt.
    for id in [THINK, END_THINK] {
        kinds[usize::try_from(id).expect("small")] = 4;
    }
    texts.extend(["<|go|>".to_owned(), "<|im_end|>".to_owned(), "Ω".to_owned()]);
    kinds.extend([3, 3, 3]);
    let file = GgufWriter::new()
        .str("general.architecture", "llama")
        .str("tokenizer.ggml.model", "gpt2")
        .str("tokenizer.ggml.pre", "gpt-2")
        .str_array("tokenizer.ggml.tokens", texts)
        .i32_array("tokenizer.ggml.token_type", &kinds)
        .str_array("tokenizer.ggml.merges", std::iter::empty::<&str>())
        .u32("tokenizer.ggml.eos_token_id", END)
        .build();
    let gguf = Gguf::parse(file).expect("a valid file");
    Tokenizer::from_metadata(gguf.metadata()).expect("a valid vocabulary")
}

/// The template `source`.
pub(crate) fn template(source: &str) -> ChatTemplate {
    ChatTemplate::new(source, TemplateTokens::of(&tokenizer())).expect("a valid template")
}
