//! Messages as a template wants them.
//!
//! The API allows `content` as text, as a list of parts, or as null, and tool-call arguments as JSON text;
//! templates are written for one of these. What a template can take is found by trying it, once, at load.

use serde_json::{Map, Value as Json, json};

use super::TemplateError;

/// How a template reads `content`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentStyle {
    /// Only text.
    Text,
    /// Only a list of parts.
    Parts,
    /// Either.
    Both,
}

/// How a template reads the arguments of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArgumentsStyle {
    /// As an object.
    Object,
    /// As JSON text.
    Text,
}

/// What a template can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Styles {
    pub(super) content: ContentStyle,
    pub(super) arguments: ArgumentsStyle,
}

/// Text no template contains.
const PROBE: &str = "assay-probe-7d1f";

impl Styles {
    /// Finds the styles by rendering probes; a probe that fails counts as not understood.
    pub(super) fn probe(render: impl Fn(&Json) -> Option<String>) -> Styles {
        let prints = |content: Json| {
            render(&json!([{"role": "user", "content": content}])).is_some_and(|text| {
                text.contains(PROBE) && !text.contains("'type'") && !text.contains("\"type\"")
            })
        };
        let takes_text = prints(json!(PROBE));
        let takes_parts = prints(json!([{"type": "text", "text": PROBE}]));
        let content = match (takes_text, takes_parts) {
            (true, true) => ContentStyle::Both,
            (false, true) => ContentStyle::Parts,
            _ => ContentStyle::Text,
        };
        let call = |arguments: Json| {
            let content = if content == ContentStyle::Parts {
                json!([{"type": "text", "text": "b"}])
            } else {
                json!("b")
            };
            let user = if content.is_string() {
                json!("a")
            } else {
                json!([{"type": "text", "text": "a"}])
            };
            render(&json!([
                {"role": "user", "content": user},
                {"role": "assistant", "content": content, "tool_calls": [
                    {"id": "123456789", "type": "function", "function": {"name": "f", "arguments": arguments}},
                ]},
            ]))
            .unwrap_or_default()
        };
        let object = call(json!({"key": PROBE}));
        // A dictionary printed with single quotes was meant to be text.
        let takes_object = object.contains(PROBE) && !object.contains("{'key'");
        let arguments =
            if !takes_object && call(json!(format!("{{\"key\": \"{PROBE}\"}}"))).contains(PROBE) {
                ArgumentsStyle::Text
            } else {
                ArgumentsStyle::Object
            };
        Styles { content, arguments }
    }

    /// Rewrites `messages` for the template.
    pub(super) fn adapt(self, messages: &Json) -> Result<Json, TemplateError> {
        let Some(messages) = messages.as_array() else {
            return Err(TemplateError::Argument {
                field: "messages".to_owned(),
                problem: "not a list".to_owned(),
            });
        };
        let adapt = |(index, message): (usize, &Json)| {
            self.adapt_message(message)
                .map_err(|(field, problem)| TemplateError::Message {
                    index,
                    field,
                    problem,
                })
        };
        messages.iter().enumerate().map(adapt).collect()
    }

    fn adapt_message(self, message: &Json) -> Result<Json, (String, String)> {
        let Some(message) = message.as_object() else {
            return Err((String::new(), "not an object".to_owned()));
        };
        let mut message = message.clone();
        let content = self.adapt_content(message.get("content").unwrap_or(&Json::Null))?;
        message.insert("content".to_owned(), content);
        match message.get_mut("tool_calls") {
            Some(Json::Array(calls)) => calls.iter_mut().for_each(|call| self.adapt_call(call)),
            // Templates ask whether the key is there.
            Some(Json::Null) => {
                message.shift_remove("tool_calls");
            }
            _ => {}
        }
        Ok(Json::Object(message))
    }

    fn adapt_content(self, content: &Json) -> Result<Json, (String, String)> {
        let part = |text: &str| json!([{"type": "text", "text": text}]);
        match (content, self.content) {
            (Json::Null, ContentStyle::Parts) => Ok(json!([])),
            (Json::Null, _) => Ok(json!("")),
            (Json::String(text), ContentStyle::Parts) => Ok(part(text)),
            (Json::String(_), _) => Ok(content.clone()),
            (Json::Array(parts), ContentStyle::Parts | ContentStyle::Both) => {
                for (index, item) in parts.iter().enumerate() {
                    part_text(index, item)?;
                }
                Ok(content.clone())
            }
            (Json::Array(parts), ContentStyle::Text) => {
                let texts = parts
                    .iter()
                    .enumerate()
                    .map(|(index, item)| part_text(index, item));
                Ok(Json::String(
                    texts.collect::<Result<Vec<_>, _>>()?.join("\n"),
                ))
            }
            _ => Err((
                ".content".to_owned(),
                "not text, a list of parts, or null".to_owned(),
            )),
        }
    }

    /// Arguments that are not what the API says are left for the template to judge.
    fn adapt_call(self, call: &mut Json) {
        let Some(arguments) = call
            .get_mut("function")
            .and_then(|function| function.get_mut("arguments"))
        else {
            return;
        };
        match (self.arguments, &*arguments) {
            (ArgumentsStyle::Object, Json::String(text)) => {
                if let Ok(object @ Json::Object(_)) = serde_json::from_str(text) {
                    *arguments = object;
                } else if text.trim().is_empty() {
                    *arguments = Json::Object(Map::new());
                }
            }
            (ArgumentsStyle::Text, Json::Object(_)) => {
                *arguments = Json::String(arguments.to_string())
            }
            _ => {}
        }
    }
}

/// The text of a part, or where and why it has none.
fn part_text(index: usize, part: &Json) -> Result<&str, (String, String)> {
    let field = |rest: &str| format!(".content[{index}]{rest}");
    match part.get("type").and_then(Json::as_str) {
        Some("text" | "input_text" | "output_text") => part
            .get("text")
            .and_then(Json::as_str)
            .ok_or_else(|| (field(".text"), "not text".to_owned())),
        Some("refusal") => part
            .get("refusal")
            .and_then(Json::as_str)
            .ok_or_else(|| (field(".refusal"), "not text".to_owned())),
        Some(other) => Err((
            field(".type"),
            format!("parts of type `{other}` are not supported"),
        )),
        None => Err((field(".type"), "missing".to_owned())),
    }
}
