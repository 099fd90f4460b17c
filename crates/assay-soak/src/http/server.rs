//! The server of a rig on a free port.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use assay_receipt::{Identity, ModelFacts, Overrides, Sha256Hex};
use assay_server::{
    AppState, Installed, Limits, PROMPT_FORMAT, ParserChoice, ServerConfig, ShutdownTrigger, serve,
    shutdown_channel,
};
use assay_tokenizer::{ChatTemplate, TemplateDate, TemplateTokens};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::rig::{Remains, Rig, Setup};
use crate::subject::Subject;

/// Plain turns, for a base model that has no template of its own.
const PLAIN_TEMPLATE: &str = "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}assistant:";

/// A running server.
pub(super) struct Server {
    address: SocketAddr,
    rig: Rig,
    trigger: ShutdownTrigger,
    serving: JoinHandle<std::io::Result<()>>,
}

impl Server {
    /// Serves `subject` from a new engine.
    ///
    /// # Errors
    /// The engine or the server does not start.
    pub(super) async fn start(subject: &Arc<Subject>, setup: &Setup) -> Result<Self> {
        let rig = Rig::start(subject, setup)?;
        let tokenizer = &subject.tokenizer;
        let source = tokenizer.chat_template_source().unwrap_or(PLAIN_TEMPLATE);
        let template = ChatTemplate::new(source, TemplateTokens::of(tokenizer))?;
        let config = ServerConfig {
            model_id: subject.name.clone(),
            aliases: Vec::new(),
            any_model_name: false,
            api_keys: Vec::new(),
            loopback: true,
            cors_origins: Vec::new(),
            created: 0,
            identity: Identity {
                numerics: "n1".to_owned(),
                profile: "exact".to_owned(),
                kv: "f16".to_owned(),
                model: ModelFacts {
                    sha256: Sha256Hex::of_bytes(subject.name.as_bytes()),
                    name: subject.name.clone(),
                    architecture: "llama".to_owned(),
                },
                tokenizer_sha256: Sha256Hex::of_hash(&tokenizer.hash()),
                template_sha256: None,
                prompt_format: PROMPT_FORMAT.to_owned(),
                overrides: Overrides::default(),
            },
            installed: Installed::default(),
            receipts: false,
            ledger: None,
            template_date: TemplateDate::default(),
            reasoning_parser: ParserChoice::Detect,
            tool_parser: ParserChoice::Detect,
            drain_timeout: Duration::from_secs(60),
            request_timeout: None,
            limits: Limits::default(),
        };
        let app = AppState::new(
            rig.engine.clone(),
            Arc::clone(tokenizer),
            Some(template),
            config,
        );
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (trigger, shutdown) = shutdown_channel();
        let serving = tokio::spawn(serve(listener, app, shutdown));
        Ok(Self {
            address,
            rig,
            trigger,
            serving,
        })
    }

    /// Where its routes are.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Drains and ends it.
    ///
    /// # Errors
    /// It does not end in order.
    pub(super) async fn stop(self) -> Result<Remains> {
        self.trigger.signal();
        self.serving.await.context("the server panicked")??;
        tokio::task::spawn_blocking(move || self.rig.stop()).await?
    }
}
