//! A client of decisions, and the reference: each label path forced alone, as a prompt that is scored.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use assay_engine::decision::{
    DEFAULT_MAX_TRIE_EDGES, DecideError, DecisionReading, DecisionRequest, DecisionSink,
    LabelQuestion, LabelReading,
};
use assay_engine::{EngineHandle, PromptLogprobsParams, Request, RequestError};
use assay_kernels::exp64::{exp64, ln64};
use assay_models::TokenId;

use crate::collect::{Client, request};

const PATIENCE: Duration = Duration::from_secs(60);

type Outcome = Result<DecisionReading, RequestError>;

/// Waits for one outcome; can leave.
pub(crate) struct Asker {
    outcome: Receiver<Outcome>,
    is_gone: Arc<AtomicBool>,
}

struct AskerSink {
    outcome: Sender<Outcome>,
    is_gone: Arc<AtomicBool>,
}

impl DecisionSink for AskerSink {
    fn send(&mut self, outcome: Outcome) {
        let _ = self.outcome.send(outcome);
    }

    fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }
}

impl Asker {
    pub(crate) fn ask(
        engine: &EngineHandle,
        request: DecisionRequest,
    ) -> Result<Self, DecideError> {
        let (sender, outcome) = channel();
        let is_gone = Arc::new(AtomicBool::new(false));
        let sink = AskerSink {
            outcome: sender,
            is_gone: Arc::clone(&is_gone),
        };
        engine.decide(request, Box::new(sink))?;
        Ok(Self { outcome, is_gone })
    }

    pub(crate) fn leave(&self) {
        self.is_gone.store(true, Ordering::Release);
    }

    /// The outcome, which comes once.
    pub(crate) fn outcome(self) -> Outcome {
        let outcome = self.outcome.recv_timeout(PATIENCE);
        let outcome = outcome.expect("an outcome comes");
        assert!(
            self.outcome.recv_timeout(PATIENCE).is_err(),
            "it came twice"
        );
        outcome
    }

    pub(crate) fn assert_silent(self) {
        assert!(
            self.outcome.recv_timeout(PATIENCE).is_err(),
            "an outcome after leaving"
        );
    }
}

/// The readings of a request that nothing is wrong with.
pub(crate) fn decide(engine: &EngineHandle, request: DecisionRequest) -> DecisionReading {
    let asker = Asker::ask(engine, request).expect("a sound request");
    asker.outcome().expect("finite rows")
}

pub(crate) fn decision(questions: Vec<LabelQuestion>) -> DecisionRequest {
    DecisionRequest {
        questions,
        cache_salt: None,
        max_trie_edges: DEFAULT_MAX_TRIE_EDGES,
    }
}

pub(crate) fn question(
    prompt_token_ids: Vec<TokenId>,
    labels: &[&[TokenId]],
    end_token_ids: &[TokenId],
) -> LabelQuestion {
    LabelQuestion {
        prompt_token_ids,
        labels: labels.iter().map(|label| label.to_vec()).collect(),
        end_token_ids: end_token_ids.to_vec(),
        healed_bytes: Vec::new(),
    }
}

/// What forcing one label alone gives: each step, and the terminators together.
pub(crate) struct Forced {
    pub(crate) steps: Vec<f64>,
    pub(crate) end: f64,
    pub(crate) joint: f64,
}

/// Scores prompt, label and a terminator as one prompt, with an engine that has nothing else to do.
pub(crate) fn force(engine: &EngineHandle, question: &LabelQuestion, label: &[TokenId]) -> Forced {
    let prompt = &question.prompt_token_ids;
    let ends = &question.end_token_ids;
    let request = Request {
        prompt_logprobs: Some(PromptLogprobsParams {
            first_position: prompt.len() as u32,
            top_logprobs: 0,
        }),
        named_token_ids: ends.clone(),
        logprobs: None,
        ..request([prompt.as_slice(), label, &ends[..1]].concat(), 0)
    };
    let client = Client::submit(engine, request).expect("a sound request");
    let mut scored = client.collect(1).expect("finite rows").remove(0).prompt;
    let last = scored.pop().expect("the terminator is scored");
    let named = last.logprobs.named.expect("terminators are named");
    let of_end = |end: &TokenId| {
        let mut candidates = named.candidates.iter();
        candidates
            .find(|one| one.token_id == *end)
            .expect("it is named")
            .logprob
    };
    let ends: Vec<f64> = ends.iter().map(of_end).collect();
    let most = ends.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let end = match ends.as_slice() {
        [end] => *end,
        ends => most + ln64(ends.iter().fold(0.0, |mass, end| mass + exp64(end - most))),
    };
    let steps: Vec<f64> = scored.iter().map(|token| token.logprobs.logprob).collect();
    let joint = steps.iter().fold(0.0, |sum, step| sum + step) + end;
    Forced { steps, end, joint }
}

/// Every label's bits are those of its path alone, and the masses add up.
pub(crate) fn check_forced(alone: &EngineHandle, question: &LabelQuestion, reading: &LabelReading) {
    assert_eq!(reading.labels.len(), question.labels.len());
    let bits = |values: &[f64]| {
        values
            .iter()
            .map(|value| value.to_bits())
            .collect::<Vec<_>>()
    };
    for (label, score) in question.labels.iter().zip(&reading.labels) {
        let forced = force(alone, question, label);
        assert_eq!(bits(&score.steps), bits(&forced.steps), "{label:?}");
        assert_eq!(
            bits(&[score.end, score.joint]),
            bits(&[forced.end, forced.joint]),
            "{label:?}"
        );
    }
    check_masses(reading);
}

pub(crate) fn check_masses(reading: &LabelReading) {
    let mass: f64 = reading.labels.iter().map(|label| label.joint.exp()).sum();
    assert!(
        (mass - reading.label_mass).abs() < 1e-12,
        "{mass}, not {}",
        reading.label_mass
    );
    let total = reading.label_mass + reading.leaving_mass;
    assert!(
        (total - 1.0).abs() < 1e-9,
        "label and leaving mass add up to {total}"
    );
}

/// A reading without what depends on who was there before.
pub(crate) fn without_cached_tokens(mut reading: DecisionReading) -> DecisionReading {
    reading.cached_tokens = 0;
    for question in &mut reading.questions {
        question.cached_tokens = 0;
    }
    reading
}
