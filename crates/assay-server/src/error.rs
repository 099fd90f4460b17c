//! The one error of the server and its one mapping to status and envelope.
//!
//! Three kinds: the client's fault (4xx, names the field), overload (429 and 503 with a retry hint), and our
//! fault (500, an id is logged, no detail leaves).

use std::fmt;
use std::time::Duration;

use assay_api::{ErrorBody, ErrorObject, FieldError};
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::ledger::NotWritten;
use crate::random::random_u64;

/// Anything a request can be refused with, or fail of.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The body cannot be read as the request it should be.
    #[error("{0}")]
    Field(#[from] FieldError),
    /// Prompt and reply do not fit the context.
    #[error(
        "{room}; {} has {prompt_tokens} and `{field}` asks for {max_tokens}, \
         {} in all: shorten the prompt or ask for at most {} tokens",
        prompt_name(prompt), u64::from(*prompt_tokens) + max_tokens,
        room.num_tokens.saturating_sub(*prompt_tokens)
    )]
    ReplyTooLong {
        /// The field that asked.
        field: &'static str,
        /// The field that the prompt came from.
        prompt: String,
        /// Tokens of the prompt.
        prompt_tokens: u32,
        /// Tokens asked for.
        max_tokens: u64,
        /// Tokens that fit.
        room: SequenceRoom,
    },
    /// The prompt alone leaves no room for a reply.
    #[error(
        "{room} and {} alone has {prompt_tokens}: shorten it",
        prompt_name(field)
    )]
    PromptTooLong {
        /// The field that the prompt came from.
        field: String,
        /// Tokens of the prompt.
        prompt_tokens: TokenCount,
        /// Tokens that fit.
        room: SequenceRoom,
    },
    /// The chat template refused the conversation.
    #[error("{0}")]
    Template(String),
    /// The model has no chat template.
    #[error("the model `{0}` has no chat template: it is not a chat model")]
    NoTemplate(String),
    /// The model answers no typed questions.
    #[error("this model cannot be asked typed questions: {0}")]
    NotAskable(String),
    /// No such model here.
    #[error("the model {name} does not exist here; this server serves `{served}`")]
    UnknownModel {
        /// Quoted name that was asked for.
        name: String,
        /// Name that is served.
        served: String,
    },
    /// No such route.
    #[error("there is no route {0}")]
    UnknownRoute(String),
    /// The route exists, the method does not.
    #[error("{0} is not a method of this route")]
    WrongMethod(String),
    /// Not JSON, or encoded.
    #[error("{0}")]
    WrongContentType(String),
    /// The body is over the limit.
    #[error("the body is larger than {limit_bytes} bytes")]
    BodyTooLarge {
        /// The limit.
        limit_bytes: usize,
    },
    /// The body did not arrive.
    #[error("the body did not arrive in time")]
    BodyTimeout,
    /// The connection broke inside the body.
    #[error("the body ended early, or is not in the encoding that it names")]
    BodyBroken,
    /// No key, or not one of ours.
    #[error("this server needs an API key: send `Authorization: Bearer KEY`")]
    Unauthorized,
    /// A web page of another site asks, through a name that happens to lead here.
    #[error(
        "the {0} header names another site; a server without a key answers requests to this machine's own names only"
    )]
    ForeignSite(&'static str),
    /// Too many requests wait.
    #[error("too many requests are waiting; try again soon")]
    QueueFull,
    /// The server is on its way down.
    #[error("the server is shutting down and takes no new work")]
    Draining,
    /// The time to finish what runs was over.
    #[error("the server shut down before the reply was complete")]
    CutOff,
    /// The engine does not run.
    #[error("the engine is not running")]
    EngineStopped,
    /// More scores of named tokens than one reply may hold.
    #[error(
        "the reply holds more than {limit} scores: ask for fewer at each token, generate less, or stream it"
    )]
    TooManyScores {
        /// The limit.
        limit: usize,
    },
    /// The server's own limit on time.
    #[error("the request took longer than the {} s that this server gives one (--request-timeout)", timeout.as_secs_f64())]
    DeadlineExceeded {
        /// The limit.
        timeout: Duration,
    },
    /// A stream waited for its client beyond what may be kept.
    #[error("the stream was read too slowly: more than {limit_bytes} bytes of it were waiting")]
    ReadTooSlowly {
        /// The limit.
        limit_bytes: usize,
    },
    /// A value that is not a number stood in the model's output.
    #[error("numerical error: the model's output was not a number at position {position}")]
    NumericalError {
        /// Position of the row.
        position: u32,
    },
    /// A reply came to where the request's own constraint lets no token follow, or costs too much to follow.
    #[error("a reply could not go on under the request's constraint: {0}")]
    DeadEnd(String),
    /// The answer is not in the ledger, so it is not given.
    #[error(
        "the answer could not be written to this server's ledger, so it is not given; the server's log tells why"
    )]
    NotLogged(#[from] NotWritten),
    /// Anything else; the text goes to the log only.
    #[error("{0}")]
    Internal(String),
}

