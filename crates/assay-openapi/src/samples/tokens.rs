//! `POST /tokenize`, `/detokenize` and `/apply-template`.

use assay_api::tokenize::{DetokenizeRequest, TemplateRequest, TokenizeRequest};
use serde_json::json;

use super::chat::{conversation, tool};
use super::reader;
use crate::request::{Request, example, sample};

pub(super) fn tokenize_request() -> Request {
    Request {
        component: "TokenizeRequest",
        key: "tokenize",
        read: reader!(TokenizeRequest::from_json),
        maps: &[],
        samples: vec![
            example(
                "A text, its tokens spelled",
                json!({"model": "default", "prompt": "Hello world", "with_pieces": true}),
            ),
            example(
                "A conversation",
                json!({"messages": [{"role": "user", "content": "Hello world"}]}),
            ),
            sample(json!({"messages": conversation(), "tools": [tool()]})),
        ],
    }
}

pub(super) fn detokenize_request() -> Request {
    Request {
        component: "DetokenizeRequest",
        key: "detokenize",
        read: reader!(DetokenizeRequest::from_json),
        maps: &[],
        samples: vec![example(
            "The first three tokens of the vocabulary",
            json!({"model": "default", "tokens": [0, 1, 2]}),
        )],
    }
}

pub(super) fn template_request() -> Request {
    Request {
        component: "TemplateRequest",
        key: "apply-template",
        read: reader!(TemplateRequest::from_json),
        maps: &[],
        samples: vec![
            example(
                "A conversation",
                json!({"model": "default", "messages": [{"role": "user", "content": "Hello world"}]}),
            ),
            sample(json!({"messages": conversation(), "tools": [tool()]})),
        ],
    }
}
