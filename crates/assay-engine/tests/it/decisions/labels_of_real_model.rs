//! Labels of the real model's tokenizer: where prompt and label part, what ends them, what codes there are.

use assay_engine::decision::{
    Ending, LabelError, LabelPrompt, LabelQuestion, code_labels, end_token_ids, tokenize_labels,
};
use assay_formats::GgufFile;
use assay_tokenizer::{EncodeOptions, SpecialText, SpecialTokens, Tokenizer};

const CHAT: &str = "<|im_start|>user\nIs it so?<|im_end|>\n<|im_start|>assistant\n";

/// SmolLM2's, whose text holds both kinds of border; tests of it need the real file.
fn real_tokenizer() -> Tokenizer {
    let file = GgufFile::open(&crate::real_model::model_path()).expect("a readable file");
    Tokenizer::from_metadata(file.metadata()).expect("a known tokenizer")
}

fn encode(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    let options = EncodeOptions {
        add_special: SpecialTokens::Omit,
        parse_special: SpecialText::Parse,
    };
    tokenizer.encode(text, options).expect("it encodes")
}

fn ask(tokenizer: &Tokenizer, text: &str, labels: &[&str]) -> Result<LabelQuestion, LabelError> {
    let prompt = LabelPrompt { bos: None, text };
    let ends = end_token_ids(tokenizer, Ending::Turn);
    tokenize_labels(tokenizer, prompt, labels, &ends)
}

/// What stands in prompt, healed bytes and labels is the text, cut as the tokenizer cuts the whole.
fn check_whole(tokenizer: &Tokenizer, text: &str, labels: &[&str], healed: &[u8]) {
    let asked = ask(tokenizer, text, labels).expect("sound labels");
    assert_eq!(asked.healed_bytes, healed, "{text:?} {labels:?}");
    for (label, path) in labels.iter().zip(&asked.labels) {
        let whole = encode(tokenizer, &format!("{text}{label}"));
        assert_eq!(
            [asked.prompt_token_ids.as_slice(), path].concat(),
            whole,
            "{label:?}"
        );
        let bytes = tokenizer.decode(path);
        assert_eq!(bytes, [healed, label.as_bytes()].concat(), "{label:?}");
    }
}

#[test]
fn labels_part_where_the_tokenizer_cuts() {
    let tokenizer = real_tokenizer();
    let words = [
        "Yes",
        "No",
        "Category",
        "Cat",
        "not at all",
        "ünlikely",
        "1",
        "11",
        "真",
    ];
    check_whole(&tokenizer, CHAT, &words, b"");
    check_whole(&tokenizer, "The answer is", &[" yes", " no", "!"], b"");
    // This vocabulary cuts between two line feeds, but a space before a word is the word's, and a word goes on.
    check_whole(&tokenizer, "The answer is ", &["yes", "no"], b" ");
    check_whole(&tokenizer, "It was un", &["likely", "believable"], b" un");
    check_whole(&tokenizer, CHAT, &["\nYes", "No"], b"");
}

#[test]
fn labels_are_words_whatever_they_look_like() {
    let tokenizer = real_tokenizer();
    let asked = ask(&tokenizer, CHAT, &["<|im_end|>", "Yes"]).expect("sound labels");
    let end = tokenizer.token_id("<|im_end|>").expect("it has one");
    assert!(!asked.labels[0].contains(&end));
    assert_eq!(tokenizer.decode(&asked.labels[0]), b"<|im_end|>");
    // Nor does the border make one.
    let asked = ask(&tokenizer, &format!("{CHAT}<|im_"), &["end|>", "x"]).expect("sound labels");
    assert!(asked.labels.iter().all(|label| !label.contains(&end)));
    assert_eq!(asked.end_token_ids, tokenizer.end_token_ids());
}

#[test]
fn labels_that_cannot_be_told_apart() {
    let tokenizer = real_tokenizer();
    assert!(matches!(
        ask(&tokenizer, CHAT, &["a", ""]),
        Err(LabelError::Empty(1))
    ));
    assert!(matches!(
        ask(&tokenizer, CHAT, &["a", "b", "a"]),
        Err(LabelError::Duplicate(0, 2))
    ));
    assert!(matches!(
        ask(&tokenizer, "", &["a", "b"]),
        Err(LabelError::EmptyPrompt)
    ));
    let prompt = LabelPrompt {
        bos: None,
        text: CHAT,
    };
    let error = tokenize_labels(&tokenizer, prompt, &["a"], &[]);
    assert!(matches!(error, Err(LabelError::NoEnd)));
    let ends = end_token_ids(&tokenizer, Ending::Line);
    assert!(ends.is_sorted() && ends.len() > 1);
    for id in ends {
        assert!(
            tokenizer
                .token_bytes(id)
                .expect("a token")
                .starts_with(b"\n")
        );
    }
}

#[test]
fn codes_are_short_distinct_and_equally_long() {
    let tokenizer = real_tokenizer();
    let codes = code_labels(&tokenizer, 4).expect("there are");
    assert_eq!(codes, ["A", "B", "C", "D"]);
    for (count, last) in [(26, Some("Z")), (36, Some("9")), (37, None), (255, None)] {
        let codes = code_labels(&tokenizer, count).expect("there are");
        assert_eq!(codes.len(), count);
        if let Some(last) = last {
            assert_eq!(codes[count - 1], last);
        }
        let texts: Vec<&str> = codes.iter().map(String::as_str).collect();
        let asked = ask(&tokenizer, CHAT, &texts).expect("all distinct");
        let length = asked.labels[0].len();
        assert!(
            asked.labels.iter().all(|label| label.len() == length),
            "{count}"
        );
    }
    assert_eq!(code_labels(&tokenizer, 0), None);
    assert_eq!(code_labels(&tokenizer, 50_000), None);
}