/// Tokens that a prompt and its reply may have together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceRoom {
    /// So many.
    pub num_tokens: u32,
    /// The context, in tokens; more than `num_tokens` where the KV memory holds less.
    pub context_length: u32,
}

impl fmt::Display for SequenceRoom {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let Self {
            num_tokens,
            context_length,
        } = self;
        if num_tokens >= context_length {
            return write!(formatter, "the context holds {num_tokens} tokens");
        }
        write!(
            formatter,
            "the context has {context_length} tokens, but this server's KV memory (--kv-memory) holds {num_tokens}"
        )
    }
}

/// A number of tokens, which a prompt that is far too long is not worth finding out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenCount {
    /// Counted.
    Exactly(usize),
    /// Bounded from below.
    AtLeast(usize),
}

impl fmt::Display for TokenCount {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Exactly(count) => write!(formatter, "{count}"),
            Self::AtLeast(count) => write!(formatter, "at least {count}"),
        }
    }
}

/// A prompt as messages call it: by its place, where there are several.
fn prompt_name(field: &str) -> String {
    if field.contains('[') {
        format!("`{field}`")
    } else {
        "the prompt".to_owned()
    }
}

/// How long a client should wait, in seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

const CLIENT: &str = "invalid_request_error";
const SERVER: &str = "server_error";
const OVERLOADED: &str = "overloaded_error";

impl ApiError {
    /// Status, class, code and field of this error.
    fn facts(&self) -> (StatusCode, &'static str, Option<&'static str>, Option<&str>) {
        use StatusCode as S;
        match self {
            Self::Field(error) => (S::BAD_REQUEST, CLIENT, None, error.param.as_deref()),
            Self::ReplyTooLong { field, .. } => (
                S::BAD_REQUEST,
                CLIENT,
                Some("context_length_exceeded"),
                Some(field),
            ),
            Self::PromptTooLong { field, .. } => (
                S::BAD_REQUEST,
                CLIENT,
                Some("context_length_exceeded"),
                Some(field),
            ),
            Self::Template(_) => (S::BAD_REQUEST, CLIENT, None, Some("messages")),
            Self::NotAskable(_) => (
                S::BAD_REQUEST,
                CLIENT,
                Some("model_not_askable"),
                Some("model"),
            ),
            Self::NoTemplate(_) => (S::BAD_REQUEST, CLIENT, None, Some("model")),
            Self::UnknownModel { .. } => {
                (S::NOT_FOUND, CLIENT, Some("model_not_found"), Some("model"))
            }
            Self::UnknownRoute(_) => (S::NOT_FOUND, CLIENT, Some("unknown_route"), None),
            Self::WrongMethod(_) => (S::METHOD_NOT_ALLOWED, CLIENT, None, None),
            Self::WrongContentType(_) => (S::UNSUPPORTED_MEDIA_TYPE, CLIENT, None, None),
            Self::BodyTooLarge { .. } => (S::PAYLOAD_TOO_LARGE, CLIENT, None, None),
            Self::BodyTimeout => (S::REQUEST_TIMEOUT, CLIENT, None, None),
            Self::BodyBroken => (S::BAD_REQUEST, CLIENT, None, None),
            Self::Unauthorized => (S::UNAUTHORIZED, CLIENT, Some("invalid_api_key"), None),
            Self::ForeignSite(_) => (S::FORBIDDEN, CLIENT, Some("foreign_site"), None),
            Self::QueueFull => (S::TOO_MANY_REQUESTS, OVERLOADED, Some("queue_full"), None),
            Self::Draining | Self::CutOff => (
                S::SERVICE_UNAVAILABLE,
                OVERLOADED,
                Some("shutting_down"),
                None,
            ),
            Self::EngineStopped => (S::SERVICE_UNAVAILABLE, SERVER, Some("engine_stopped"), None),
            Self::NumericalError { .. } => (
                S::INTERNAL_SERVER_ERROR,
                SERVER,
                Some("numerical_error"),
                None,
            ),
            Self::TooManyScores { .. } => (S::BAD_REQUEST, CLIENT, Some("too_many_scores"), None),
            Self::ReadTooSlowly { .. } => {
                (S::REQUEST_TIMEOUT, CLIENT, Some("read_too_slowly"), None)
            }
            Self::DeadlineExceeded { .. } => {
                (S::GATEWAY_TIMEOUT, SERVER, Some("deadline_exceeded"), None)
            }
            Self::DeadEnd(_) => (S::BAD_REQUEST, CLIENT, Some("constraint_dead_end"), None),
            Self::NotLogged(_) => (S::INTERNAL_SERVER_ERROR, SERVER, Some("not_logged"), None),
            Self::Internal(_) => (
                S::INTERNAL_SERVER_ERROR,
                SERVER,
                Some("internal_error"),
                None,
            ),
        }
    }

