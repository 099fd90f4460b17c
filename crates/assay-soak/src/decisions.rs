//! Decisions beside the soak's other traffic: questions about shared beginnings, each held against itself alone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use assay_engine::decision::{
    DEFAULT_MAX_TRIE_EDGES, DecideError, DecisionReading, DecisionRequest, DecisionSink,
    LabelQuestion,
};
use assay_engine::{CacheSalt, EngineHandle, RequestError};
use assay_models::TokenId;

use crate::random::Random;

/// Longest wait for an outcome.
const PATIENCE: Duration = Duration::from_secs(600);

/// A prompt of a decision has fewer tokens: with labels and forks it fits the smallest pool.
const LONGEST_PROMPT: usize = 300;

/// A decision, and whether its client leaves at once.
#[derive(Clone, Debug)]
pub struct DecisionVisit {
    /// The request.
    pub request: DecisionRequest,
    /// Leaves without reading.
    pub leaves: bool,
}

/// Some questions over one beginning, which is `words`'s, with labels cut from its tokens.
pub fn any_decision(
    words: &[TokenId],
    end_token_ids: &[TokenId],
    cache_salt: CacheSalt,
    random: &mut Random,
) -> DecisionRequest {
    let num_state = random.between(1, LONGEST_PROMPT.min(words.len()) - 40);
    // Few tokens for the labels, so that they share beginnings and begin each other.
    let alphabet: Vec<TokenId> = words
        .iter()
        .filter(|id| !end_token_ids.contains(id))
        .take(random.between(2, 6))
        .copied()
        .collect();
    let questions = (0..random.between(1, 4)).map(|_| {
        let mut prompt_token_ids = words[..num_state].to_vec();
        let own = random.below(30);
        prompt_token_ids.extend((0..own).map(|_| *random.pick(words)));
        let labels: BTreeSet<Vec<TokenId>> = (0..random.between(1, 24))
            .map(|_| {
                (0..random.between(1, 6))
                    .map(|_| *random.pick(&alphabet))
                    .collect()
            })
            .collect();
        LabelQuestion {
            prompt_token_ids,
            labels: labels.into_iter().collect(),
            end_token_ids: end_token_ids.to_vec(),
            healed_bytes: Vec::new(),
        }
    });
    DecisionRequest {
        questions: questions.collect(),
        cache_salt,
        max_trie_edges: DEFAULT_MAX_TRIE_EDGES,
    }
}

/// What a decision came to, without what it owed to the cache.
pub type DecisionOutcome = Result<DecisionReading, String>;

/// Receives a decision's outcome; can leave.
pub struct Asker {
    outcome: Receiver<Result<DecisionReading, RequestError>>,
    is_gone: Arc<AtomicBool>,
}

struct AskerSink {
    outcome: Sender<Result<DecisionReading, RequestError>>,
    is_gone: Arc<AtomicBool>,
}

impl DecisionSink for AskerSink {
    fn send(&mut self, outcome: Result<DecisionReading, RequestError>) {
        // A client that left wants no word.
        let _ = self.outcome.send(outcome);
    }

    fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }
}

impl Asker {
    /// Hands a decision to the engine.
    ///
    /// # Errors
    /// The engine's refusal.
    pub fn ask(engine: &EngineHandle, request: DecisionRequest) -> Result<Self, DecideError> {
        let (sender, outcome) = channel();
        let is_gone = Arc::new(AtomicBool::new(false));
        let sink = AskerSink {
            outcome: sender,
            is_gone: Arc::clone(&is_gone),
        };
        engine.decide(request, Box::new(sink))?;
        Ok(Self { outcome, is_gone })
    }

    /// Wants no outcome any more.
    pub fn leave(self) {
        self.is_gone.store(true, Ordering::Release);
    }

    /// The outcome.
    ///
    /// # Errors
    /// None came.
    pub fn outcome(self) -> Result<DecisionOutcome, String> {
        let outcome = self.outcome.recv_timeout(PATIENCE);
        let outcome = outcome.map_err(|error| format!("no outcome came: {error}"))?;
        Ok(outcome
            .map(without_cached_tokens)
            .map_err(|error| error.to_string()))
    }
}

fn without_cached_tokens(mut reading: DecisionReading) -> DecisionReading {
    reading.cached_tokens = 0;
    for question in &mut reading.questions {
        question.cached_tokens = 0;
    }
    reading
}
