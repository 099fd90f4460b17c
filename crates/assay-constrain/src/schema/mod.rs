//! What a schema must satisfy before the grammar compiler sees it.
//!
//! The compiler below reads unknown or misplaced keywords as absent; here each is either known to be
//! enforced, known to be an annotation, or refused by name and path.

mod check;
mod endless;
mod formats;
mod keywords;
mod numbers;
mod pointer;
mod rewrite;

use serde_json::Value;

use crate::error::ConstraintError;

/// Longest schema, as compact JSON.
const BYTES_MAX: usize = 256 * 1024;
/// Deepest nesting of arrays and objects.
const DEPTH_MAX: usize = 64;
/// Heights of the root and of every referenced schema together: a bound on how deep following
/// references can recurse.
const TOTAL_DEPTH_MAX: usize = 4096;

/// The schema as compact JSON, members in the given order; the first check of any schema.
pub(crate) fn bounded_text(schema: &Value) -> Result<String, ConstraintError> {
    if pointer::height(schema) > DEPTH_MAX {
        return Err(ConstraintError::TooDeep { limit: DEPTH_MAX });
    }
    let text = schema.to_string();
    if text.len() > BYTES_MAX {
        return Err(ConstraintError::TooLarge {
            what: "schema",
            bytes: text.len(),
            limit: BYTES_MAX,
        });
    }
    Ok(text)
}

/// Checks a schema whose depth is bounded, and writes it the way the compiler reads it: always an
/// object, references without escapes.
pub(crate) fn prepare(schema: &Value) -> Result<Value, ConstraintError> {
    match schema {
        Value::Bool(true) => Ok(Value::Object(serde_json::Map::new())),
        Value::Bool(false) => Err(ConstraintError::Unsatisfiable {
            reason: "the schema is `false`".to_owned(),
        }),
        _ => {
            let references = check::check(schema)?;
            let total_depth = references
                .values()
                .map(|target| pointer::height(target))
                .sum::<usize>()
                + pointer::height(schema);
            if total_depth > TOTAL_DEPTH_MAX {
                return Err(ConstraintError::TooDeep {
                    limit: TOTAL_DEPTH_MAX,
                });
            }
            if let Some(reason) = numbers::inexact_combination(schema) {
                return Err(ConstraintError::Unsupported {
                    keyword: "multipleOf".to_owned(),
                    path: String::new(),
                    reason,
                });
            }
            if let Some(path) = endless::endless(schema) {
                return Err(ConstraintError::Unsatisfiable {
                    reason: format!("`{path}` needs another of itself inside, without end"),
                });
            }
            rewrite::rewrite(schema, &references)
        }
    }
}
