//! Which parsers a model's replies need, found in its template.
//!
//! A template writes earlier replies the way the model writes new ones, so a call of a tool is rendered and
//! looked at. Reasoning is not always written again; its tags stand in the template where it knows of them.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value as Json, json};

/// How a model sets off its reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasoningParser {
    /// `<think>…</think>` before the content.
    Think,
}

/// How a model calls tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolParser {
    /// `<tool_call>{"name": …, "arguments": …}</tool_call>`.
    Hermes,
    /// `<tool_call><function=NAME><parameter=KEY>…`.
    QwenXml,
    /// `{"name": …, "parameters": …}` alone.
    Llama3Json,
}

impl ReasoningParser {
    /// All, with their names.
    pub const ALL: [(&str, ReasoningParser); 1] = [("think", ReasoningParser::Think)];
}

impl ToolParser {
    /// All, with their names.
    pub const ALL: [(&str, ToolParser); 3] = [
        ("hermes", ToolParser::Hermes),
        ("qwen_xml", ToolParser::QwenXml),
        ("llama3_json", ToolParser::Llama3Json),
    ];
}

/// A name that is no parser's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownParser {
    name: String,
    known: Vec<&'static str>,
}

impl std::error::Error for UnknownParser {}

impl fmt::Display for UnknownParser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.known.join(", ");
        write!(f, "no parser is called {:?}; known are {known}", self.name)
    }
}

fn find<T: Copy>(all: &[(&'static str, T)], name: &str) -> Result<T, UnknownParser> {
    let found = all.iter().find(|(known, _)| *known == name);
    found
        .map(|(_, parser)| *parser)
        .ok_or_else(|| UnknownParser {
            name: name.to_owned(),
            known: all.iter().map(|(known, _)| *known).collect(),
        })
}

impl FromStr for ReasoningParser {
    type Err = UnknownParser;

    fn from_str(name: &str) -> Result<Self, UnknownParser> {
        find(&Self::ALL, name)
    }
}

impl FromStr for ToolParser {
    type Err = UnknownParser;

    fn from_str(name: &str) -> Result<Self, UnknownParser> {
        find(&Self::ALL, name)
    }
}

/// The parser for replies of a model with this template.
pub(super) fn find_reasoning(source: &str) -> Option<ReasoningParser> {
    // Either may be written in parts, but not both.
    let has_tags = source.contains("</think>") && source.contains("<think>");
    has_tags.then_some(ReasoningParser::Think)
}

/// Names that no template contains.
const TOOL: &str = "assay_probe_tool";
const KEY: &str = "assay_probe_key";

/// The parser for calls as `render` writes them; it takes messages, tools, and whether to open a reply.
pub(super) fn find_tools(
    render: impl Fn(&Json, &Json, bool) -> Option<String>,
) -> Option<ToolParser> {
    let tools = json!([{"type": "function", "function": {
        "name": TOOL,
        "description": "probe",
        "parameters": {
            "type": "object",
            "properties": {KEY: {"type": "string", "description": "probe"}},
            "required": [KEY],
        },
    }}]);
    let user = json!({"role": "user", "content": "a"});
    let call = json!({"role": "assistant", "content": "", "tool_calls": [
        {"id": "123456789", "type": "function", "function": {"name": TOOL, "arguments": {KEY: "b"}}},
    ]});
    let opening = render(&json!([user]), &tools, true)?;
    let called = render(&json!([user, call]), &tools, false)?;
    // What stands before the call is the prompt, which may tell of formats as well.
    let common = std::iter::zip(opening.bytes(), called.bytes()).take_while(|(a, b)| a == b);
    let mut begin = common.count();
    while !called.is_char_boundary(begin) {
        begin -= 1;
    }
    let written = called.get(begin.saturating_sub("<tool_call>".len())..)?;
    let dense: String = written.chars().filter(|c| !c.is_whitespace()).collect();
    let json_call = |arguments: &str| format!("{{\"name\":\"{TOOL}\",\"{arguments}\":{{\"{KEY}\":");
    if dense.contains(&format!("<tool_call>{}", json_call("arguments"))) {
        return Some(ToolParser::Hermes);
    }
    if dense.contains(&format!("<tool_call><function={TOOL}><parameter={KEY}>")) {
        return Some(ToolParser::QwenXml);
    }
    let reply: String = called
        .get(begin..)?
        .chars()
        .filter(|c| !c.is_whitespace())
        .collect();
    let reply = reply.strip_prefix("<|python_tag|>").unwrap_or(&reply);
    reply
        .starts_with(&json_call("parameters"))
        .then_some(ToolParser::Llama3Json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsers_are_named() {
        assert_eq!("hermes".parse(), Ok(ToolParser::Hermes));
        assert_eq!("think".parse(), Ok(ReasoningParser::Think));
        let error = "xml".parse::<ToolParser>().expect_err("unknown");
        assert_eq!(
            error.to_string(),
            "no parser is called \"xml\"; known are hermes, qwen_xml, llama3_json"
        );
    }
}
