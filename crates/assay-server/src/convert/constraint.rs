//! `response_format` to what the engine enforces; a schema that cannot be enforced in full is refused here.

use assay_api::FieldError;
use assay_api::openai::ResponseFormat;
use assay_api::openai::response_format::SCHEMA_PATH;
use assay_constrain::{Constraint, ConstraintError};

use crate::error::ApiError;
use crate::model_text::ModelText;

/// Longest message and path of a refusal, in characters: both quote the client's own text.
const MAX_MESSAGE_CHARS: usize = 1_000;
const MAX_PATH_CHARS: usize = 200;

/// Compiles what a format asks for; takes milliseconds, at most seconds.
///
/// # Errors
/// The schema or the model does not allow it, or too many schemas are being compiled.
pub(crate) fn compile(
    format: &ResponseFormat,
    text: &ModelText,
) -> Result<Option<Constraint>, ApiError> {
    let compiled = match format {
        ResponseFormat::Text => return Ok(None),
        ResponseFormat::JsonObject => text
            .constraints()
            .and_then(|factory| factory.compile_json_object()),
        ResponseFormat::JsonSchema(schema) => text
            .constraints()
            .and_then(|factory| factory.compile_json_schema(schema)),
    };
    compiled.map(Some).map_err(refusal)
}

fn refusal(error: ConstraintError) -> ApiError {
    match error {
        ConstraintError::Busy => ApiError::QueueFull,
        error if error.is_callers_fault() => {
            let path: String = error.path().chars().take(MAX_PATH_CHARS).collect();
            let param = format!("{SCHEMA_PATH}{path}");
            let message = format!("`{param}`: {error}");
            FieldError::new(
                param,
                message.chars().take(MAX_MESSAGE_CHARS).collect::<String>(),
            )
            .into()
        }
        error => {
            let message = format!("`response_format`: not possible with this model: {error}");
            FieldError::new("response_format", message).into()
        }
    }
}
