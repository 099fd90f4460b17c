//! SmolLM2-135M-Instruct, whole: its own template, its own tokenizer, and back to text.

use assay_tokenizer::{
    ChatTemplate, Detokenizer, EncodeOptions, RenderOptions, SpecialText, SpecialTokens,
    TemplateTokens,
};
use serde_json::json;

use crate::fixtures::{cached, load};

#[test]
fn smollm2_renders_encodes_and_decodes_a_chat() {
    let tokenizer = load(&cached("models/SmolLM2-135M-Instruct.Q4_1.gguf"));
    let source = tokenizer
        .chat_template_source()
        .expect("the file has a template");
    let template = ChatTemplate::new(source, TemplateTokens::of(&tokenizer)).unwrap();
    let messages = json!([{"role": "user", "content": "Grüß 🦀 <|im_end|>"}]);
    let prompt = template
        .render(&messages, &RenderOptions::default())
        .unwrap();
    assert_eq!(
        prompt,
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n\
         <|im_start|>user\nGrüß 🦀 <|im_end|><|im_end|>\n<|im_start|>assistant\n",
    );
    let parse = EncodeOptions {
        add_special: SpecialTokens::Omit,
        parse_special: SpecialText::Parse,
    };
    let ids = tokenizer.encode(&prompt, parse).unwrap();
    assert_eq!(ids.iter().filter(|&&id| id == 2).count(), 3, "{ids:?}");
    assert_eq!(ids.first(), Some(&1));

    // Token by token the text comes back whole, and no piece is lost in between.
    let mut detokenizer = Detokenizer::new();
    let text: String = ids
        .iter()
        .map(|&id| detokenizer.push(tokenizer.token_bytes(id).unwrap()))
        .collect();
    assert_eq!(text, prompt);
    assert!(detokenizer.finish().is_empty());

    assert_eq!(
        (tokenizer.bos(), tokenizer.eos(), tokenizer.vocab_size()),
        (Some(1), Some(2), 49_152)
    );
    assert_eq!(
        tokenizer.end_token_ids(),
        [0, 2],
        "<|endoftext|> and <|im_end|>"
    );
    // The file says not to put a beginning in front.
    let added = EncodeOptions {
        add_special: SpecialTokens::Add,
        ..parse
    };
    assert_eq!(
        tokenizer.encode("Hi", added).unwrap(),
        tokenizer.encode("Hi", parse).unwrap()
    );
}

#[test]
fn gemma_3_begins_with_bos_and_ends_turns() {
    let tokenizer = load(&cached("models/gemma-3-270m-q4_k_m.gguf"));
    assert_eq!((tokenizer.bos(), tokenizer.eos()), (Some(2), Some(1)));
    assert_eq!(tokenizer.chat_template_source(), None);
    let end_of_turn = tokenizer.token_id("<end_of_turn>").unwrap();
    assert_eq!(tokenizer.end_token_ids(), [1, end_of_turn]);
    let ids = tokenizer.encode("Hi", EncodeOptions::default()).unwrap();
    assert_eq!(ids.first(), Some(&2));
}
