//! The form that a reply must have to what the engine enforces; what cannot be enforced in full is refused here.

use assay_api::FieldError;
use assay_api::openai::{ReplyForm, ResponseFormat};
use assay_constrain::{Constraint, ConstraintError};

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
    compiled.map_err(|error| refusal(form.path, error))
}

/// The refusal of a form that stands at `path`.
fn refusal(path: &str, error: ConstraintError) -> ApiError {
    match error {
        ConstraintError::Busy => ApiError::QueueFull,
        error if error.is_callers_fault() => {
            let place: String = error.path().chars().take(MAX_PATH_CHARS).collect();
            let param = format!("{path}{place}");
            let message = format!("`{param}`: {error}");
            FieldError::new(
                param,
                message.chars().take(MAX_MESSAGE_CHARS).collect::<String>(),
            )
            .into()
        }
        error => {
            let field = path.split('.').next().unwrap_or(path);
            let message = format!("`{field}`: not possible with this model: {error}");
            FieldError::new(field, message).into()
        }
    }
}
