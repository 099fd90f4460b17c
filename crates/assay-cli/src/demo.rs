//! `assay demo`: the first two minutes. Fetches the default model, serves it, asks one question over
//! HTTP as any client would, and prints the answer with each token's probability.

use std::io::Write;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::config::ServeConfig;
use crate::interrupt::Interrupt;
use crate::table::{self, TokenRow};
use crate::terminal::{self, Colour};
use crate::{load, logging, serve};

const QUESTION: &str = "What is the capital of France? Answer in one short sentence.";
const MAX_TOKENS: u32 = 24;
const OTHERS_SHOWN: usize = 3;

/// What happens once the answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Exit at once.
    Exit,
    /// Go on until a signal.
    KeepServing,
}

/// How the answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A table.
    Text,
    /// One JSON object, the server's reply in it.
    Json,
}

/// Runs the demonstration.
///
/// # Errors
/// If the model cannot be had, or the server does not answer as it should.
pub(crate) fn run(
    mut config: ServeConfig,
    after: After,
    form: Form,
    interrupt: &Interrupt,
) -> Result<()> {
    let _log = logging::start(config.log_format, "warn", interrupt)?;
    let runtime = serve::runtime()?;
    let listener = match (runtime.block_on(serve::bind(&config)), after) {
        (Ok(listener), _) => listener,
        // Another server on the default port must not spoil a demonstration that ends at once.
        (Err(_), After::Exit) => {
            config.port = 0;
            runtime.block_on(serve::bind(&config))?
        }
        (Err(error), After::KeepServing) => return Err(error),
    };
    let url = format!("http://{}", listener.local_addr()?);
    let key = config.api_keys.first().cloned();
    let ledger = config
        .ledger
        .as_deref()
        .map(serve::open_ledger)
        .transpose()?;
    let loaded = load::load(&config.model, config.queue.get(), interrupt)?;
    let (on_signal, wind_down) = serve::wind_down();
    let serving = runtime.spawn(serve::serve(loaded, listener, config, ledger, wind_down));
    let reply = ask(&url, key.as_deref())?;
    match form {
        Form::Text => print(&reply, &url, key.is_some(), after)?,
        Form::Json => writeln!(terminal::stdout(), "{}", json(&reply, &url, after)?)?,
    }
    match after {
        // Nothing else is under way: there is nothing to drain.
        After::Exit => Ok(()),
        After::KeepServing => {
            interrupt.hand_over(on_signal);
            runtime.block_on(serving)?
        }
    }
}

fn ask(url: &str, key: Option<&str>) -> Result<Value> {
    let body = json!({
        "messages": [{"role": "user", "content": QUESTION}],
        "max_tokens": MAX_TOKENS,
        "temperature": 0,
        // Greedy replies do not depend on it; printed, it should be the same on every run.
        "seed": 0,
        "logprobs": true,
        "top_logprobs": OTHERS_SHOWN + 1,
    });
    let mut request = ureq::post(format!("{url}/v1/chat/completions"))
        .config()
        .http_status_as_error(false)
        .build()
        .header("content-type", "application/json");
    if let Some(key) = key {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    let mut response = request
        .send(body.to_string())
        .context("the demo's own server does not answer")?;
    let text = response
        .body_mut()
        .read_to_string()
        .context("the reply broke off")?;
    if response.status() != 200 {
        bail!(
            "the demo's own server answered {}: {text}",
            response.status()
        );
    }
    serde_json::from_str(&text).context("the reply is not JSON")
}

/// What of a reply is shown.
struct Shown<'a> {
    content: &'a str,
    rows: Vec<TokenRow>,
    /// Of the whole reply.
    logprob: f64,
    system_fingerprint: &'a str,
}

impl<'a> Shown<'a> {
    fn of(reply: &'a Value) -> Result<Self> {
        let choice = &reply["choices"][0];
        let content = choice["message"]["content"].as_str();
        let entries = choice["logprobs"]["content"]
            .as_array()
            .context("the reply has no log-probabilities")?;
        let rows: Vec<TokenRow> = entries.iter().filter_map(row).collect();
        if rows.len() != entries.len() {
            bail!("an entry of the reply is malformed: {reply}");
        }
        Ok(Self {
            content: content.context("the reply has no text")?,
            logprob: rows.iter().map(|row| row.logprob).sum(),
            rows,
            system_fingerprint: reply["system_fingerprint"].as_str().unwrap_or_default(),
        })
    }
}

fn json(reply: &Value, url: &str, after: After) -> Result<Value> {
    let shown = Shown::of(reply)?;
    Ok(json!({
        "question": QUESTION,
        "answer": shown.content,
        "logprob": shown.logprob,
        "system_fingerprint": shown.system_fingerprint,
        // Where to ask on, if anywhere.
        "url": (after == After::KeepServing).then_some(url),
        "reply": reply,
    }))
}

fn print(reply: &Value, url: &str, wants_key: bool, after: After) -> Result<()> {
    let Shown {
        content,
        rows,
        logprob,
        system_fingerprint,
    } = Shown::of(reply)?;
    let mut out = terminal::stdout();
    writeln!(out, "\nQ: {QUESTION}\nA: {content}\n")?;
    write!(out, "{}", table::render(&rows, Colour::for_stdout()))?;
    writeln!(
        out,
        "\n  {} tokens, log-probability of the whole reply {logprob:.6}; the same bits on every run (seed {}, {system_fingerprint})",
        rows.len(),
        reply["seed"]
    )?;
    if after == After::KeepServing {
        let key = if wants_key {
            "-H \"authorization: Bearer $ASSAY_API_KEY\" "
        } else {
            ""
        };
        writeln!(
            out,
            "\nServing on {url} until Ctrl-C: open it in a browser, or ask it yourself:\n\n  curl {url}/v1/chat/completions -H 'content-type: application/json' \\\n    {key}-d '{{\"messages\":[{{\"role\":\"user\",\"content\":\"Hello!\"}}],\"temperature\":0,\"max_tokens\":32,\"logprobs\":true,\"top_logprobs\":3}}'\n"
        )?;
    }
    Ok(())
}

fn row(entry: &Value) -> Option<TokenRow> {
    let token = entry["token"].as_str()?.to_owned();
    let others = entry["top_logprobs"]
        .as_array()?
        .iter()
        .filter(|top| top["bytes"] != entry["bytes"]);
    let others = others
        .map(|top| Some((top["token"].as_str()?.to_owned(), top["logprob"].as_f64()?)))
        .take(OTHERS_SHOWN)
        .collect::<Option<Vec<_>>>()?;
    Some(TokenRow {
        token,
        logprob: entry["logprob"].as_f64()?,
        others,
    })
}
