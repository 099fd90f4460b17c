//! Receipts of replies under way: whether one is made, what goes into it, and that it is in the ledger before the
//! answer leaves.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use assay_engine::{FinishReason, LogprobsMode, LogprobsParams, OutputEvent, Request, TokenOutput};
use assay_receipt::{Receipt, RecordedToken, Recording, ReplyFacts, Sha256Hex, seal, seal_of};
use serde_json::Value;

use crate::convert::reply_shape::ReplyNames;
use crate::error::ApiError;
use crate::ledger::LedgerEntry;
use crate::state::AppState;

/// Scores that drawn tokens need for a receipt, where the request asks for none.
const RECORDED: LogprobsParams = LogprobsParams {
    top_logprobs: 0,
    mode: LogprobsMode::Raw,
    include_end: false,
};

/// A reply whose receipt is made.
#[derive(Clone, Debug)]
pub(crate) struct ReceiptOrder {
    reply_id: String,
    facts: ReplyFacts,
    /// Whether the client gets it.
    is_returned: bool,
    /// Whether the ledger gets it.
    is_logged: bool,
}

/// Whether a reply says anything that the ledger keeps: values of the model, or text alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scored {
    Yes,
    No,
}

impl From<bool> for Scored {
    fn from(is_scored: bool) -> Self {
        if is_scored { Self::Yes } else { Self::No }
    }
}

impl AppState {
    /// The order for a reply's receipt, if anybody wants one: the request (`is_asked`), or the server's settings.
    pub(crate) fn receipt_order(
        &self,
        names: &ReplyNames,
        route: &'static str,
        body: &[u8],
        is_asked: bool,
        scored: Scored,
    ) -> Option<ReceiptOrder> {
        let config = self.config();
        let is_returned = is_asked || config.receipts;
        let is_logged = config.ledger.is_some() && (scored == Scored::Yes || is_asked);
        (is_returned || is_logged).then(|| ReceiptOrder {
            reply_id: names.id.clone(),
            facts: ReplyFacts {
                route,
                request_sha256: Sha256Hex::of_bytes(body),
                created: names.created,
            },
            is_returned,
            is_logged,
        })
    }

    /// Seals what was recorded and writes it to the ledger; the receipt, where the client gets it.
    ///
    /// # Errors
    /// The ledger was not written: the answer must not leave.
    pub(crate) async fn issue_receipt(
        &self,
        order: ReceiptOrder,
        recording: Recording,
    ) -> Result<Option<Value>, ApiError> {
        let ReceiptOrder {
            reply_id,
            facts,
            is_returned,
            is_logged,
        } = order;
        let identity = Arc::clone(self.identity());
        // As long as the reply is: no work for a thread that serves connections.
        let sealed = tokio::task::spawn_blocking(move || {
            let receipt = recording.receipt(&identity, facts);
            let sealed = seal(&receipt);
            let entry = is_logged.then(|| ledger_entry(reply_id, &receipt, &sealed));
            (sealed, entry)
        });
        let (sealed, entry) = sealed
            .await
            .map_err(|error| ApiError::Internal(error.to_string()))?;
        if let (Some(entry), Some(ledger)) = (entry, &self.config().ledger) {
            ledger.append(entry).await?;
        }
        Ok(is_returned.then_some(sealed))
    }
}

fn ledger_entry(reply_id: String, receipt: &Receipt, sealed: &Value) -> LedgerEntry {
    LedgerEntry {
        reply_id,
        route: receipt.route.clone(),
        created: receipt.created,
        model: receipt.model.name.clone(),
        system_fingerprint: receipt.system_fingerprint.clone(),
        request_sha256: receipt.request_sha256.as_str().to_owned(),
        receipt_sha256: seal_of(sealed).unwrap_or_default().to_owned(),
        receipt: sealed.to_string(),
    }
}

/// What is heard of one prompt's tokens, written on the engine's thread and read when the reply is whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace(Arc<Mutex<Heard>>);

#[derive(Debug, Default)]
struct Heard {
    scored: Vec<RecordedToken>,
    /// By choice.
    drawn: BTreeMap<u32, Vec<RecordedToken>>,
    finished: BTreeMap<u32, FinishReason>,
}

impl Trace {
    /// Hears an event on its way to the client.
    pub(crate) fn event(&self, event: &OutputEvent) {
        match event {
            OutputEvent::Prompt { tokens } => {
                let tokens = tokens.iter().map(|token| RecordedToken {
                    token_id: token.token_id,
                    logprob: token.logprobs.logprob,
                });
                self.heard().scored.extend(tokens);
            }
            OutputEvent::Finished {
                choice_index,
                reason,
                ..
            } => {
                self.heard().finished.insert(*choice_index, reason.clone());
            }
            OutputEvent::Delta { .. } | OutputEvent::Failed(_) => {}
        }
    }

    /// Hears a token, whether or not it spells anything.
    pub(crate) fn drawn(&self, choice_index: u32, output: &TokenOutput) {
        // Every traced request asks for scores.
        let logprob = output
            .logprobs
            .as_ref()
            .map_or(f64::NAN, |scores| scores.logprob);
        let token = RecordedToken {
            token_id: output.token_id,
            logprob,
        };
        self.heard()
            .drawn
            .entry(choice_index)
            .or_default()
            .push(token);
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what was heard of `request` to a receipt.
    fn record(&self, request: &Request, recording: &mut Recording) {
        let heard = self.heard();
        if let Some(params) = request.prompt_logprobs {
            let first = usize::try_from(params.first_position).unwrap_or(usize::MAX);
            let prompt = request.prompt_token_ids.iter().take(first).copied();
            recording.add_scored(prompt.collect(), &heard.scored);
        }
        for (choice_index, tokens) in &heard.drawn {
            if let Some(reason) = heard.finished.get(choice_index) {
                recording.add_drawn(request, *choice_index, tokens, reason);
            }
        }
    }
}

/// A generated or scored reply whose receipt is made.
#[derive(Debug)]
pub(crate) struct RecordedReply {
    order: ReceiptOrder,
    /// By prompt, those without work for the engine left out.
    traces: Vec<(Request, Trace)>,
}

impl RecordedReply {
    pub(crate) fn new(order: ReceiptOrder) -> Self {
        Self {
            order,
            traces: Vec::new(),
        }
    }

    /// Begins to hear `request`, which is told to score what it draws.
    pub(crate) fn trace(&mut self, request: &mut Request) -> Trace {
        request.logprobs.get_or_insert(RECORDED);
        let trace = Trace::default();
        self.traces.push((request.clone(), trace.clone()));
        trace
    }

    /// The receipt of the whole reply, in the ledger where there is one.
    ///
    /// # Errors
    /// The ledger was not written.
    pub(crate) async fn issue(self, app: &AppState) -> Result<Option<Value>, ApiError> {
        let mut recording = Recording::default();
        for (request, trace) in &self.traces {
            trace.record(request, &mut recording);
        }
        app.issue_receipt(self.order, recording).await
    }
}
