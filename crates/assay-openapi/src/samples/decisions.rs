//! `POST /v1/decisions`, `/v1/decide` and `/v1/systemone`.

use assay_api::FieldError;
use assay_api::decisions::decide::DecideRequest;
use assay_api::decisions::openai::DecisionRequest;
use assay_api::decisions::systemone::SystemOneRequest;
use assay_api::decisions::validation::{Step, ValidationErrors};
use assay_api::replay::ReplayRequest;
use serde_json::json;

use super::reader;
use crate::request::{Read, Request, example, sample};

const STATE: &str = "I was charged twice this month.";

pub(super) fn decisions_request() -> Request {
    Request {
        component: "DecisionRequest",
        key: "decisions",
        read: reader!(DecisionRequest::from_json),
        maps: &[],
        samples: vec![
            example(
                "Three questions about a text",
                json!({
                    "model": "default",
                    "input": STATE,
                    "questions": [
                        {"type": "predicate", "name": "angry", "instructions": "Is the customer angry?"},
                        {"type": "choice", "name": "team", "instructions": "Which team should answer?", "choices": [
                            {"value": "Billing", "description": "Payments, refunds"},
                            {"value": "Tech"},
                        ]},
                        {"type": "score", "name": "urgency", "instructions": "How urgent is it?", "levels": [
                            {"label": "low"}, {"label": "medium"}, {"label": "high", "description": "Within the hour"},
                        ]},
                    ],
                }),
            ),
            sample(json!({
                "input": [
                    {"type": "message", "role": "user", "content": [
                        {"type": "input_text", "text": STATE},
                        {"type": "output_text", "text": STATE},
                        {"type": "text", "text": STATE},
                        {"type": "refusal", "refusal": "No."},
                        {"type": "input_json", "data": {"amount": 9.99}},
                    ]},
                    {"type": "function_call", "call_id": "c1", "name": "lookup", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "c1", "output": "paid twice"},
                    {"type": "custom_tool_call", "call_id": "c2", "name": "note", "input": "x"},
                    {"type": "custom_tool_call_output", "call_id": "c2", "output": "y"},
                ],
                "questions": [{"type": "predicate", "instructions": "Is the customer angry?"}],
                "debias": {"rotations": 1},
            })),
        ],
    }
}

pub(super) fn decide_request() -> Request {
    Request {
        component: "DecideRequest",
        key: "decide",
        read: reader!(DecideRequest::from_json),
        maps: &[],
        samples: vec![
            example(
                "A schema that is filled in",
                json!({
                    "model": "default",
                    "state": STATE,
                    "schema": {"type": "object", "properties": {
                        "team": {"enum": ["Billing", "Tech"], "description": "Which team should answer?"},
                        "refund": {"type": "boolean", "description": "Is a refund due?"},
                    }},
                }),
            ),
            sample(json!({
                "messages": [{"role": "user", "content": STATE}],
                "schema": {"type": "boolean"},
                "search": {"beams": 4},
                "debias": {"rotations": 1},
            })),
        ],
    }
}

pub(super) fn systemone_request() -> Request {
    Request {
        component: "SystemOneRequest",
        key: "systemone",
        read: |body| match SystemOneRequest::from_json(body) {
            Ok(request) => Ok(Read {
                shown: format!("{request:?}"),
                ignored: request.ignored,
            }),
            Err(errors) => Err(fault(&errors)),
        },
        maps: &["questions"],
        samples: vec![
            example(
                "Three questions about a text",
                json!({
                    "model": "default",
                    "state": STATE,
                    "questions": {
                        "angry": {"type": "noul", "instructions": "Is the customer angry?"},
                        "team": {"type": "choice", "instructions": "Which team should answer?", "criteria": {
                            "Billing": "Payments, refunds", "Tech": null,
                        }},
                        "urgency": {"type": "score", "instructions": "How urgent is it?", "criteria": ["low", "medium", "high"]},
                    },
                }),
            ),
            sample(json!({
                "state": {"text": STATE},
                "questions": {"angry": {"type": "noul", "criteria": {"true": "Angry", "false": "Calm"}}},
                "debias": {"rotations": 1},
            })),
        ],
    }
}

pub(super) fn replay_request() -> Request {
    Request {
        component: "ReplayRequest",
        key: "replay",
        read: reader!(ReplayRequest::from_json),
        maps: &[],
        samples: vec![example(
            "What is left of a receipt: its verdict is `broken`",
            json!({"receipt": {"format": "assay-receipt-1"}}),
        )],
    }
}

/// The fault as other dialects name it.
fn fault(errors: &ValidationErrors) -> FieldError {
    let mut param = String::new();
    for step in errors.detail.iter().flat_map(|error| &error.loc).skip(1) {
        match step {
            Step::Name(name) => param = crate::path::join(&param, name),
            Step::Index(index) => param.push_str(&format!("[{index}]")),
        }
    }
    let message = errors.detail.iter().map(|error| error.msg.as_str());
    FieldError::new(param, message.collect::<String>())
}