    /// The status and the envelope; an internal error is logged here, under the id that the client gets.
    pub fn to_reply(&self) -> (StatusCode, ErrorBody) {
        let (status, kind, code, param) = self.facts();
        let message = match self {
            Self::Internal(detail) => {
                let error_id = format!("err-{:016x}", random_u64());
                tracing::error!(error_id, detail, "internal error");
                format!("internal error; the server's log tells more under {error_id}")
            }
            other => other.to_string(),
        };
        let error = ErrorObject {
            message,
            kind: kind.to_owned(),
            param: param.map(str::to_owned),
            code: code.map(str::to_owned),
        };
        (status, ErrorBody { error })
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, body) = self.to_reply();
        let mut response = (status, Json(&body)).into_response();
        // For the routes whose errors have another envelope.
        response.extensions_mut().insert(body);
        let headers = response.headers_mut();
        match self {
            Self::QueueFull | Self::Draining | Self::CutOff | Self::EngineStopped => {
                headers.insert(header::RETRY_AFTER, RETRY_AFTER);
            }
            Self::Unauthorized => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            // What is left of the body is not worth reading.
            Self::BodyTooLarge { .. } | Self::BodyTimeout | Self::BodyBroken => {
                headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            _ => {}
        }
        response
    }
}

impl From<assay_engine::RequestError> for ApiError {
    fn from(error: assay_engine::RequestError) -> Self {
        match error {
            assay_engine::RequestError::NumericalError { position } => {
                Self::NumericalError { position }
            }
            // A token outside the mask is our own fault; a constraint that leads nowhere is not.
            assay_engine::RequestError::Constraint(
                error @ assay_constrain::MatchError::NotAllowed { .. },
            ) => Self::Internal(format!("a reply could not follow its constraint: {error}")),
            assay_engine::RequestError::Constraint(error) => Self::DeadEnd(error.to_string()),
            assay_engine::RequestError::EngineStopped => Self::EngineStopped,
        }
    }
}

impl From<assay_engine::SubmitError> for ApiError {
    fn from(error: assay_engine::SubmitError) -> Self {
        use assay_engine::SubmitError;
        match error {
            SubmitError::QueueFull { .. } => Self::QueueFull,
            SubmitError::Draining => Self::Draining,
            SubmitError::Stopped => Self::EngineStopped,
            // Both were checked before; the engine sees something that we do not.
            error @ (SubmitError::Invalid(_) | SubmitError::TooLong { .. }) => {
                Self::Internal(error.to_string())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ApiError;

    #[test]
    fn what_went_wrong_inside_stays_inside() {
        let (status, body) = ApiError::Internal("block 7 of /weights".to_owned()).to_reply();
        assert_eq!(status.as_u16(), 500);
        let message = body.error.message;
        assert!(!message.contains("block"), "{message}");
        let id = message.rsplit(' ').next().unwrap_or_default();
        assert!(id.starts_with("err-") && id.len() == 20, "{message}");
        assert_eq!(body.error.kind, "server_error");
        assert_eq!(body.error.param, None);
    }
}
