//! A server on a scripted model whose replies stand in the prompts, so that any number of requests at once
//! each have their own known reply.
//!
//! A message may hold `#reply 72,105#` (token ids to answer with, then the end token), `#nan 1#` (a row that
//! is not a number, at that place of the reply) and `#flat 3#` (that many equally likely tokens at every
//! place). Without any, rows are pseudo-random functions of the whole history.

use std::sync::Arc;
use std::time::Duration;

use assay_engine::{Engine, EngineConfig, EngineHandle, TokenBytes};
use assay_receipt::{Identity, ModelFacts, Overrides, Sha256Hex};
use assay_server::{
    AppState, Installed, Limits, PROMPT_FORMAT, ParserChoice, ServerConfig, ShutdownTrigger,
    router, serve, shutdown_channel,
};
use assay_testkit::scripted::{ScriptedModel, StepGate, background_row, forcing_row, nan_row};
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use bytes::Bytes;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tower::ServiceExt;

use crate::vocab::{self, GO};

pub(crate) const MODEL: &str = "scripted";
pub(crate) const CHAT: &str = "/v1/chat/completions";
pub(crate) const COMPLETIONS: &str = "/v1/completions";

/// Settings of a server to be.
pub(crate) struct Setup {
    pub(crate) config: ServerConfig,
    pub(crate) engine: EngineConfig,
    pub(crate) gate: StepGate,
    pub(crate) context_length: usize,
    pub(crate) num_kv_blocks: usize,
    pub(crate) template: Option<&'static str>,
}

/// A server, called in process.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) app: AppState,
    pub(crate) engine: EngineHandle,
    pub(crate) gate: StepGate,
}

/// The same server on a socket.
pub(crate) struct Served {
    pub(crate) world: World,
    pub(crate) address: std::net::SocketAddr,
    pub(crate) trigger: ShutdownTrigger,
    pub(crate) serving: JoinHandle<std::io::Result<()>>,
}

/// An answer, read to its end.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

pub(crate) fn config() -> ServerConfig {
    ServerConfig {
        model_id: MODEL.to_owned(),
        aliases: vec!["alias/of-it".to_owned()],
        any_model_name: false,
        api_keys: Vec::new(),
        loopback: true,
        cors_origins: Vec::new(),
        created: 1_700_000_000,
        identity: Identity {
            numerics: "n1".to_owned(),
            profile: "exact".to_owned(),
            kv: "f16".to_owned(),
            model: ModelFacts {
                sha256: Sha256Hex::of_bytes(b"scripted weights"),
                name: MODEL.to_owned(),
                architecture: "llama".to_owned(),
            },
            tokenizer_sha256: Sha256Hex::of_hash(&vocab::tokenizer().hash()),
            template_sha256: Some(Sha256Hex::of_bytes(vocab::TEMPLATE.as_bytes())),
            prompt_format: PROMPT_FORMAT.to_owned(),
            overrides: Overrides::default(),
        },
        installed: Installed::default(),
        receipts: false,
        ledger: None,
        template_date: assay_tokenizer::TemplateDate::default(),
        reasoning_parser: ParserChoice::Detect,
        tool_parser: ParserChoice::Detect,
        drain_timeout: Duration::from_secs(20),
        request_timeout: None,
        limits: Limits::default(),
    }
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            config: config(),
            engine: EngineConfig::default(),
            gate: StepGate::default(),
            context_length: 4_096,
            num_kv_blocks: 2_048,
            template: Some(vocab::TEMPLATE),
        }
    }
}

impl Setup {
    pub(crate) fn build(self) -> World {
        let model = ScriptedModel::new(vocab::size(), script)
            .with_context_length(self.context_length)
            .with_kv_pool(self.num_kv_blocks, 16)
            .with_gate(&self.gate);
        let tokenizer = Arc::new(vocab::tokenizer());
        let token_bytes: TokenBytes = (0..vocab::size_u32())
            .map(|id| {
                tokenizer
                    .token_bytes(id)
                    .expect("in the vocabulary")
                    .to_vec()
            })
            .collect();
        let engine = Engine::spawn(Box::new(model), Arc::new(token_bytes), self.engine)
            .expect("the engine starts");
        let template = self.template.map(vocab::template);
        let app = AppState::new(engine.clone(), tokenizer, template, self.config);
        World {
            app,
            engine,
            gate: self.gate,
        }
    }

    pub(crate) async fn serve(self) -> Served {
        let world = self.build();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (trigger, shutdown) = shutdown_channel();
        let serving = tokio::spawn(serve(listener, world.app.clone(), shutdown));
        Served {
            world,
            address,
            trigger,
            serving,
        }
    }
}

/// Answers from what the prompt asks for.
pub(crate) fn script(history: &[u32]) -> Vec<f32> {
    let vocab_size = vocab::size();
    let prompt_end = history
        .iter()
        .position(|id| *id == GO)
        .map_or(history.len(), |go| go + 1);
    let (prompt, reply) = history.split_at(prompt_end);
    let prompt_bytes: Vec<u8> = prompt.iter().flat_map(|id| vocab::bytes(*id)).collect();
    let prompt_text = String::from_utf8_lossy(&prompt_bytes);
    let order = |name: &str| {
        let (_, rest) = prompt_text.rsplit_once(&format!("#{name} "))?;
        rest.split_once('#').map(|(order, _)| order.to_owned())
    };
    // What a template writes after its end of the prompt is no reply.
    let num_opened = order("open").map_or(0, |count| count.parse().expect("a number"));
    let reply = reply.get(num_opened..).unwrap_or_default();
    if order("nan").is_some_and(|at| at == reply.len().to_string()) {
        return nan_row(vocab_size);
    }
    if let Some(num_tokens) = order("flat") {
        let num_tokens: usize = num_tokens.parse().expect("a number");
        return (0..vocab_size)
            .map(|id| if id < num_tokens { 1.0 } else { -30.0 })
            .collect();
    }
    let Some(ids) = order("reply") else {
        return background_row(vocab_size, history);
    };
    let next = ids.split(',').filter(|id| !id.is_empty()).nth(reply.len());
    let next = next.map_or(vocab::END, |id| id.parse().expect("a token id"));
    forcing_row(vocab_size, history, next)
}

