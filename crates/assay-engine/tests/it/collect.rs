//! Runs requests through a real engine and gathers what each one got.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use assay_engine::{
    Engine, EngineConfig, EngineHandle, Entry, FinishReason, Gone, LogprobsMode, LogprobsParams,
    OutputEvent, OutputSink, PromptToken, ReplyFormat, Request, RequestError, RequestId,
    SamplingParams, TokenBytes, TokenOutput, Usage,
};
use assay_models::{ForwardModel, TokenId};

/// Longest wait for an event: a hang fails the test, not the run.
const PATIENCE: Duration = Duration::from_secs(30);

/// A client: receives events, can leave.
pub(crate) struct Client {
    events: Receiver<OutputEvent>,
    is_gone: Arc<AtomicBool>,
}

/// The engine's side of a [`Client`].
pub(crate) struct ClientSink {
    events: Mutex<Sender<OutputEvent>>,
    is_gone: Arc<AtomicBool>,
    is_scheduled: bool,
}

impl OutputSink for ClientSink {
    fn send(&mut self, event: OutputEvent) -> Result<(), Gone> {
        if self.is_gone() {
            return Err(Gone);
        }
        assert!(
            self.is_scheduled || matches!(event, OutputEvent::Failed(_)),
            "before anything was scheduled: {event:?}"
        );
        let events = self.events.get_mut().expect("never poisoned");
        events.send(event).map_err(|_| Gone)
    }

    fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }

    fn scheduled(&mut self) {
        assert!(!self.is_scheduled, "told twice");
        self.is_scheduled = true;
    }
}

/// A token with a score's bits.
type ScoredBits = (TokenId, u64);

/// Everything one choice got.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ChoiceReply {
    /// Scored tokens of the prompt; choice 0 only.
    pub(crate) prompt: Vec<PromptToken>,
    pub(crate) entries: Vec<Entry>,
    /// Text of each delta, to tell streamed from whole.
    pub(crate) deltas: Vec<String>,
    pub(crate) finish: Option<FinishReason>,
    pub(crate) end: Option<TokenOutput>,
    pub(crate) usage: Option<Usage>,
}

impl ChoiceReply {
    pub(crate) fn text(&self) -> String {
        self.entries
            .iter()
            .map(|entry| entry.text.as_str())
            .collect()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.entries
            .iter()
            .flat_map(|entry| entry.bytes.iter().copied())
            .collect()
    }

    pub(crate) fn token_ids(&self) -> Vec<TokenId> {
        self.entries
            .iter()
            .map(|entry| entry.output.token_id)
            .collect()
    }

    /// Ids and every score's bits: what must not depend on company.
    pub(crate) fn bits(&self) -> Vec<(ScoredBits, Vec<ScoredBits>)> {
        self.entries
            .iter()
            .map(|entry| {
                let scores = entry.output.logprobs.as_ref();
                let chosen_bits = scores.map_or(0, |scores| scores.logprob.to_bits());
                (
                    (entry.output.token_id, chosen_bits),
                    scores.map_or_else(Vec::new, |scores| {
                        scores
                            .top_logprobs
                            .iter()
                            .map(|top| (top.token_id, top.logprob.to_bits()))
                            .collect()
                    }),
                )
            })
            .collect()
    }
}

/// The replies without the one count that depends on who was there before: what came from the cache.
pub(crate) fn without_cached_tokens(mut replies: Vec<ChoiceReply>) -> Vec<ChoiceReply> {
    for usage in replies.iter_mut().filter_map(|reply| reply.usage.as_mut()) {
        usage.cached_tokens = 0;
    }
    replies
}

impl Client {
    pub(crate) fn submit(
        engine: &EngineHandle,
        request: Request,
    ) -> Result<Self, assay_engine::SubmitError> {
        let (sender, events) = channel();
        let is_gone = Arc::new(AtomicBool::new(false));
        let sink = ClientSink {
            events: Mutex::new(sender),
            is_gone: Arc::clone(&is_gone),
            is_scheduled: false,
        };
        engine.submit(request, Box::new(sink))?;
        Ok(Self { events, is_gone })
    }

