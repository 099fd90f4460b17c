//! The document as a whole.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use crate::errors;
use crate::operations::{Operation, Reply, operations};
use crate::request::Request;
use crate::request_schema::Writer;
use crate::samples::requests;
use crate::words::Words;

/// The document.
pub struct OpenApi(Value);

impl OpenApi {
    /// As JSON.
    pub fn json(&self) -> &Value {
        &self.0
    }

    /// As the file in the repository holds it.
    pub fn text(&self) -> String {
        format!("{:#}\n", self.0)
    }
}

/// Makes the document.
///
/// # Errors
/// What readers, samples and words do not agree on.
pub fn document() -> Result<OpenApi, Vec<String>> {
    let mut faults = Vec::new();
    let mut schemas = by_hand();
    let words = Words::new(&mut faults);
    let requests = requests();
    for request in &requests {
        Writer::write(request, &words, &mut schemas, &mut faults);
    }
    faults.extend(words.unused());
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for operation in operations() {
        let described = describe(&operation, &requests, &mut generator);
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = described;
    }
    let responses = errors::responses(&mut generator);
    for (name, schema) in generator.take_definitions(true) {
        if schemas.insert(name.clone(), schema).is_some() {
            faults.push(format!("two schemas are called `{name}`"));
        }
    }
    schemas.sort_keys();
    if !faults.is_empty() {
        return Err(faults);
    }
    Ok(OpenApi(json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Assay",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Exact log-probabilities of open language models.",
            "description": "Fields that a request may leave out may also be null. Unknown fields of a body are accepted and \
                listed in the header `x-assay-ignored`, except where an object is closed; a known field with a value that is \
                not supported is refused, never passed over.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}, {"apiKey": []}, {}],
        "tags": [
            {"name": "Generation", "description": "Replies, whole or streamed."},
            {"name": "Decisions", "description": "Probabilities of given answers: nothing is drawn."},
            {"name": "Tokens", "description": "The model's tokenizer and chat template."},
            {"name": "Server", "description": "The server itself."},
        ],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "Where the server was started with keys."},
                "apiKey": {"type": "apiKey", "in": "header", "name": "x-api-key", "description": "The same key, as Anthropic's clients send it."},
            },
            "headers": {
                "RequestId": {"description": "The request's name in the log: the client's own `x-request-id`, or a new one.", "schema": {"type": "string"}},
                "Ignored": {"description": "Fields of the body that the server does not know.", "schema": {"type": "string"}},
                "RetryAfter": {"description": "Seconds to wait.", "schema": {"type": "integer"}},
                "Authenticate": {"description": "`Bearer`.", "schema": {"type": "string"}},
            },
            "parameters": {
                "RequestId": {"name": "x-request-id", "in": "header", "description": "A name for the request, for the log and the reply: up to 128 plain characters.", "schema": {"type": "string", "maxLength": 128}},
            },
            "responses": responses,
            "schemas": schemas,
        },
    })))
}

fn describe(operation: &Operation, requests: &[Request], generator: &mut SchemaGenerator) -> Value {
    let mut described = json!({
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "parameters": [{"$ref": "#/components/parameters/RequestId"}],
    });
    if !operation.text.is_empty() {
        described["description"] = json!(operation.text);
    }
    if operation.is_open {
        described["security"] = json!([]);
    }
    let has_id = operation.path.contains("{id}");
    if has_id {
        let id =
            json!({"name": "id", "in": "path", "required": true, "schema": {"type": "string"}});
        described["parameters"] = json!([id, {"$ref": "#/components/parameters/RequestId"}]);
    }
    if let Some(component) = operation.request {
        described["requestBody"] = json!({
            "required": true,
            "content": {"application/json": {
                "schema": {"$ref": format!("#/components/schemas/{component}")},
                "examples": examples(component, requests),
            }},
        });
    }
    let mut responses = errors::of_route(
        operation.dialect,
        operation.request.is_some(),
        operation.is_open,
        operation.is_probe,
    );
    if has_id {
        responses.insert("404".to_owned(), errors::reference("NotFound"));
    }
    let mut content = match operation.reply {
        Reply::Json(describe) => json!({"application/json": {"schema": describe(generator)}}),
        Reply::Status(status) => json!({"application/json": {"schema": {
            "type": "object",
            "properties": {"status": {"type": "string", "const": status}},
            "required": ["status"],
        }}}),
        Reply::Text(media_type, _) => json!({media_type: {"schema": {"type": "string"}}}),
        Reply::OpenApi => json!({"application/json": {"schema": {"type": "object"}}}),
    };
    let mut meaning = match operation.reply {
        Reply::Text(_, meaning) => meaning.to_owned(),
        _ => "The reply.".to_owned(),
    };
    if let Some((event, end)) = operation.stream {
        content["text/event-stream"] = json!({"schema": event(generator)});
        meaning = format!("The reply; with `stream: true` server-sent events. {end}");
    }
    let mut headers = json!({"x-request-id": {"$ref": "#/components/headers/RequestId"}});
    if operation.request.is_some() {
        headers["x-assay-ignored"] = json!({"$ref": "#/components/headers/Ignored"});
    }
    let reply = json!({"description": meaning, "headers": headers, "content": content});
    responses.insert("200".to_owned(), reply);
    responses.sort_keys();
    described["responses"] = Value::Object(responses);
    described
}

fn examples(component: &str, requests: &[Request]) -> Value {
    let samples = requests
        .iter()
        .filter(|request| request.component == component)
        .flat_map(|request| &request.samples);
    let examples = samples.filter_map(|sample| {
        let summary = sample.summary?;
        Some((
            name_of(summary),
            json!({"summary": summary, "value": sample.body}),
        ))
    });
    Value::Object(examples.collect())
}

/// A summary as an example's name.
fn name_of(summary: &str) -> String {
    let letters = summary.chars().map(|letter| match letter {
        letter if letter.is_ascii_alphanumeric() => letter.to_ascii_lowercase(),
        _ => '-',
    });
    letters.collect()
}

/// Schemas of fields that are read in ways that recording does not follow.
fn by_hand() -> Map<String, Value> {
    let function = json!({"type": "string", "const": "function"});
    let name = json!({"type": "string"});
    let schemas = json!({
        "NamedToolChoice": {
            "description": "The tool that the model must call; its name may stand one level further out.",
            "anyOf": [
                {
                    "type": "object",
                    "properties": {
                        "type": function,
                        "function": {"type": "object", "properties": {"name": name}, "required": ["name"]},
                    },
                    "required": ["type", "function"],
                },
                {
                    "type": "object",
                    "properties": {"type": function, "name": name},
                    "required": ["type", "name"],
                },
            ],
        },
        "ResponsesTextFormat": {
            "description": "The form of the text.",
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"type": {"type": "string", "const": "text"}},
                    "required": ["type"],
                },
                {
                    "type": "object",
                    "properties": {"type": {"type": "string", "const": "json_object"}},
                    "required": ["type"],
                },
                {
                    "type": "object",
                    "properties": {
                        "type": {"type": "string", "const": "json_schema"},
                        "name": name,
                        "description": {"type": ["string", "null"]},
                        "schema": {"type": ["object", "boolean"], "description": "A JSON Schema, enforced in full or refused."},
                        "strict": {"type": ["boolean", "null"], "description": "Accepted: every schema is enforced."},
                    },
                    "required": ["type", "name", "schema"],
                },
            ],
        },
    });
    match schemas {
        Value::Object(schemas) => schemas,
        _ => Map::new(),
    }
}
