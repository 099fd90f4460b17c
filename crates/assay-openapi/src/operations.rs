//! The routes: what they are for, what they take and give.

use assay_api::about::About;
use assay_api::anthropic::{Message, MessageEvent, TokenCount};
use assay_api::decisions::decide::Decided;
use assay_api::decisions::openai::Decision;
use assay_api::decisions::systemone::SystemOneResponse;
use assay_api::openai::responses::{Response, ResponseEvent};
use assay_api::openai::{ChatChunk, ChatCompletion, Model, ModelList, TextCompletion};
use assay_api::replay::ReplayVerdict;
use assay_api::score::Scores;
use assay_api::tokenize::{Detokenized, RenderedTemplate, Tokenized, TokenizerInfo};
use schemars::generate::SchemaGenerator;
use schemars::{JsonSchema, Schema};

use crate::errors::Dialect;

/// Makes a type's schema.
type Describe = fn(&mut SchemaGenerator) -> Schema;

/// One route.
pub struct Operation {
    /// `get` or `post`.
    pub method: &'static str,
    /// Its path.
    pub path: &'static str,
    pub(crate) id: &'static str,
    pub(crate) tag: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) text: &'static str,
    /// The schema of its body.
    pub request: Option<&'static str>,
    pub(crate) reply: Reply,
    /// One event of its stream, and how the stream ends.
    pub(crate) stream: Option<(Describe, &'static str)>,
    pub(crate) dialect: Dialect,
    /// Whether it answers without a key.
    pub(crate) is_open: bool,
    /// Whether its reply depends on the engine being up.
    pub(crate) is_probe: bool,
}