/// A message that asks for exactly these tokens.
pub(crate) fn order(ids: &[u32]) -> String {
    let ids: Vec<_> = ids.iter().map(u32::to_string).collect();
    format!("#reply {}#", ids.join(","))
}

/// A greedy request for exactly `text`.
pub(crate) fn ask(text: &str) -> Value {
    ask_ids(&vocab::encode(text.as_bytes()))
}

/// A greedy request for exactly these tokens.
pub(crate) fn ask_ids(ids: &[u32]) -> Value {
    ask_message(&order(ids))
}

/// A greedy request with one message.
pub(crate) fn ask_message(content: &str) -> Value {
    json!({
        "model": MODEL,
        "messages": [{"role": "user", "content": content}],
        "temperature": 0,
        "seed": 7,
    })
}

/// `body` with the members of `more` added or replaced.
pub(crate) fn with(mut body: Value, more: Value) -> Value {
    let (Value::Object(members), Value::Object(more)) = (&mut body, more) else {
        panic!("objects only");
    };
    members.extend(more);
    body
}

impl World {
    pub(crate) fn new() -> Self {
        Setup::default().build()
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response = router(self.app.clone())
            .oneshot(request)
            .await
            .expect("the router answers everything");
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("a readable body").to_bytes();
        let answer = Answer {
            status: parts.status,
            headers: parts.headers,
            body,
        };
        crate::openapi::check_reply(&method, &path, &answer);
        answer
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        let request = Request::get(path).body(Body::empty()).expect("a request");
        self.send(request).await
    }

    pub(crate) async fn method(&self, method: Method, path: &str) -> Answer {
        let request = Request::builder().method(method).uri(path);
        self.send(request.body(Body::empty()).expect("a request"))
            .await
    }

    pub(crate) async fn post_bytes(&self, body: impl Into<Body>) -> Answer {
        self.post_bytes_to(CHAT, body).await
    }

    async fn post_bytes_to(&self, path: &str, body: impl Into<Body>) -> Answer {
        let request = Request::post(path)
            .header("content-type", "application/json")
            .body(body.into())
            .expect("a request");
        self.send(request).await
    }

    pub(crate) async fn post(&self, body: &Value) -> Answer {
        self.post_to(CHAT, body).await
    }

    pub(crate) async fn post_to(&self, path: &str, body: &Value) -> Answer {
        let answer = self.post_bytes_to(path, body.to_string()).await;
        crate::openapi::check_accepted(path, body, answer.status);
        answer
    }

    /// Sends a request that must succeed, unstreamed.
    pub(crate) async fn reply(&self, body: &Value) -> Value {
        self.post(body).await.expect_status(StatusCode::OK).json()
    }

    /// Sends a request streamed, and collects its chunks into the shape of the unstreamed reply.
    pub(crate) async fn streamed(&self, body: &Value) -> Value {
        let body = with(body.clone(), json!({"stream": true}));
        let answer = self.post(&body).await.expect_status(StatusCode::OK);
        crate::stream::collect(&answer.data())
    }

    /// Checks that a request is refused with 400 for the field `param`.
    pub(crate) async fn check_refused(&self, body: &Value, param: &str) -> String {
        self.check_refused_by(CHAT, body, param).await
    }

    /// The same of another route.
    pub(crate) async fn check_refused_by(&self, path: &str, body: &Value, param: &str) -> String {
        let answer = self.post_to(path, body).await;
        let error = answer.error(StatusCode::BAD_REQUEST);
        assert_eq!(error["param"], param, "{body}: {error}");
        assert_eq!(error["type"], "invalid_request_error", "{body}: {error}");
        error["message"].as_str().expect("a message").to_owned()
    }
}

impl Answer {
    #[track_caller]
    pub(crate) fn expect_status(self, status: StatusCode) -> Self {
        assert_eq!(
            self.status,
            status,
            "{}",
            String::from_utf8_lossy(&self.body)
        );
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let text = std::str::from_utf8(&self.body).expect("UTF-8");
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The error object of an answer of `status`, which must be in the envelope.
    #[track_caller]
    pub(crate) fn error(&self, status: StatusCode) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status, status, "{text}");
        assert_eq!(self.header("content-type"), Some("application/json"));
        let body = self.json();
        let error = &body["error"];
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|message| !message.is_empty()),
            "{text}"
        );
        let keys: Vec<_> = error.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["message", "type", "param", "code"], "{text}");
        error.clone()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .get(name)
            .map(|value| value.to_str().expect("text"))
    }

    /// Payloads of a stream, which must be well-formed and end with `[DONE]`.
    #[track_caller]
    pub(crate) fn data(&self) -> Vec<Value> {
        let content_type = self.header("content-type");
        assert_eq!(content_type, Some("text/event-stream; charset=utf-8"));
        let text = std::str::from_utf8(&self.body).expect("UTF-8");
        let events = text
            .split_terminator("\n\n")
            .filter(|event| !event.starts_with(':'));
        let mut payloads: Vec<_> = events
            .map(|event| event.strip_prefix("data: ").expect("a data line"))
            .collect();
        assert_eq!(payloads.pop(), Some("[DONE]"), "{text}");
        let parsed = payloads
            .into_iter()
            .map(|payload| serde_json::from_str(payload).expect("JSON"));
        parsed.collect()
    }
}
