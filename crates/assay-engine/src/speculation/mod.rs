//! Guesses of the tokens that come next, so that one pass of the model can settle several of them.
//!
//! A draft token is an ordinary row of the batch. It is accepted exactly when plain decoding draws the same token
//! there, from the same bits: what is guessed changes when tokens arrive and nothing else. Rejected guesses leave
//! no trace but time. Drafts depend on the sequence's own tokens and on how many sequences share the step.

mod draft_model;
mod ngram;
mod odds;
mod prompt_lookup;
mod stage;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use assay_models::{ForwardError, TokenId};

use crate::request::SamplingParams;
use crate::sampler::SeenTokens;
use crate::sequence::SeqId;
pub use draft_model::DraftModel;
use draft_model::ModelDrafts;
use prompt_lookup::PromptLookup;

/// Where drafts come from. Changes time, never a token or a score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speculation {
    /// No drafts.
    Off,
    /// Text that the sequence itself holds already: prompt lookup.
    #[default]
    Ngram,
}

/// How readily drafts are made. Changes time, never a token or a score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DraftEffort {
    /// As far as they pay, by what the reply has shown so far and how many share the step.
    #[default]
    Worthwhile,
    /// So many tokens wherever there is room, whatever they cost: what proves that drafts are harmless, since in a full
    /// batch they seldom pay.
    Always(NonZeroUsize),
}

/// Draft tokens behind one sequence in one step at most.
pub(crate) const MAX_DRAFT_TOKENS: usize = 15;

/// A sequence that decodes in this step, and the draft that it may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DraftSlot<'a> {
    pub(crate) seq_id: SeqId,
    /// Prompt, then the reply so far.
    pub(crate) token_ids: &'a [TokenId],
    pub(crate) num_prompt_tokens: usize,
    /// How the request draws.
    pub(crate) sampling: &'a SamplingParams,
    /// Tokens that penalties look at.
    pub(crate) seen: &'a SeenTokens,
    /// Draft tokens at most.
    pub(crate) limit: usize,
    /// What the row of a draft token costs, in tokens.
    pub(crate) row_cost: f64,
}

/// What the engine drafts with, and what that remembers of each sequence.
#[derive(Debug, Default)]
pub(crate) struct Drafter {
    effort: DraftEffort,
    lookups: Option<BTreeMap<SeqId, PromptLookup>>,
    model: Option<ModelDrafts>,
}

impl Drafter {
    pub(crate) fn new(
        speculation: Speculation,
        effort: DraftEffort,
        draft_model: Option<DraftModel>,
    ) -> Self {
        Self {
            effort,
            lookups: match speculation {
                Speculation::Off => None,
                Speculation::Ngram => Some(BTreeMap::new()),
            },
            model: draft_model.map(ModelDrafts::new),
        }
    }

    /// Whether there are never any drafts.
    pub(crate) fn is_off(&self) -> bool {
        self.lookups.is_none() && self.model.is_none()
    }

    /// What the row of a draft token is held to cost in a step of `num_decoding` decode rows, in tokens.
    pub(crate) fn row_cost(&self, num_decoding: usize) -> f64 {
        match self.effort {
            DraftEffort::Worthwhile => odds::row_cost(num_decoding),
            DraftEffort::Always(_) => 0.0,
        }
    }

    /// Draft tokens behind one sequence in one step at most.
    pub(crate) fn max_draft_tokens(&self) -> usize {
        match self.effort {
            DraftEffort::Worthwhile => MAX_DRAFT_TOKENS,
            DraftEffort::Always(num_tokens) => num_tokens.get().min(MAX_DRAFT_TOKENS),
        }
    }

    /// A draft for each slot, perhaps empty, never above its limit: what the text says costs nothing, so it comes
    /// first; the model is asked where the text says nothing.
    ///
    /// # Errors
    /// The draft model's, which is a broken invariant.
    pub(crate) fn propose(
        &mut self,
        slots: &[DraftSlot<'_>],
    ) -> Result<Vec<Vec<TokenId>>, ForwardError> {
        let mut drafts = vec![Vec::new(); slots.len()];
        if let Some(lookups) = &mut self.lookups {
            for (slot, draft) in slots.iter().zip(&mut drafts) {
                *draft = lookups.entry(slot.seq_id).or_default().propose(slot);
            }
        }
        if let Some(model) = &mut self.model {
            let unguessed: Vec<usize> = (0..slots.len())
                .filter(|&index| drafts[index].is_empty())
                .collect();
            let asked: Vec<&DraftSlot<'_>> = unguessed.iter().map(|&index| &slots[index]).collect();
            for (index, draft) in unguessed.into_iter().zip(model.propose(&asked)?) {
                drafts[index] = draft;
            }
        }
        Ok(drafts)
    }

    /// Forgets a sequence that has ended.
    pub(crate) fn forget(&mut self, seq_id: SeqId) {
        if let Some(lookups) = &mut self.lookups {
            lookups.remove(&seq_id);
        }
        if let Some(model) = &mut self.model {
            model.forget(seq_id);
        }
    }
}