/// What a route answers.
#[derive(Clone, Copy)]
pub(crate) enum Reply {
    /// JSON of a type.
    Json(Describe),
    /// `{"status": "..."}`.
    Status(&'static str),
    /// Another media type.
    Text(&'static str, &'static str),
    /// This document.
    OpenApi,
}

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

const DONE: &str = "One event a chunk; the stream ends with `data: [DONE]`. A failure after the first event is one event \
    with an error object, then the end.";

fn get(path: &'static str, id: &'static str, summary: &'static str, reply: Reply) -> Operation {
    Operation {
        method: "get",
        path,
        id,
        tag: "Server",
        summary,
        text: "",
        request: None,
        reply,
        stream: None,
        dialect: Dialect::OpenAi,
        is_open: false,
        is_probe: false,
    }
}

fn post<T: JsonSchema>(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    request: &'static str,
) -> Operation {
    Operation {
        method: "post",
        request: Some(request),
        ..get(path, id, summary, Reply::Json(of::<T>))
    }
}

/// All routes.
pub fn operations() -> Vec<Operation> {
    vec![
        Operation {
            tag: "Generation",
            stream: Some((of::<ChatChunk>, DONE)),
            ..post::<ChatCompletion>(
                "/v1/chat/completions",
                "createChatCompletion",
                "Reply to a conversation",
                "ChatCompletionRequest",
            )
        },
        Operation {
            tag: "Generation",
            stream: Some((of::<TextCompletion>, DONE)),
            ..post::<TextCompletion>(
                "/v1/completions",
                "createCompletion",
                "Continue texts",
                "CompletionRequest",
            )
        },
        Operation {
            tag: "Generation",
            text: "Stateless: nothing is kept.",
            stream: Some((of::<ResponseEvent>, DONE)),
            ..post::<Response>(
                "/v1/responses",
                "createResponse",
                "Reply to a conversation, in the shape of the Responses API",
                "ResponsesRequest",
            )
        },
        Operation {
            tag: "Generation",
            stream: Some((
                of::<MessageEvent>,
                "One event each, under its name; the last is `message_stop`. A failure after the first event is one `error` event.",
            )),
            dialect: Dialect::Anthropic,
            ..post::<Message>(
                "/v1/messages",
                "createMessage",
                "Reply to a conversation, in Anthropic's shape",
                "MessagesRequest",
            )
        },
        Operation {
            tag: "Tokens",
            dialect: Dialect::Anthropic,
            ..post::<TokenCount>(
                "/v1/messages/count_tokens",
                "countMessageTokens",
                "Count the tokens of a conversation",
                "CountTokensRequest",
            )
        },
        Operation {
            tag: "Decisions",
            text: "Exact: the sum of the tokens' log-probabilities in order, none left out.",
            ..post::<Scores>(
                "/v1/score",
                "createScore",
                "Score continuations of a text or a conversation",
                "ScoreRequest",
            )
        },
        Operation {
            tag: "Decisions",
            text: "The body may be sent as gzip or zstd (`Content-Encoding`).",
            ..post::<Decision>(
                "/v1/decisions",
                "createDecision",
                "Answer typed questions with distributions",
                "DecisionRequest",
            )
        },
        Operation {
            tag: "Decisions",
            text: "The body may be sent as gzip or zstd (`Content-Encoding`).",
            ..post::<Decided>(
                "/v1/decide",
                "decide",
                "Find the most likely instance of a JSON Schema",
                "DecideRequest",
            )
        },
        Operation {
            tag: "Decisions",
            text: "Fields that are ours alone begin with `x_`. The body may be sent as gzip or zstd (`Content-Encoding`).",
            dialect: Dialect::SystemOne,
            ..post::<SystemOneResponse>(
                "/v1/systemone",
                "systemOne",
                "Answer typed questions, in the System One shape",
                "SystemOneRequest",
            )
        },
        Operation {
            tag: "Tokens",
            ..post::<Tokenized>(
                "/tokenize",
                "tokenize",
                "Tokens of a text or a conversation",
                "TokenizeRequest",
            )
        },
        Operation {
            tag: "Tokens",
            ..post::<Detokenized>(
                "/detokenize",
                "detokenize",
                "Text of tokens",
                "DetokenizeRequest",
            )
        },
        Operation {
            tag: "Tokens",
            ..post::<RenderedTemplate>(
                "/apply-template",
                "applyTemplate",
                "The prompt of a conversation",
                "TemplateRequest",
            )
        },
        Operation {
            tag: "Tokens",
            ..get(
                "/tokenizer_info",
                "getTokenizerInfo",
                "What clients that tokenise for themselves want to know",
                Reply::Json(of::<TokenizerInfo>),
            )
        },
        Operation {
            tag: "Decisions",
            text: "A changed receipt, and one of another model, is told so in the verdict; errors are of the request.",
            ..post::<ReplayVerdict>(
                "/v1/replay",
                "replay",
                "Compute a receipt again, to the bit",
                "ReplayRequest",
            )
        },
        get(
            "/v1/about",
            "getAbout",
            "What runs here, and what it runs on",
            Reply::Json(of::<About>),
        ),
        get(
            "/v1/models",
            "listModels",
            "The served model",
            Reply::Json(of::<ModelList>),
        ),
        get(
            "/v1/models/{id}",
            "getModel",
            "One model by a name that requests may use; it may hold slashes",
            Reply::Json(of::<Model>),
        ),
        Operation {
            is_open: true,
            is_probe: true,
            ..get(
                "/health",
                "getHealth",
                "Whether the engine is alive",
                Reply::Status("ok"),
            )
        },
        Operation {
            is_open: true,
            is_probe: true,
            ..get(
                "/ready",
                "getReadiness",
                "Whether work is taken: not while shutting down",
                Reply::Status("ready"),
            )
        },
        get(
            "/metrics",
            "getMetrics",
            "Metrics in the Prometheus text format",
            Reply::Text("text/plain; version=0.0.4; charset=utf-8", "Metrics."),
        ),
        Operation {
            is_open: true,
            ..get(
                "/openapi.json",
                "getOpenApi",
                "This document",
                Reply::OpenApi,
            )
        },
        Operation {
            is_open: true,
            ..get(
                "/docs",
                "getDocs",
                "This document, as a page",
                Reply::Text("text/html; charset=utf-8", "A page."),
            )
        },
        Operation {
            is_open: true,
            ..get(
                "/",
                "getConsole",
                "The console: chat, decide, score and watch in a browser",
                Reply::Text("text/html; charset=utf-8", "A page."),
            )
        },
    ]
}
