//! Reads replies, whole or streamed, down to what must not depend on company.

use anyhow::{Context, Result, bail};
use futures_util::StreamExt;
use serde_json::{Map, Value, json};

use super::bodies::Call;

/// What a call got: its choices, or its scores, by index. Numbers are written so that they read back to the same bits.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reply(Vec<Value>);

impl Reply {
    /// Entries of all choices.
    pub(super) fn num_entries(&self) -> u64 {
        let entries = self.0.iter().map(|choice| {
            let logprobs = &choice["logprobs"];
            let lists = [
                &logprobs["content"],
                &logprobs["tokens"],
                &choice["prompt_logprobs"],
                &choice["token_logprobs"],
            ];
            let lists = lists.into_iter().filter_map(Value::as_array);
            lists.map(Vec::len).sum::<usize>()
        });
        entries.sum::<usize>() as u64
    }

    /// The entries of a choice spell its text, where there are any.
    fn check(self) -> Result<Self> {
        for choice in &self.0 {
            let logprobs = &choice["logprobs"];
            let chat = logprobs["content"].as_array().into_iter().flatten();
            let chat: Vec<&Value> = chat.map(|entry| &entry["token"]).collect();
            let plain: Vec<&Value> = logprobs["tokens"]
                .as_array()
                .into_iter()
                .flatten()
                .collect();
            let (entries, text) = if plain.is_empty() {
                (chat, &choice["message"]["content"])
            } else {
                (plain, &choice["text"])
            };
            let spelled: String = entries.iter().filter_map(|token| token.as_str()).collect();
            if !entries.is_empty() && spelled != text.as_str().unwrap_or_default() {
                bail!("entries spell {spelled:?}, the text is {text}");
            }
        }
        Ok(self)
    }

    /// Adds a choice, or a piece of one.
    fn add(&mut self, mut piece: Value) -> Result<()> {
        let index = piece["index"].as_u64().context("a choice without index")?;
        let index = usize::try_from(index)?;
        if self.0.len() <= index {
            self.0.resize(index + 1, json!({}));
        }
        let members = piece.as_object_mut().context("a choice is an object")?;
        for known in ["index", "object"] {
            members.remove(known);
        }
        // A stream's pieces of a message.
        if let Some(delta) = members.remove("delta") {
            members.insert("message".to_owned(), delta);
        }
        append(&mut self.0[index], piece);
        Ok(())
    }
}

/// Texts and lists are appended, the rest is set; what is empty counts as absent.
fn append(all: &mut Value, piece: Value) {
    match (all, piece) {
        (_, Value::Null) => {}
        (Value::Object(all), Value::Object(piece)) => {
            for (name, value) in piece {
                if is_empty(&value) {
                    continue;
                }
                match all.get_mut(&name) {
                    Some(present) => append(present, value),
                    None => {
                        let mut fresh = match value {
                            Value::Object(_) => Value::Object(Map::new()),
                            _ => Value::Null,
                        };
                        append(&mut fresh, value);
                        if !is_empty(&fresh) {
                            all.insert(name, fresh);
                        }
                    }
                }
            }
        }
        (Value::Array(all), Value::Array(piece)) => all.extend(piece),
        (Value::String(all), Value::String(piece)) => all.push_str(&piece),
        (all, piece) => *all = piece,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// Sends a call; its reply, or nothing if the client hung up.
///
/// # Errors
/// Anything but a complete reply.
pub(super) async fn ask(
    client: &reqwest::Client,
    base: &str,
    call: &Call,
) -> Result<Option<Reply>> {
    let url = format!("{base}{}", call.path);
    let response = client.post(url).json(&call.body).send().await?;
    let status = response.status();
    if !status.is_success() {
        bail!("{status}: {}", response.text().await?);
    }
    if call.body["stream"] != json!(true) {
        let mut whole: Value = serde_json::from_slice(&response.bytes().await?)?;
        let mut reply = Reply::default();
        reply.add_all(&mut whole)?;
        return reply.check().map(Some);
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
    collect(std::str::from_utf8(&text)?)?.check().map(Some)
}

impl Reply {
    /// Adds all choices, or scores, of a reply or chunk.
    fn add_all(&mut self, whole: &mut Value) -> Result<()> {
        let list = match (whole["choices"].take(), whole["data"].take()) {
            (Value::Array(choices), _) => choices,
            (_, Value::Array(scores)) => scores,
            _ => bail!("no choices: {whole}"),
        };
        for piece in list {
            self.add(piece)?;
        }
        Ok(())
    }
}

fn collect(text: &str) -> Result<Reply> {
    let mut reply = Reply::default();
    let mut is_done = false;
    for line in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
        if line == "[DONE]" {
            is_done = true;
            continue;
        }
        let mut chunk: Value = serde_json::from_str(line)?;
        reply.add_all(&mut chunk)?;
    }
    if !is_done {
        bail!("the stream broke off: {text}");
    }
    Ok(reply)
}
