//! Drafts from the sequence's own text: what followed the last tokens when they came before.
//!
//! The guess for the next token is made for every token of the reply, also where no row is spent on it, and
//! compared with what is drawn. So the worth of a match is known without paying for it, text that does not repeat
//! itself gets next to no drafts, and text that begins to repeat itself gets them at once.

use assay_models::TokenId;

use super::DraftSlot;
use super::ngram::{MAX_MATCH, Match, NgramIndex, continuation};
use super::odds::{HitRate, worthwhile};

/// What a match of one token more is believed to be worth before the reply has shown it, by tokens that match.
const PRIOR_HIT_RATES: [f64; MAX_MATCH] = [
    0.15, 0.25, 0.35, 0.45, 0.55, 0.6, 0.65, 0.7, 0.75, 0.75, 0.8, 0.8, 0.85, 0.85, 0.9, 0.9,
];

/// What is remembered of one sequence.
#[derive(Clone, Debug)]
pub(crate) struct PromptLookup {
    index: NgramIndex,
    /// The match of all tokens taken in so far.
    found: Option<Match>,
    /// How often the token behind a match came next, by the tokens that matched; of length 1 first.
    hit_rates: [HitRate; MAX_MATCH],
}

impl Default for PromptLookup {
    fn default() -> Self {
        Self {
            index: NgramIndex::default(),
            found: None,
            hit_rates: PRIOR_HIT_RATES.map(HitRate::new),
        }
    }
}

impl PromptLookup {
    /// A draft for the sequence, which is as before or longer.
    pub(crate) fn propose(&mut self, slot: &DraftSlot<'_>) -> Vec<TokenId> {
        self.follow(slot.token_ids, slot.num_prompt_tokens);
        let Some(found) = self.found else {
            return Vec::new();
        };
        // A token that is accepted makes the match longer by one.
        let hit_rate = |offset| self.hit_rate_of(found.length + offset);
        let num_tokens = worthwhile(slot.row_cost, slot.limit, hit_rate);
        (0..num_tokens)
            .map(|offset| continuation(slot.token_ids, found, offset))
            .collect()
    }

    /// Takes in what is new, and learns from the reply's tokens.
    fn follow(&mut self, token_ids: &[TokenId], num_prompt_tokens: usize) {
        for end in self.index.num_indexed() + 1..=token_ids.len() {
            let (before, token_id) = (&token_ids[..end - 1], token_ids[end - 1]);
            if let Some(found) = self.found {
                let is_hit = continuation(before, found, 0) == token_id;
                self.hit_rates[found.length - 1].observe(is_hit);
            }
            self.index.push(&token_ids[..end]);
            if end >= num_prompt_tokens {
                self.found = self.index.longest_match(&token_ids[..end]);
            }
        }
    }

    fn hit_rate_of(&self, length: usize) -> f64 {
        self.hit_rates[length.min(MAX_MATCH) - 1].get()
    }
}
