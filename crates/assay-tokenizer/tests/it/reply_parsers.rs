//! Which parsers the fetched chat templates ask for.

use std::collections::BTreeMap;
use std::fs;

use assay_tokenizer::{ChatTemplate, ReasoningParser, TemplateTokens, ToolParser};
use serde_json::{Map, Value as Json};

use crate::fixtures::cached;

const RECORDED: &str = include_str!("../data/chat_templates.json");

fn templates() -> Vec<(String, ChatTemplate)> {
    let recorded: Map<String, Json> = serde_json::from_str(RECORDED).unwrap();
    let names = recorded.into_iter().map(|(name, _)| name);
    names
        .map(|name| {
            let path = cached(&format!("vectors/templates/{name}.jinja"));
            let source = fs::read_to_string(path).unwrap();
            let template = ChatTemplate::new(&source, TemplateTokens::default()).unwrap();
            (name, template)
        })
        .collect()
}

#[test]
fn calls_are_read_as_the_template_writes_them() {
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, template) in templates() {
        let parser = match template.tool_parser() {
            None => continue,
            Some(ToolParser::Hermes) => "hermes",
            Some(ToolParser::QwenXml) => "qwen_xml",
            Some(ToolParser::Llama3Json) => "llama3_json",
        };
        found.entry(parser).or_default().push(name);
    }
    let expected: [(&str, &[&str]); 3] = [
        (
            "hermes",
            &[
                "Bielik-11B-v3.0-Instruct",
                "MiMo-VL",
                "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use",
                "NousResearch-Hermes-3-Llama-3.1-8B-tool_use",
                "Qwen-QwQ-32B",
                "Qwen-Qwen2.5-7B-Instruct",
                "Qwen-Qwen3-0.6B",
                "Reka-Edge",
                "ibm-granite-granite-4.0",
                "ibm-granite-granite-4.1",
            ],
        ),
        (
            "llama3_json",
            &[
                "meta-llama-Llama-3.1-8B-Instruct",
                "meta-llama-Llama-3.2-3B-Instruct",
                "meta-llama-Llama-3.3-70B-Instruct",
            ],
        ),
        (
            "qwen_xml",
            &[
                "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
                "Qwen3-Coder",
                "Qwen3.5-4B",
                "StepFun3.5-Flash",
            ],
        ),
    ];
    for (parser, names) in expected {
        assert_eq!(
            found.get(parser).map_or(&[][..], Vec::as_slice),
            names,
            "{parser}"
        );
    }
}

#[test]
fn models_that_think_are_told_by_their_tags() {
    let thinking: Vec<String> = templates()
        .into_iter()
        .filter(|(_, template)| template.reasoning_parser() == Some(ReasoningParser::Think))
        .map(|(name, _)| name)
        .collect();
    for name in [
        "Qwen-Qwen3-0.6B",
        "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B",
        "Qwen-QwQ-32B",
    ] {
        assert!(
            thinking.iter().any(|known| known == name),
            "{name}: {thinking:?}"
        );
    }
    for name in [
        "Qwen-Qwen2.5-7B-Instruct",
        "meta-llama-Llama-3.1-8B-Instruct",
    ] {
        assert!(thinking.iter().all(|known| known != name), "{name}");
    }
}
