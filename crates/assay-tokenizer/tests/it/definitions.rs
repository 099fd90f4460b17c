//! Tokenizers from small definitions made here: what is refused, and the rules that single files decide.

use assay_formats::gguf::Gguf;
use assay_testkit::gguf_writer::GgufWriter;
use assay_tokenizer::{EncodeOptions, SpecialText, SpecialTokens, Tokenizer, TokenizerError};

const NORMAL: i32 = 1;
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;
const BYTE: i32 = 6;

fn tokenizer(file: &GgufWriter) -> Result<Tokenizer, TokenizerError> {
    let gguf = Gguf::parse(file.build()).unwrap();
    Tokenizer::from_metadata(gguf.metadata())
}

/// A SentencePiece vocabulary: text, score, type.
fn sentencepiece(tokens: &[(&str, f32, i32)]) -> GgufWriter {
    GgufWriter::new()
        .str("tokenizer.ggml.model", "llama")
        .str_array("tokenizer.ggml.tokens", tokens.iter().map(|token| token.0))
        .f32_array(
            "tokenizer.ggml.scores",
            &tokens.iter().map(|token| token.1).collect::<Vec<_>>(),
        )
        .i32_array(
            "tokenizer.ggml.token_type",
            &tokens.iter().map(|token| token.2).collect::<Vec<_>>(),
        )
}

const PIECES: [(&str, f32, i32); 14] = [
    ("<unk>", 0.0, UNKNOWN),
    ("<s>", 0.0, CONTROL),
    ("</s>", 0.0, CONTROL),
    ("<0x41>", 0.0, BYTE),
    ("\u{2581}", -1.0, NORMAL),
    ("a", -2.0, NORMAL),
    ("b", -3.0, NORMAL),
    ("ab", -4.0, NORMAL),
    ("ba", -4.0, NORMAL),
    ("\u{2581}a", -5.0, NORMAL),
    ("<", -6.0, NORMAL),
    ("s", -7.0, NORMAL),
    ("<s", -8.0, NORMAL),
    (">", -9.0, NORMAL),
];

/// A byte-level vocabulary.
fn byte_level(pre: &str) -> GgufWriter {
    GgufWriter::new()
        .str("tokenizer.ggml.model", "gpt2")
        .str("tokenizer.ggml.pre", pre)
        .str_array(
            "tokenizer.ggml.tokens",
            ["a", "b", "ab", "Ġ", "<|x|>", "Ġa"],
        )
        .i32_array(
            "tokenizer.ggml.token_type",
            &[NORMAL, NORMAL, NORMAL, NORMAL, CONTROL, NORMAL],
        )
        .str_array("tokenizer.ggml.merges", ["a b", "Ġ a"])
}

fn check_refused(file: &GgufWriter, named: &[&str]) {
    let error = tokenizer(file).expect_err("a refusal").to_string();
    for name in named {
        assert!(error.contains(name), "{error:?} does not name {name:?}");
    }
}

fn check_ids(tokenizer: &Tokenizer, text: &str, special: SpecialText, expected: &[u32]) {
    let options = EncodeOptions {
        add_special: SpecialTokens::Omit,
        parse_special: special,
    };
    let ids = tokenizer.encode(text, options).unwrap();
    assert_eq!(ids, expected, "{text:?} {special:?}");
}

#[test]
fn fault_177_an_unknown_pre_tokenizer_is_refused_by_name() {
    check_refused(
        &byte_level("brand-new-bpe"),
        &["tokenizer.ggml.pre", "`brand-new-bpe`"],
    );
    check_refused(&byte_level("default"), &["`default`"]);
    let silent = GgufWriter::new()
        .str("tokenizer.ggml.model", "gpt2")
        .str_array("tokenizer.ggml.tokens", ["a"])
        .str_array("tokenizer.ggml.merges", [""; 0]);
    check_refused(&silent, &["tokenizer.ggml.pre", "missing"]);
    check_refused(
        &sentencepiece(&PIECES).str("tokenizer.ggml.pre", "odd"),
        &["`odd`"],
    );
}

