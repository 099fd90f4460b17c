//! `assay chat`: a conversation on the terminal, engine in process. With `--probs` each reply is followed
//! by its tokens' probabilities; on a terminal the text itself is coloured by them.

use std::io::{BufRead, IsTerminal, Write};
use std::sync::mpsc;

use anyhow::{Context, Result, bail};
use assay_engine::{
    Entry, LogprobsMode, LogprobsParams, OutputEvent, ReplyFormat, Request, RequestId,
    SamplingParams,
};
use assay_tokenizer::{
    EncodeOptions, RenderOptions, SpecialText, SpecialTokens, TemplateDate, display_token,
};
use clap::Args;
use serde_json::{Value, json};

use crate::channel::ChannelSink;
use crate::config::ModelConfig;
use crate::interrupt::Interrupt;
use crate::load::{self, Loaded};
use crate::table::{self, TokenRow};
use crate::terminal::{self, Colour, say};

const OTHERS_SHOWN: usize = 3;

/// How to chat.
#[derive(Args, Clone, Debug)]
pub(crate) struct ChatArgs {
    /// Instruction that stands before the conversation
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// 0 always takes the likeliest token
    #[arg(long, default_value_t = 0.7, value_parser = parse_temperature)]
    temperature: f64,
    /// Makes a conversation repeatable
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Longest reply in tokens
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: u32,
    /// Print a table of the tokens' probabilities after each reply
    #[arg(long)]
    probs: bool,
}

fn parse_temperature(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=2.0).contains(&value) => Ok(value),
        _ => Err("must be a number from 0 to 2".to_owned()),
    }
}

/// Reads questions from standard input until its end or `/quit`.
///
/// # Errors
/// If the model does not load, has no chat template, or a reply fails.
pub(crate) fn run(config: ModelConfig, args: ChatArgs, interrupt: &Interrupt) -> Result<()> {
    let loaded = load::load(&config, 1, interrupt)?;
    let mut conversation = Conversation::new(loaded, args, config.template_date)?;
    let prompting = std::io::stdin().is_terminal();
    if prompting {
        say(format_args!(
            "chatting with {}; /reset starts over, /quit ends",
            conversation.loaded.model_id
        ));
    }
    let mut lines = std::io::stdin().lock().lines();
    loop {
        if prompting {
            let _ = write!(std::io::stderr(), "\n> ");
        }
        let Some(line) = lines.next() else {
            return Ok(());
        };
        match line.context("cannot read the question")?.trim() {
            "" => {}
            "/quit" => return Ok(()),
            "/reset" => conversation.reset(),
            question => conversation.ask(question, &mut terminal::stdout())?,
        }
    }
}

struct Conversation {
    loaded: Loaded,
    args: ChatArgs,
    template_date: TemplateDate,
    messages: Vec<Value>,
    next_id: u64,
}

impl Conversation {
    fn new(loaded: Loaded, args: ChatArgs, template_date: TemplateDate) -> Result<Self> {
        if loaded.template.is_none() {
            bail!(
                "{} is a base model: its file has no chat template",
                loaded.model_id
            );
        }
        let mut conversation = Self {
            loaded,
            args,
            template_date,
            messages: Vec::new(),
            next_id: 0,
        };
        conversation.reset();
        Ok(conversation)
    }

    fn reset(&mut self) {
        self.messages.clear();
        if let Some(system) = &self.args.system {
            self.messages
                .push(json!({"role": "system", "content": system}));
        }
    }

    /// Asks and prints the reply as it comes. A question that does not fit is dropped with a word about it.
    fn ask(&mut self, question: &str, out: &mut impl Write) -> Result<()> {
        self.messages
            .push(json!({"role": "user", "content": question}));
        let prompt_token_ids = self.prompt()?;
        let room = self
            .loaded
            .info
            .context_length
            .saturating_sub(prompt_token_ids.len());
        let Some(max_tokens) = u32::try_from(room).ok().filter(|room| *room > 0) else {
            self.messages.pop();
            say(format_args!(
                "the conversation has outgrown the context; /reset starts over"
            ));
            return Ok(());
        };
        let (sink, events) = ChannelSink::new();
        let request = self.request(prompt_token_ids, max_tokens.min(self.args.max_tokens));
        self.loaded.engine.submit(request, Box::new(sink))?;
        let entries = print_reply(&events, Colour::for_stdout(), out)?;
        if self.args.probs {
            write!(
                out,
                "\n{}",
                table::render(&self.rows(&entries), Colour::for_stdout())
            )?;
        }
        let reply: String = entries.iter().map(|entry| entry.text.as_str()).collect();
        self.messages
            .push(json!({"role": "assistant", "content": reply}));
        Ok(())
    }

