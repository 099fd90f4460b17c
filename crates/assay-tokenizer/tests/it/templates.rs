//! Every fetched chat template against what Jinja2 renders from it.

use std::fs;

use assay_tokenizer::{ChatTemplate, RenderOptions, TemplateError, TemplateTokens};
use serde_json::{Map, Value as Json};
use sha2::{Digest, Sha256};

use crate::fixtures::cached;

const CONVERSATIONS: &str = include_str!("../data/conversations.json");
const RECORDED: &str = include_str!("../data/chat_templates.json");

/// Jinja2 escapes `<` and quotes here, since adding text to a `safe` value escapes the text.
const ESCAPED_BY_JINJA2: [(&str, &str); 1] = [("meetkai-functionary-medium-v3.1", "tools")];

fn tokens() -> TemplateTokens {
    TemplateTokens {
        bos: Some("<BOS>".into()),
        eos: Some("<EOS>".into()),
        unknown: None,
    }
}

fn options(conversation: &Json) -> RenderOptions {
    RenderOptions {
        tools: conversation.get("tools").cloned(),
        arguments: conversation
            .get("arguments")
            .and_then(Json::as_object)
            .cloned()
            .unwrap_or_else(Map::new),
        ..RenderOptions::default()
    }
}

fn fingerprint(text: &str) -> Json {
    let hash: String = Sha256::digest(text)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Json::from(vec![Json::from(text.len()), Json::from(hash)])
}

#[test]
fn every_template_renders_as_jinja2_does() {
    let conversations: Map<String, Json> = serde_json::from_str(CONVERSATIONS).unwrap();
    let recorded: Map<String, Json> = serde_json::from_str(RECORDED).unwrap();
    assert!(
        recorded.len() >= 70,
        "{} templates recorded",
        recorded.len()
    );
    let mut wrong = Vec::new();
    for (name, expected) in &recorded {
        let source =
            fs::read_to_string(cached(&format!("vectors/templates/{name}.jinja"))).unwrap();
        let template = match ChatTemplate::new(&source, tokens()) {
            Ok(template) => template,
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        for (conversation, content) in &conversations {
            let rendered = template.render(&content["messages"], &options(content));
            let expected = &expected[conversation];
            match &rendered {
                Ok(text) if fingerprint(text) == *expected => {}
                Err(TemplateError::Refused { .. }) if *expected == "refused" => {}
                // Where Jinja2 itself stumbles, on a none it iterates for one, we may do better.
                _ if *expected == "failed" => {}
                Ok(_) if ESCAPED_BY_JINJA2.contains(&(name.as_str(), conversation.as_str())) => {}
                Ok(text) => {
                    if let Ok(folder) = std::env::var("ASSAY_TEST_DUMP") {
                        fs::write(format!("{folder}/{name}.{conversation}"), text).unwrap();
                    }
                    wrong.push(format!(
                        "{name}, {conversation}: {} bytes, not {expected}",
                        text.len()
                    ));
                }
                Err(error) => wrong.push(format!("{name}, {conversation}: {error}")),
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