#[test]
fn unknown_models_and_broken_definitions_are_refused_by_key() {
    let model = |name: &str| GgufWriter::new().str("tokenizer.ggml.model", name);
    check_refused(&GgufWriter::new(), &["tokenizer.ggml.model", "missing"]);
    check_refused(&model("rwkv"), &["`rwkv`"]);
    check_refused(&model("llama"), &["tokenizer.ggml.tokens", "missing"]);
    check_refused(
        &model("llama").str_array("tokenizer.ggml.tokens", [""; 0]),
        &["0 elements"],
    );
    check_refused(
        &GgufWriter::new().u32("tokenizer.ggml.model", 1),
        &["tokenizer.ggml.model"],
    );

    let tokens = || model("llama").str_array("tokenizer.ggml.tokens", ["a", "b"]);
    check_refused(&tokens(), &["tokenizer.ggml.scores", "missing"]);
    check_refused(
        &tokens().f32_array("tokenizer.ggml.scores", &[0.0]),
        &["scores", "1 elements"],
    );
    check_refused(
        &tokens().f32_array("tokenizer.ggml.scores", &[0.0, f32::NAN]),
        &["token 1", "NaN"],
    );
    check_refused(
        &tokens().i32_array("tokenizer.ggml.token_type", &[1]),
        &["token_type", "1 elements"],
    );
    check_refused(
        &tokens().i32_array("tokenizer.ggml.token_type", &[1, 7]),
        &["token 1", "type 7"],
    );
    check_refused(
        &tokens().i32_array("tokenizer.ggml.token_type", &[1, -1]),
        &["token 1", "type -1"],
    );
    let twice = model("llama").str_array("tokenizer.ggml.tokens", ["a", "b", "a"]);
    check_refused(&twice, &["0 and 2", "\"a\""]);

    let merges = |rules: &[&str]| {
        GgufWriter::new()
            .str("tokenizer.ggml.model", "gpt2")
            .str("tokenizer.ggml.pre", "gpt-2")
            .str_array("tokenizer.ggml.tokens", ["a", "b", "ab"])
            .str_array("tokenizer.ggml.merges", rules)
    };
    check_refused(&merges(&["a b", "ab"]), &["rule 1", "no space"]);
    check_refused(&merges(&["a c"]), &["rule 0", "a part is no token"]);
    check_refused(&merges(&["b a"]), &["joined text is no token"]);
    check_refused(&merges(&[""]), &["rule 0"]);
    check_refused(&merges(&["é"]), &["rule 0"]);
}

#[test]
fn fault_179_byte_tokens_must_be_exact() {
    for text in ["<0x-1>", "<0x100>", "<0x1>", "<0x>", "0x41"] {
        let pieces = [("a", 0.0, NORMAL), (text, 0.0, BYTE)];
        check_refused(&sentencepiece(&pieces), &["byte token 1", text]);
    }
}

#[test]
fn fault_169_an_absent_special_token_is_none() {
    let silent = tokenizer(&sentencepiece(&PIECES)).unwrap();
    assert_eq!(
        (silent.bos(), silent.eos(), silent.unknown()),
        (None, None, None)
    );
    assert_eq!(
        silent.encode("a", EncodeOptions::default()).unwrap(),
        [9],
        "no BOS is made up"
    );

    let named = sentencepiece(&PIECES).u32("tokenizer.ggml.bos_token_id", 1);
    assert_eq!(
        tokenizer(&named)
            .unwrap()
            .encode("a", EncodeOptions::default())
            .unwrap(),
        [1, 9]
    );
    check_refused(
        &sentencepiece(&PIECES).bool("tokenizer.ggml.add_bos_token", true),
        &[
            "tokenizer.ggml.add_bos_token",
            "tokenizer.ggml.bos_token_id",
        ],
    );
    check_refused(
        &sentencepiece(&PIECES).u32("tokenizer.ggml.eos_token_id", 14),
        &["tokenizer.ggml.eos_token_id", "14"],
    );
    check_refused(
        &sentencepiece(&PIECES).i32("tokenizer.ggml.bos_token_id", -1),
        &["tokenizer.ggml.bos_token_id"],
    );
}

