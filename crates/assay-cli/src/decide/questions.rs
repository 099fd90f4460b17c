//! The questions' file: the body of a decision request without its state. Its text goes out as it came in.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// What is asked of every row.
#[derive(Debug)]
pub(super) struct Questions {
    dialect: Dialect,
    /// Members of the body, without the braces.
    members: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Decisions,
    SystemOne,
    Decide,
}

impl Questions {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        Self::parse(&text).with_context(|| format!("--questions {shown}"))
    }

    fn parse(text: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(text).context("not valid JSON")?;
        let text = text.trim();
        let whole_body = |dialect, state: &[&str]| {
            if let Some(name) = state.iter().find(|name| value.get(**name).is_some()) {
                bail!("holds `{name}`, which is the rows' to say");
            }
            let inside = text
                .strip_prefix('{')
                .and_then(|text| text.strip_suffix('}'));
            let members = inside.context("not an object")?.to_owned();
            Ok(Self { dialect, members })
        };
        let only_questions = |dialect| {
            let members = format!("\"questions\":{text}");
            Ok(Self { dialect, members })
        };
        match (value.get("schema"), value.get("questions"), &value) {
            (Some(_), _, _) => whole_body(Dialect::Decide, &["state", "messages"]),
            (None, Some(Value::Array(_)), _) => whole_body(Dialect::Decisions, &["input"]),
            (None, Some(_), _) => whole_body(Dialect::SystemOne, &["state"]),
            (None, None, Value::Array(_)) => only_questions(Dialect::Decisions),
            (None, None, Value::Object(members)) if members.values().all(is_typed) => {
                only_questions(Dialect::SystemOne)
            }
            _ => bail!(
                "neither a body with `questions` or a `schema`, nor a list of questions, nor an object of questions by id"
            ),
        }
    }

    /// Where the requests go.
    pub(super) fn route(&self) -> &'static str {
        match self.dialect {
            Dialect::Decisions => "/v1/decisions",
            Dialect::SystemOne => "/v1/systemone",
            Dialect::Decide => "/v1/decide",
        }
    }

    /// The request about `state`, which is JSON: a string, an object or an array.
    pub(super) fn body(&self, state: &str) -> String {
        let members = &self.members;
        match self.dialect {
            Dialect::Decisions => format!("{{\"input\":{},{members}}}", input(state)),
            Dialect::SystemOne | Dialect::Decide => format!("{{\"state\":{state},{members}}}"),
        }
    }
}

/// The `input` of `/v1/decisions` that is `state`.
pub(crate) fn input(state: &str) -> String {
    if state.starts_with('"') {
        return state.to_owned();
    }
    let part = format!("{{\"type\":\"input_json\",\"data\":{state}}}");
    format!("[{{\"role\":\"user\",\"content\":[{part}]}}]")
}

fn is_typed(question: &Value) -> bool {
    question.get("type").is_some_and(Value::is_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_questions_finds_its_route() {
        for (text, route, body) in [
            (
                "[{\"type\": \"predicate\"}]",
                "/v1/decisions",
                "{\"input\":\"x\",\"questions\":[{\"type\": \"predicate\"}]}",
            ),
            (
                " {\"q\": {\"type\": \"noul\"}} ",
                "/v1/systemone",
                "{\"state\":\"x\",\"questions\":{\"q\": {\"type\": \"noul\"}}}",
            ),
            (
                "{\"questions\": {}, \"readout\": \"code\"}",
                "/v1/systemone",
                "{\"state\":\"x\",\"questions\": {}, \"readout\": \"code\"}",
            ),
            (
                "{\"questions\": []}",
                "/v1/decisions",
                "{\"input\":\"x\",\"questions\": []}",
            ),
            (
                "{\"schema\": {\"const\": 1.0}}",
                "/v1/decide",
                "{\"state\":\"x\",\"schema\": {\"const\": 1.0}}",
            ),
        ] {
            let questions = Questions::parse(text).expect("known");
            assert_eq!(
                (questions.route(), questions.body("\"x\"").as_str()),
                (route, body)
            );
        }
        let structured = Questions::parse("[]").expect("known").body("{\"a\":1.10}");
        let value: Value = serde_json::from_str(&structured).expect("JSON");
        assert_eq!(value["input"][0]["content"][0]["type"], "input_json");
        assert!(structured.contains("1.10"));
        for text in [
            "",
            "5",
            "{\"a\": 1}",
            "{\"schema\": {}, \"state\": 1}",
            "{\"questions\": [], \"input\": 1}",
        ] {
            assert!(Questions::parse(text).is_err(), "{text}");
        }
    }
}
