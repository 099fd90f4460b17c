//! Reads replies, whole or streamed, down to what must not depend on company.

use anyhow::{Context, Result, bail};
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::bodies::Call;

/// What a call got: its choices, by index. Numbers are written so that they read back to the same bits.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reply(Vec<Choice>);

#[derive(Clone, Debug, Default, PartialEq)]
struct Choice {
    content: String,
    entries: Vec<Value>,
    end: Value,
    finish: (Value, Value),
    token_ids: Vec<Value>,
    prompt_token_ids: Vec<Value>,
}

impl Reply {
    /// Entries of all choices.
    pub(super) fn num_entries(&self) -> u64 {
        let entries = self.0.iter().map(|choice| choice.entries.len());
        entries.sum::<usize>() as u64
    }

    /// The entries of a choice spell its content, where the call asked for any.
    fn check(self, has_logprobs: bool) -> Result<Self> {
        for choice in self.0.iter().filter(|_| has_logprobs) {
            let spelled: String = choice
                .entries
                .iter()
                .filter_map(|entry| entry["token"].as_str())
                .collect();
            if spelled != choice.content {
                bail!(
                    "entries spell {spelled:?}, the content is {:?}",
                    choice.content
                );
            }
        }
        Ok(self)
    }

    fn choice(&mut self, piece: &Value) -> Result<&mut Choice> {
        let index = piece["index"].as_u64().context("a choice without index")?;
        let index = usize::try_from(index)?;
        if self.0.len() <= index {
            self.0.resize_with(index + 1, Choice::default);
        }
        Ok(&mut self.0[index])
    }

    /// Adds one choice of a reply or of a chunk; `message` holds its text.
    fn add(&mut self, piece: &Value, message: &Value) -> Result<()> {
        let choice = self.choice(piece)?;
        choice
            .content
            .push_str(message["content"].as_str().unwrap_or_default());
        let logprobs = &piece["logprobs"];
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        choice.entries.extend(list(&logprobs["content"]));
        choice.token_ids.extend(list(&piece["token_ids"]));
        choice
            .prompt_token_ids
            .extend(list(&piece["prompt_token_ids"]));
        if !logprobs["end"].is_null() {
            choice.end = logprobs["end"].clone();
        }
        if !piece["finish_reason"].is_null() {
            if !choice.finish.0.is_null() {
                bail!("a choice ended twice");
            }
            choice.finish = (piece["finish_reason"].clone(), piece["stop_reason"].clone());
        }
        Ok(())
    }
}

/// Sends a call; its reply, or nothing if the client hung up.
///
/// # Errors
/// Anything but a complete reply.
pub(super) async fn ask(client: &reqwest::Client, url: &str, call: &Call) -> Result<Option<Reply>> {
    let response = client.post(url).json(&call.body).send().await?;
    let status = response.status();
    if !status.is_success() {
        bail!("{status}: {}", response.text().await?);
    }
    let has_logprobs = call.body["logprobs"] == json!(true);
    if call.body["stream"] != json!(true) {
        let whole: Value = serde_json::from_slice(&response.bytes().await?)?;
        let mut reply = Reply::default();
        for choice in whole["choices"].as_array().context("no choices")? {
            reply.add(choice, &choice["message"])?;
        }
        return reply.check(has_logprobs).map(Some);
    }
    let mut pieces = response.bytes_stream();
    let mut text = Vec::new();
    let mut num_pieces = 0;
    loop {
        if call.hangs_up_after.is_some_and(|after| num_pieces >= after) {
            return Ok(None);
        }
        let Some(piece) = pieces.next().await else {
            break;
        };
        text.extend_from_slice(&piece?);
        num_pieces += 1;
    }
    collect(std::str::from_utf8(&text)?)?
        .check(has_logprobs)
        .map(Some)
}

fn collect(text: &str) -> Result<Reply> {
    let mut reply = Reply::default();
    let mut is_done = false;
    for line in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
        if line == "[DONE]" {
            is_done = true;
            continue;
        }
        let chunk: Value = serde_json::from_str(line)?;
        let choices = chunk["choices"]
            .as_array()
            .with_context(|| line.to_owned())?;
        for choice in choices {
            reply.add(choice, &choice["delta"])?;
        }
    }
    if !is_done {
        bail!("the stream broke off: {text}");
    }
    Ok(reply)
}
