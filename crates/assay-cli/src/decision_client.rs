//! One request a row: over HTTP, or to the same routes in this process.

use std::num::NonZeroUsize;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use assay_server::ledger::Ledger;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use clap::Args;
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;
use tower::ServiceExt;

use crate::config::{ModelArgs, ModelConfig};
use crate::interrupt::Interrupt;
use crate::{load, serve};

/// Times that a busy server is asked.
const ATTEMPTS: u32 = 8;

const JSON: &str = "application/json";

/// Whom to ask, and how much at a time: the same for every command that asks about rows.
#[derive(Args, Clone, Debug)]
pub(crate) struct ClientArgs {
    /// Ask this server instead of loading a model
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Key of that server
    #[arg(
        long,
        env = "ASSAY_API_KEY",
        value_name = "KEY",
        hide_env_values = true
    )]
    api_key: Option<String>,
    /// Requests under way at a time
    #[arg(long, value_name = "N", default_value = "8")]
    pub(crate) requests: NonZeroUsize,
}

impl ClientArgs {
    /// Of the server that was named, or of a model loaded here, whose answers `ledger` gets.
    ///
    /// # Errors
    /// The model does not load, or the ledger cannot be written.
    pub(crate) fn client(
        &self,
        model: ModelArgs,
        route: &'static str,
        ledger: Option<&Path>,
        interrupt: &Interrupt,
    ) -> Result<Client> {
        match &self.url {
            Some(url) => Ok(Client::of_url(url, self.api_key.clone(), route)),
            None => {
                let ledger = ledger.map(serve::open_ledger).transpose()?;
                Client::of_model(&model.resolve()?, self.requests, route, ledger, interrupt)
            }
        }
    }
}

/// What a row got.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// The reply's members.
    Reply(Map<String, Value>),
    /// Why there is none.
    Error(Value),
}

impl Answer {
    pub(crate) fn bad_row(fault: &str) -> Self {
        Self::Error(json!({"message": fault}))
    }

    pub(crate) fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }
}

/// Asks one route.
pub(crate) struct Client {
    route: &'static str,
    server: Server,
}

enum Server {
    /// Somewhere else.
    Http {
        agent: ureq::Agent,
        url: String,
        key: Option<String>,
    },
    /// In this process, without a socket.
    Here { runtime: Runtime, router: Router },
}

impl Client {
    /// Asks the server at `url`.
    fn of_url(url: &str, key: Option<String>, route: &'static str) -> Self {
        let config = ureq::Agent::config_builder().http_status_as_error(false);
        let server = Server::Http {
            agent: config.build().into(),
            url: url.trim_end_matches('/').to_owned(),
            key,
        };
        Self { route, server }
    }

    /// Loads a model and asks it.
    ///
    /// # Errors
    /// If it does not load.
    fn of_model(
        model: &ModelConfig,
        queue: NonZeroUsize,
        route: &'static str,
        ledger: Option<Ledger>,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let runtime = serve::runtime()?;
        let loaded = load::load(model, queue.get(), interrupt)?;
        let router = assay_server::router(serve::local_state(loaded, model, ledger));
        let server = Server::Here { runtime, router };
        Ok(Self { route, server })
    }

    /// The answer to one request; one that the server refuses is the row's error.
    ///
    /// # Errors
    /// The server is not to be reached, stays busy, or takes no requests of ours.
    pub(crate) fn ask(&self, body: &str) -> Result<Answer> {
        for attempt in 0..ATTEMPTS {
            let (status, text) = self.post(body)?;
            let value: Value = serde_json::from_str(&text).unwrap_or_else(|_| Value::from(text));
            match (status, value) {
                (200, Value::Object(members)) => return Ok(Answer::Reply(members)),
                (429 | 503, _) => thread::sleep(Duration::from_millis(100 << attempt)),
                (400 | 413 | 422, value) => return Ok(Answer::Error(error_of(value))),
                (status, value) => bail!("{} answered {status}: {value}", self.route),
            }
        }
        bail!("the server stayed too busy to answer")
    }

    fn post(&self, body: &str) -> Result<(u16, String)> {
        match &self.server {
            Server::Http { agent, url, key } => {
                let address = format!("{url}{}", self.route);
                let mut request = agent.post(&address).header("content-type", JSON);
                if let Some(key) = key {
                    request = request.header("authorization", format!("Bearer {key}"));
                }
                let sent = request.send(body);
                let mut response = sent.with_context(|| format!("{address} does not answer"))?;
                let text = response.body_mut().read_to_string();
                let text = text.context("a reply broke off")?;
                Ok((response.status().as_u16(), text))
            }
            Server::Here { runtime, router } => {
                let request = Request::post(self.route)
                    .header("content-type", JSON)
                    .body(Body::from(body.to_owned()))?;
                runtime.block_on(async {
                    let response = router.clone().oneshot(request).await?;
                    let status = response.status().as_u16();
                    let bytes = to_bytes(response.into_body(), usize::MAX).await?;
                    Ok((status, String::from_utf8(bytes.to_vec())?))
                })
            }
        }
    }
}

/// What every dialect wraps its errors in.
fn error_of(value: Value) -> Value {
    let inner = value.get("error").or_else(|| value.get("detail")).cloned();
    inner.unwrap_or(value)
}