#[test]
fn words_never_become_control_tokens() {
    let pieces =
        tokenizer(&sentencepiece(&PIECES).bool("tokenizer.ggml.add_space_prefix", false)).unwrap();
    // "<s" and ">" would join to the text of token 1.
    check_ids(&pieces, "<s>", SpecialText::Literal, &[12, 13]);
    check_ids(&pieces, "<s>", SpecialText::Parse, &[1]);
    let bytes = tokenizer(&byte_level("gpt-2")).unwrap();
    assert!(
        bytes.encode("<|x|>", EncodeOptions::default()).is_err(),
        "no token spells `<`"
    );
    check_ids(&bytes, "ab<|x|> ab", SpecialText::Parse, &[2, 4, 3, 2]);
}

/// Fault kind "turn injection": what a user writes goes through a template and stays words.
#[test]
fn marked_words_stay_words_inside_structure() {
    let file = sentencepiece(&PIECES)
        .bool("tokenizer.ggml.add_space_prefix", false)
        .u32("tokenizer.ggml.unknown_token_id", 0);
    let pieces = tokenizer(&file).unwrap();
    let mark = '\u{FDD0}';
    for words in [
        "",
        "aba",
        "<s>",
        "a<s><s>b",
        "<<s>",
        "ü<s>ü",
        &format!("{mark}"),
        &format!("a{mark}{mark}<{mark}s>"),
        &format!("<s{mark}>{mark}{mark}{mark}<s>"),
    ] {
        let literal = |text: &str| {
            let options = EncodeOptions {
                add_special: SpecialTokens::Omit,
                parse_special: SpecialText::Literal,
            };
            pieces.encode(text, options).unwrap()
        };
        // `<s>` and `</s>` around stand for a template's own control tokens.
        let rendered = format!("<s>{}</s>", pieces.mark_literal(words));
        let expected = [vec![1], literal(words), vec![2]].concat();
        check_ids(&pieces, &rendered, SpecialText::Parse, &expected);
    }
    assert!(matches!(
        pieces.mark_literal("plain"),
        std::borrow::Cow::Borrowed("plain")
    ));
}

#[test]
fn fault_173_fault_174_fault_175_the_prefix_follows_every_special_token() {
    let pieces = tokenizer(&sentencepiece(&PIECES)).unwrap();
    check_ids(&pieces, "<s>a", SpecialText::Parse, &[1, 9]);
    check_ids(&pieces, "<s> a", SpecialText::Parse, &[1, 4, 9]);
    check_ids(&pieces, "<s></s>a", SpecialText::Parse, &[1, 2, 9]);
    check_ids(&pieces, "", SpecialText::Parse, &[]);
    let bare =
        tokenizer(&sentencepiece(&PIECES).bool("tokenizer.ggml.add_space_prefix", false)).unwrap();
    check_ids(&bare, "<s>a", SpecialText::Parse, &[1, 5]);
}

#[test]
fn equal_scores_merge_from_the_left() {
    let bare =
        tokenizer(&sentencepiece(&PIECES).bool("tokenizer.ggml.add_space_prefix", false)).unwrap();
    check_ids(&bare, "aba", SpecialText::Literal, &[7, 5]);
    check_ids(&bare, "bab", SpecialText::Literal, &[8, 6]);
}

