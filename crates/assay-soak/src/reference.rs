//! What each request gets alone on a cold engine: computed once, by one thread, without drafts, from a whole prompt.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use assay_engine::decision::DecisionRequest;
use assay_engine::{Request, RequestId};

use crate::client::Outcome;
use crate::decisions::DecisionOutcome;
use crate::rig::{Rig, Setup};
use crate::subject::Subject;

/// References of one subject.
pub struct References {
    subject: Arc<Subject>,
    known: BTreeMap<String, Arc<Outcome>>,
    known_decisions: BTreeMap<String, Arc<DecisionOutcome>>,
}

impl References {
    /// None known yet.
    pub fn new(subject: &Arc<Subject>) -> Self {
        Self {
            subject: Arc::clone(subject),
            known: BTreeMap::new(),
            known_decisions: BTreeMap::new(),
        }
    }

    /// How many different requests were run.
    pub fn num_known(&self) -> usize {
        self.known.len() + self.known_decisions.len()
    }

    /// What `request` gets alone, on an engine of its own. `schema` is the text of its constraint, which requests
    /// do not show.
    ///
    /// # Errors
    /// The engine failed, rather than the request.
    pub fn of(&mut self, request: &Request, schema: Option<&str>) -> Result<Arc<Outcome>> {
        // Neither name nor salt may move a bit.
        let plain = Request {
            id: RequestId(0),
            cache_salt: None,
            ..request.clone()
        };
        let key = format!("{schema:?} {plain:?}");
        if let Some(known) = self.known.get(&key) {
            return Ok(Arc::clone(known));
        }
        let mut rig = Rig::start(&self.subject, &Setup::reference())?;
        let (_, client) = rig.submit(plain)?;
        let collected = client.collect().map_err(|error| anyhow!(error))?;
        rig.stop()?;
        let outcome = Arc::new(collected.outcome);
        self.known.insert(key, Arc::clone(&outcome));
        Ok(outcome)
    }

    /// What a decision gets alone.
    ///
    /// # Errors
    /// The engine failed, rather than the decision.
    pub fn of_decision(&mut self, request: &DecisionRequest) -> Result<Arc<DecisionOutcome>> {
        let plain = DecisionRequest {
            cache_salt: None,
            ..request.clone()
        };
        let key = format!("{plain:?}");
        if let Some(known) = self.known_decisions.get(&key) {
            return Ok(Arc::clone(known));
        }
        let mut rig = Rig::start(&self.subject, &Setup::reference())?;
        let outcome = rig.decide(plain)?.outcome();
        rig.stop()?;
        let outcome = Arc::new(outcome.map_err(|error| anyhow!(error))?);
        self.known_decisions.insert(key, Arc::clone(&outcome));
        Ok(outcome)
    }
}
