//! Errors in the System One shape: a list of faults of the body, or one object for everything else.

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::FieldError;

/// A body that cannot be read: `{"detail": [{"loc": ["body", ...], "msg", "type"}]}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ValidationErrors {
    /// The first fault that was found.
    pub detail: Vec<ValidationError>,
}

/// One fault of a body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ValidationError {
    /// `body`, then names of fields and indices.
    pub loc: Vec<Step>,
    /// For people.
    pub msg: String,
    /// Machine-readable: `json_invalid`, `missing` or `value_error`.
    #[serde(rename = "type")]
    pub kind: String,
}

/// One step of the way to a fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "ValidationStep")]
pub enum Step {
    /// A field.
    Name(String),
    /// An element.
    Index(usize),
}

/// Any other error: `{"detail": {"error_type", "message"}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SystemOneError {
    /// The one member.
    pub detail: SystemOneErrorDetail,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SystemOneErrorDetail {
    /// Class of the error.
    pub error_type: String,
    /// For people.
    pub message: String,
}

impl ValidationErrors {
    /// `error` of a body whose questions have these ids.
    pub fn new(error: &FieldError, ids: &[String]) -> Self {
        let mut loc = vec![Step::Name("body".to_owned())];
        let kind = match &error.param {
            None => "json_invalid",
            Some(param) if *error == FieldError::missing(param) => "missing",
            Some(_) => "value_error",
        };
        if let Some(param) = &error.param {
            loc.extend(steps(param, ids));
        }
        let detail = ValidationError {
            loc,
            msg: error.message.clone(),
            kind: kind.to_owned(),
        };
        Self {
            detail: vec![detail],
        }
    }
}

/// The way that `param` writes. Ids and names of options may hold dots: an id is known, and an option ends its way.
fn steps(param: &str, ids: &[String]) -> Vec<Step> {
    let name = |name: &str| Step::Name(name.to_owned());
    if let Some(rest) = param.strip_prefix("questions.") {
        let begins = |id: &&String| {
            let after = rest.strip_prefix(id.as_str());
            after.is_some_and(|after| after.is_empty() || after.starts_with('.'))
        };
        let longest = ids.iter().filter(begins).max_by_key(|id| id.len());
        if let Some(id) = longest {
            let rest = &rest[id.len()..];
            let mut way = vec![name("questions"), name(id)];
            let rest = rest.trim_start_matches('.');
            match rest.split_once('.') {
                Some((field, option)) => way.extend([name(field), name(option)]),
                None => way.extend(indexed(rest)),
            }
            return way;
        }
    }
    param.split('.').flat_map(indexed).collect()
}

/// `name[3]` as a name and an index; nothing of an empty text.
fn indexed(text: &str) -> Vec<Step> {
    let mut parts = text.split(['[', ']']).filter(|part| !part.is_empty());
    let mut way: Vec<Step> = parts
        .next()
        .map(|name| Step::Name(name.to_owned()))
        .into_iter()
        .collect();
    way.extend(parts.map(|part| {
        part.parse()
            .map_or_else(|_| Step::Name(part.to_owned()), Step::Index)
    }));
    way
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn locations_keep_ids_and_options_whole() {
        let ids = ["q", "q.2", "a b"].map(str::to_owned);
        for (param, loc) in [
            ("state", json!(["body", "state"])),
            ("questions", json!(["body", "questions"])),
            ("questions.q", json!(["body", "questions", "q"])),
            ("questions.q.2", json!(["body", "questions", "q.2"])),
            (
                "questions.q.2.type",
                json!(["body", "questions", "q.2", "type"]),
            ),
            (
                "questions.q.criteria[3]",
                json!(["body", "questions", "q", "criteria", 3]),
            ),
            (
                "questions.a b.criteria.v1.0 [x]",
                json!(["body", "questions", "a b", "criteria", "v1.0 [x]"]),
            ),
            ("debias.rotations", json!(["body", "debias", "rotations"])),
        ] {
            let errors = ValidationErrors::new(&FieldError::missing(param), &ids);
            assert_eq!(json!(errors.detail[0].loc), loc, "{param}");
            assert_eq!(errors.detail[0].kind, "missing");
        }
        let errors = ValidationErrors::new(&FieldError::body("not JSON"), &[]);
        assert_eq!(json!(errors.detail[0].loc), json!(["body"]));
        assert_eq!(errors.detail[0].kind, "json_invalid");
    }
}