#[test]
fn what_cannot_be_spelled_is_its_bytes_the_unknown_token_or_an_error() {
    let bare = || sentencepiece(&PIECES).bool("tokenizer.ggml.add_space_prefix", false);
    check_ids(
        &tokenizer(&bare()).unwrap(),
        "aA",
        SpecialText::Literal,
        &[5, 3],
    );
    let known = bare().u32("tokenizer.ggml.unknown_token_id", 0);
    check_ids(
        &tokenizer(&known).unwrap(),
        "aé",
        SpecialText::Literal,
        &[5, 0],
    );
    let error = tokenizer(&bare())
        .unwrap()
        .encode("aé", EncodeOptions::default())
        .unwrap_err();
    assert!(error.to_string().contains("0xc3"), "{error}");
}

#[test]
fn bytes_of_tokens_are_raw() {
    let pieces = tokenizer(&sentencepiece(&PIECES)).unwrap();
    for (id, expected) in [(1, b"<s>".as_slice()), (3, b"A"), (4, b" "), (9, b" a")] {
        assert_eq!(pieces.token_bytes(id), Some(expected), "token {id}");
    }
    assert_eq!(pieces.token_bytes(14), None);
    assert_eq!(pieces.decode(&[1, 9, 3, 99]), b"<s> aA");
    let bytes = tokenizer(&byte_level("gpt-2")).unwrap();
    assert_eq!(bytes.token_bytes(5), Some(b" a".as_slice()));
}

#[test]
fn every_end_of_generation_token_is_found() {
    let tokens = [
        ("<eos>", 0.0, NORMAL),
        ("<|im_end|>", 0.0, CONTROL),
        ("<|eot_id|>", 0.0, USER_DEFINED),
        ("<|endoftext|>", 0.0, NORMAL),
        ("</s>", 0.0, USER_DEFINED),
        ("x", 0.0, NORMAL),
    ];
    let file = sentencepiece(&tokens)
        .u32("tokenizer.ggml.eos_token_id", 0)
        .u32("tokenizer.ggml.eot_token_id", 5)
        .bool("tokenizer.ggml.add_space_prefix", false);
    let tokenizer = tokenizer(&file).unwrap();
    assert_eq!(tokenizer.end_token_ids(), [0, 1, 2, 5]);
    assert!(tokenizer.is_special(1) && tokenizer.is_special(2) && !tokenizer.is_special(4));
}

#[test]
fn harmony_replies_do_not_end_at_a_message() {
    let tokens = [
        ("<|return|>", 0.0, CONTROL),
        ("<|call|>", 0.0, CONTROL),
        ("<|end|>", 0.0, CONTROL),
    ];
    assert_eq!(
        tokenizer(&sentencepiece(&tokens)).unwrap().end_token_ids(),
        [0, 1]
    );
    assert_eq!(
        tokenizer(&sentencepiece(&tokens[1..]))
            .unwrap()
            .end_token_ids(),
        [0, 1]
    );
}

#[test]
fn the_hash_changes_with_ids_and_bytes_and_not_with_the_template() {
    let hash = |file: &GgufWriter| tokenizer(file).unwrap().hash();
    let first = hash(&sentencepiece(&PIECES));
    assert_eq!(
        first,
        hash(&sentencepiece(&PIECES).str("tokenizer.chat_template", "x"))
    );
    let mut scores = PIECES;
    scores[7].1 = -4.5;
    let mut texts = PIECES;
    texts[7].0 = "aa";
    let mut kinds = PIECES;
    kinds[7].2 = USER_DEFINED;
    for other in [&scores, &texts, &kinds] {
        assert_ne!(first, hash(&sentencepiece(other)));
    }
    assert_ne!(
        first,
        hash(&sentencepiece(&PIECES).u32("tokenizer.ggml.bos_token_id", 1))
    );
    assert_ne!(
        first,
        hash(&sentencepiece(&PIECES).bool("tokenizer.ggml.add_space_prefix", false))
    );
    assert_ne!(hash(&byte_level("gpt-2")), hash(&byte_level("qwen2")));
}
