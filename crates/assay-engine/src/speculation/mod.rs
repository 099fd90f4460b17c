//! Guesses of the tokens that come next, so that one pass of the model can settle several of them.
//!
//! A draft token is an ordinary row of the batch. It is accepted exactly when plain decoding draws the same token
//! there, from the same bits: what is guessed changes when tokens arrive and nothing else. Rejected guesses leave
//! no trace but time. Drafts depend on the sequence's own tokens and on how many sequences share the step.

mod ngram;
mod odds;
mod prompt_lookup;
mod stage;

use std::collections::BTreeMap;

use assay_models::TokenId;

use crate::sequence::SeqId;
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

/// Draft tokens behind one sequence in one step at most.
pub(crate) const MAX_DRAFT_TOKENS: usize = 15;

/// A sequence that decodes in this step, and the draft that it may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DraftSlot<'a> {
    pub(crate) seq_id: SeqId,
    /// Prompt, then the reply so far.
    pub(crate) token_ids: &'a [TokenId],
    pub(crate) num_prompt_tokens: usize,
    /// Draft tokens at most.
    pub(crate) limit: usize,
    /// What the row of a draft token costs, in tokens.
    pub(crate) row_cost: f64,
}

/// What the engine drafts with, and what that remembers of each sequence.
#[derive(Debug, Default)]
pub(crate) struct Drafter {
    lookups: Option<BTreeMap<SeqId, PromptLookup>>,
}

impl Drafter {
    pub(crate) fn new(speculation: Speculation) -> Self {
        Self {
            lookups: match speculation {
                Speculation::Off => None,
                Speculation::Ngram => Some(BTreeMap::new()),
            },
        }
    }

    /// Whether there are ever any drafts.
    pub(crate) fn is_off(&self) -> bool {
        self.lookups.is_none()
    }

    /// A draft for each slot, perhaps empty, never above its limit.
    pub(crate) fn propose(&mut self, slots: &[DraftSlot<'_>]) -> Vec<Vec<TokenId>> {
        let Some(lookups) = &mut self.lookups else {
            return vec![Vec::new(); slots.len()];
        };
        slots
            .iter()
            .map(|slot| lookups.entry(slot.seq_id).or_default().propose(slot))
            .collect()
    }

    /// Forgets a sequence that has ended.
    pub(crate) fn forget(&mut self, seq_id: SeqId) {
        if let Some(lookups) = &mut self.lookups {
            lookups.remove(&seq_id);
        }
    }
}