    /// The client leaves.
    pub(crate) fn leave(&self) {
        self.is_gone.store(true, Ordering::Release);
    }

    pub(crate) fn next_event(&self) -> OutputEvent {
        self.events
            .recv_timeout(PATIENCE)
            .expect("the engine sends an event")
    }

    /// Reads `num_events`, or as many as there are.
    pub(crate) fn read_at_most(&self, num_events: usize) {
        for _ in 0..num_events {
            match self.events.recv_timeout(PATIENCE) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => panic!("no event came"),
            }
        }
    }

    /// Nothing more may come, ever: the sink is gone.
    pub(crate) fn assert_silent(&self) {
        if let Ok(event) = self.events.try_recv() {
            panic!("an event after the end: {event:?}");
        }
    }

    /// Reads all choices to their end.
    pub(crate) fn collect(self, num_choices: u32) -> Result<Vec<ChoiceReply>, RequestError> {
        let mut replies = vec![ChoiceReply::default(); num_choices as usize];
        let mut num_unfinished = num_choices;
        while num_unfinished > 0 {
            match self.next_event() {
                OutputEvent::Prompt { tokens } => {
                    assert!(!tokens.is_empty(), "an empty prompt event");
                    let reply = &mut replies[0];
                    assert!(
                        reply.entries.is_empty() && reply.finish.is_none(),
                        "the prompt's scores come before the reply"
                    );
                    for token in tokens {
                        if let Some(before) = reply.prompt.last() {
                            assert_eq!(token.position, before.position + 1, "in order, each once");
                        }
                        reply.prompt.push(token);
                    }
                }
                OutputEvent::Delta {
                    choice_index,
                    entries,
                } => {
                    assert!(!entries.is_empty(), "an empty delta");
                    let reply = &mut replies[choice_index as usize];
                    assert_eq!(reply.finish, None, "a delta after the end");
                    reply
                        .deltas
                        .push(entries.iter().map(|entry| entry.text.as_str()).collect());
                    reply.entries.extend(entries);
                }
                OutputEvent::Finished {
                    choice_index,
                    reason,
                    end,
                    usage,
                } => {
                    let reply = &mut replies[choice_index as usize];
                    assert_eq!(reply.finish, None, "a choice finished twice");
                    reply.finish = Some(reason);
                    reply.end = end;
                    reply.usage = Some(usage);
                    num_unfinished -= 1;
                }
                OutputEvent::Failed(error) => return Err(error),
            }
        }
        self.assert_silent();
        Ok(replies)
    }
}

/// A request with nothing special about it: greedy, raw scores with five alternatives.
pub(crate) fn request(prompt_token_ids: Vec<TokenId>, max_tokens: u32) -> Request {
    Request {
        id: RequestId(0),
        prompt_token_ids,
        cache_salt: None,
        num_choices: 1,
        max_tokens,
        sampling: SamplingParams::greedy(),
        logprobs: Some(LogprobsParams {
            top_logprobs: 5,
            mode: LogprobsMode::Raw,
            include_end: false,
        }),
        prompt_logprobs: None,
        named_token_ids: Vec::new(),
        constraint: None,
        format: ReplyFormat::default(),
        stop: Vec::new(),
        end_token_ids: Vec::new(),
    }
}

pub(crate) fn spawn(
    model: impl ForwardModel + 'static,
    token_bytes: &[Vec<u8>],
    config: EngineConfig,
) -> EngineHandle {
    let token_bytes = Arc::new(TokenBytes::new(token_bytes));
    Engine::spawn(Box::new(model), token_bytes, config).expect("a valid configuration")
}

/// The single reply of a request to a fresh engine of its own.
pub(crate) fn reply_alone(
    model: impl ForwardModel + 'static,
    token_bytes: &[Vec<u8>],
    request: Request,
) -> Result<ChoiceReply, RequestError> {
    assert_eq!(request.num_choices, 1);
    let engine = spawn(model, token_bytes, EngineConfig::default());
    let client = Client::submit(&engine, request).expect("a valid request");
    let mut replies = client.collect(1)?;
    Ok(replies.remove(0))
}
