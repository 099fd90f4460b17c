//! The form that a reply must have to what the engine enforces; what cannot be enforced in full is refused here.

use assay_api::FieldError;
use assay_api::openai::{ReplyForm, ResponseFormat, Tools};
use assay_constrain::{Constraint, ConstraintError, Shape};
use assay_engine::ToolCallFormat;
use serde_json::json;

use super::tool_shapes;
use crate::error::ApiError;
use crate::model_text::ModelText;

/// Longest message and path of a refusal, in characters: both quote the client's own text.
const MAX_MESSAGE_CHARS: usize = 1_000;
const MAX_PATH_CHARS: usize = 200;

/// Compiles what a form asks for; takes milliseconds, at most seconds.
///
/// # Errors
/// The form or the model does not allow it, or too many are being compiled.
pub(crate) fn compile(form: &ReplyForm, text: &ModelText) -> Result<Option<Constraint>, ApiError> {
    if form.format == ResponseFormat::Text {
        return Ok(None);
    }
    let compiled = text.constraints().and_then(|factory| match &form.format {
        ResponseFormat::Text => Ok(None),
        ResponseFormat::JsonObject => factory.compile_json_object().map(Some),
        ResponseFormat::JsonSchema(schema) => factory.compile_json_schema(schema).map(Some),
        ResponseFormat::Regex(regex) => factory.compile_regex(regex).map(Some),
        ResponseFormat::Choice(options) => factory.compile_choice(options).map(Some),
        ResponseFormat::Grammar(grammar) => factory.compile_grammar(grammar).map(Some),
    });
    let field = form.path.split('.').next().unwrap_or(form.path);
    compiled.map_err(|error| refusal(form.path, field, error))
}

/// What holds for a reply that may call tools.
#[derive(Debug, Default)]
pub(crate) struct CallConstraints {
    /// For the reply as a whole.
    pub(crate) reply: Option<Constraint>,
    /// For each call, from its opening tag on.
    pub(crate) call: Option<Constraint>,
}

/// Compiles what a chat may reply where calls of tools, in `format`, are read: calls alone where they are forced;
/// else the form that was asked for, or calls instead. Where any text may come, a strict tool makes that calls, when
/// the model makes some, are valid.
///
/// # Errors
/// As [`compile`], for the tools' schemas as well.
pub(crate) fn compile_with_tools(
    form: &ReplyForm,
    tools: &Tools,
    format: &ToolCallFormat,
    text: &ModelText,
) -> Result<CallConstraints, ApiError> {
    let compiled = |shape: &Shape| {
        let compiled = text
            .constraints()
            .and_then(|factory| factory.compile_shape(shape));
        compiled
            .map(Some)
            .map_err(|error| refusal("", "tools", error))
    };
    let reply = if tools.choice.is_forced() {
        tool_shapes::calls(tools, format)?
    } else {
        match content_shape(form)? {
            Some(content) => Shape::Choice(vec![content, tool_shapes::calls(tools, format)?]),
            None if tools.tools.iter().any(|tool| tool.is_strict) => {
                return Ok(CallConstraints {
                    reply: None,
                    call: compiled(&tool_shapes::bodies(tools, format)?)?,
                });
            }
            None => return Ok(CallConstraints::default()),
        }
    };
    Ok(CallConstraints {
        reply: compiled(&reply)?,
        call: None,
    })
}

/// The form of the content where calls may come instead; `None` is any text.
fn content_shape(form: &ReplyForm) -> Result<Option<Shape>, FieldError> {
    let json = |schema| Shape::Json {
        schema,
        path: form.path.to_owned(),
    };
    Ok(Some(match &form.format {
        ResponseFormat::Text => return Ok(None),
        ResponseFormat::JsonObject => json(json!({"type": "object"})),
        ResponseFormat::JsonSchema(schema) => json(schema.clone()),
        ResponseFormat::Choice(options) if options.iter().all(|option| !option.is_empty()) => {
            Shape::Choice(options.iter().cloned().map(Shape::Literal).collect())
        }
        ResponseFormat::Choice(_) | ResponseFormat::Regex(_) | ResponseFormat::Grammar(_) => {
            let what = "this value beside `tools` that may be called";
            return Err(FieldError::unsupported(form.path, what));
        }
    }))
}

/// The refusal of a form that stands at `path`; `field` is what holds it.
fn refusal(path: &str, field: &str, error: ConstraintError) -> ApiError {
    match error {
        ConstraintError::Busy => ApiError::QueueFull,
        error if error.is_callers_fault() => {
            let place: String = error.path().chars().take(MAX_PATH_CHARS).collect();
            let param = format!("{path}{place}");
            let param = if param.is_empty() {
                field.to_owned()
            } else {
                param
            };
            let message = format!("`{param}`: {error}");
            FieldError::new(
                param,
                message.chars().take(MAX_MESSAGE_CHARS).collect::<String>(),
            )
            .into()
        }
        error => {
            let message = format!("`{field}`: not possible with this model: {error}");
            FieldError::new(field, message).into()
        }
    }
}
