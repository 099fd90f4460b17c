//! Errors of each dialect, by status.

use assay_api::ErrorBody;
use assay_api::anthropic::MessagesError;
use assay_api::decisions::validation::{SystemOneError, ValidationErrors};
use schemars::generate::SchemaGenerator;
use serde_json::{Map, Value, json};

/// The shape of a route's errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    OpenAi,
    Anthropic,
    SystemOne,
}

/// Status, name, meaning, and whether only requests with a body have it.
const ERRORS: [(u16, &str, &str, bool); 11] = [
    (
        400,
        "BadRequest",
        "The body cannot be read, a field is of a wrong type, out of range or not supported, or the request does not fit the model.",
        true,
    ),
    (401, "Unauthorized", "No key, or a wrong one.", false),
    (
        403,
        "Forbidden",
        "A page of another site asks a server that listens on loopback without a key.",
        false,
    ),
    (404, "NotFound", "No such model or route.", false),
    (
        408,
        "Timeout",
        "The body did not arrive, or the reply was not read, in time.",
        true,
    ),
    (413, "BodyTooLarge", "The body is over the limit.", true),
    (
        415,
        "WrongContentType",
        "The body is not declared as JSON, or encoded in a way that is not taken.",
        true,
    ),
    (429, "TooManyRequests", "Too many requests wait.", true),
    (
        500,
        "InternalError",
        "Our fault; the log tells more under the id that the message names.",
        true,
    ),
    (
        503,
        "Unavailable",
        "The server is shutting down, or its engine does not run.",
        true,
    ),
    (
        504,
        "DeadlineExceeded",
        "The request took longer than the server gives one (`--request-timeout`).",
        true,
    ),
];

impl Dialect {
    fn prefix(self) -> &'static str {
        match self {
            Self::OpenAi => "",
            Self::Anthropic => "Messages",
            Self::SystemOne => "SystemOne",
        }
    }
}

/// References to the errors that a route may answer with, by status.
pub(crate) fn of_route(
    dialect: Dialect,
    has_body: bool,
    is_open: bool,
    is_probe: bool,
) -> Map<String, Value> {
    let mut responses = Map::new();
    for (status, name, _, needs_body) in ERRORS {
        let applies = match status {
            401 => !is_open,
            404 => has_body,
            503 => has_body || is_probe,
            _ => !needs_body || has_body,
        };
        if applies {
            let name = format!("{}{name}", dialect.prefix());
            responses.insert(status.to_string(), reference(&name));
        }
    }
    if dialect == Dialect::SystemOne {
        responses.insert("422".to_owned(), reference("SystemOneValidation"));
    }
    responses
}

/// A reference to a response.
pub(crate) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/responses/{name}")})
}

/// All error responses, by name.
pub(crate) fn responses(generator: &mut SchemaGenerator) -> Map<String, Value> {
    let mut responses = Map::new();
    let bodies = [
        (Dialect::OpenAi, generator.subschema_for::<ErrorBody>()),
        (
            Dialect::Anthropic,
            generator.subschema_for::<MessagesError>(),
        ),
        (
            Dialect::SystemOne,
            generator.subschema_for::<SystemOneError>(),
        ),
    ];
    for (dialect, schema) in bodies {
        for (status, name, meaning, _) in ERRORS {
            let mut headers = json!({"x-request-id": {"$ref": "#/components/headers/RequestId"}});
            match status {
                401 => {
                    headers["WWW-Authenticate"] =
                        json!({"$ref": "#/components/headers/Authenticate"})
                }
                429 | 503 => {
                    headers["Retry-After"] = json!({"$ref": "#/components/headers/RetryAfter"})
                }
                _ => {}
            }
            let response = json!({
                "description": meaning,
                "headers": headers,
                "content": {"application/json": {"schema": schema}},
            });
            responses.insert(format!("{}{name}", dialect.prefix()), response);
        }
    }
    let schema = generator.subschema_for::<ValidationErrors>();
    let response = json!({
        "description": "A field of the body is at fault, told by its place.",
        "headers": {"x-request-id": {"$ref": "#/components/headers/RequestId"}},
        "content": {"application/json": {"schema": schema}},
    });
    responses.insert("SystemOneValidation".to_owned(), response);
    responses
}