    /// The conversation as the template takes it: words that look like control tokens stay words.
    fn messages(&self) -> Value {
        let tokenizer = &self.loaded.tokenizer;
        let messages = self.messages.iter().map(|message| {
            let words = message["content"].as_str().unwrap_or_default();
            json!({"role": message["role"], "content": tokenizer.mark_literal(words)})
        });
        messages.collect()
    }

    fn prompt(&self) -> Result<Vec<u32>> {
        let template = self
            .loaded
            .template
            .as_ref()
            .context("checked at the start")?;
        let options = RenderOptions {
            date: self.template_date,
            ..RenderOptions::default()
        };
        let text = template.render(&self.messages(), &options)?;
        let encoding = EncodeOptions {
            add_special: SpecialTokens::Omit,
            parse_special: SpecialText::Parse,
        };
        Ok(self.loaded.tokenizer.encode(&text, encoding)?)
    }

    fn request(&mut self, prompt_token_ids: Vec<u32>, max_tokens: u32) -> Request {
        self.next_id += 1;
        Request {
            id: RequestId(self.next_id),
            prompt_token_ids,
            cache_salt: None,
            num_choices: 1,
            max_tokens,
            sampling: SamplingParams {
                logit_bias: Vec::new(),
                repetition_penalty: 1.0,
                presence_penalty: 0.0,
                frequency_penalty: 0.0,
                temperature: self.args.temperature,
                top_k: None,
                top_p: 1.0,
                min_p: 0.0,
                seed: self.args.seed,
            },
            logprobs: Some(LogprobsParams {
                top_logprobs: OTHERS_SHOWN as u32 + 1,
                mode: LogprobsMode::Raw,
                include_end: false,
            }),
            stop: Vec::new(),
            end_token_ids: self.loaded.tokenizer.end_token_ids().to_vec(),
            prompt_logprobs: None,
            named_token_ids: Vec::new(),
            constraint: None,
            format: ReplyFormat::default(),
        }
    }

    fn rows(&self, entries: &[Entry]) -> Vec<TokenRow> {
        let text = |id| display_token(self.loaded.tokenizer.token_bytes(id).unwrap_or_default());
        let row = |entry: &Entry| {
            let scores = entry.output.logprobs.as_ref()?;
            let others = scores
                .top_logprobs
                .iter()
                .filter(|top| top.token_id != entry.output.token_id);
            Some(TokenRow {
                token: text(entry.output.token_id),
                logprob: scores.logprob,
                others: others
                    .take(OTHERS_SHOWN)
                    .map(|top| (text(top.token_id), top.logprob))
                    .collect(),
            })
        };
        entries.iter().filter_map(row).collect()
    }
}

/// Prints deltas as they come, and returns all entries.
fn print_reply(
    events: &mpsc::Receiver<OutputEvent>,
    colour: Colour,
    out: &mut impl Write,
) -> Result<Vec<Entry>> {
    let mut all = Vec::new();
    loop {
        match events.recv().context("the engine stopped")? {
            OutputEvent::Delta { entries, .. } => {
                for entry in &entries {
                    let logprob = entry
                        .output
                        .logprobs
                        .as_ref()
                        .map_or(0.0, |scores| scores.logprob);
                    write!(out, "{}", colour.paint(&entry.text, logprob.exp()))?;
                }
                out.flush()?;
                all.extend(entries);
            }
            OutputEvent::Finished { .. } => {
                writeln!(out)?;
                return Ok(all);
            }
            // Not asked for.
            OutputEvent::Prompt { .. } => {}
            OutputEvent::Failed(error) => return Err(error.into()),
        }
    }
}
