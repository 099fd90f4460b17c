//! Drafts from a second, smaller model of the same vocabulary.
//!
//! It draws as the request does, with the same random number at each position, so that where the two models agree
//! the draws do too. It keeps keys and values of its own and catches up by itself, whatever happened to a sequence
//! in between: tokens that it has computed and that the sequence still has stay, the rest is computed again.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use assay_models::{BlockId, ForwardBatch, ForwardError, ForwardModel, Logits, TokenId};

use super::DraftSlot;
use super::odds::{HitRate, worthwhile};
use crate::draw::draw_token;
use crate::sampler::{self, DrawKey, SeenTokens};
use crate::sequence::SeqId;

/// Rows of one step that bring the model up to its sequences; what is left comes with the next steps.
const CATCH_UP_ROWS: usize = 256;
/// How often a token is guessed right before anything was seen.
const PRIOR_HIT_RATE: f64 = 0.7;
/// Where guesses do not pay, one is made after so many tokens all the same, to see whether that has changed.
const PROBE_TOKENS: usize = 32;

/// A model to draft with.
pub struct DraftModel {
    /// As wide as the model that it drafts for, and of the same tokens.
    pub model: Box<dyn ForwardModel>,
    /// How long one of its passes takes, in passes of the model that it drafts for; above 0. Steers time only.
    pub relative_cost: f64,
}

impl fmt::Debug for DraftModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            model,
            relative_cost,
        } = self;
        write!(
            f,
            "DraftModel {{ {:?}, relative_cost: {relative_cost} }}",
            model.info()
        )
    }
}

/// A draft model with what it has computed of each sequence.
#[derive(Debug)]
pub(crate) struct ModelDrafts {
    draft: DraftModel,
    free_blocks: VecDeque<BlockId>,
    sequences: BTreeMap<SeqId, Followed>,
}

/// What the draft model has of a sequence.
#[derive(Debug)]
struct Followed {
    /// Tokens whose keys and values stand in `block_table`, guesses among them.
    computed: Vec<TokenId>,
    block_table: Vec<BlockId>,
    /// The latest draft, and the index of its first token.
    guessed: (usize, Vec<TokenId>),
    hit_rate: HitRate,
}

/// A draft in the making.
struct Growing<'a> {
    slot: &'a DraftSlot<'a>,
    num_wanted: usize,
    /// The slot's, then with the guesses; only where the request looks at them.
    seen: SeenTokens,
    token_ids: Vec<TokenId>,
}

impl ModelDrafts {
    pub(crate) fn new(draft: DraftModel) -> Self {
        let num_blocks = u32::try_from(draft.model.info().num_kv_blocks).unwrap_or(u32::MAX);
        Self {
            draft,
            free_blocks: (0..num_blocks).map(BlockId).collect(),
            sequences: BTreeMap::new(),
        }
    }

    /// A draft for each slot, perhaps empty.
    ///
    /// # Errors
    /// The draft model's, which is a broken invariant.
    pub(crate) fn propose(
        &mut self,
        slots: &[&DraftSlot<'_>],
    ) -> Result<Vec<Vec<TokenId>>, ForwardError> {
        let mut drafts = vec![Vec::new(); slots.len()];
        let mut growing: Vec<(usize, Growing<'_>)> = Vec::new();
        let mut rows = Rows::default();
        let mut num_rows_left = CATCH_UP_ROWS;
        for (index, slot) in slots.iter().enumerate() {
            let followed = self.sequences.entry(slot.seq_id).or_default();
            followed.learn(slot.token_ids);
            let num_wanted = self.num_wanted(slot);
            if num_wanted == 0 || !self.reserve(slot, num_wanted) {
                continue;
            }
            let followed = self.sequences.get_mut(&slot.seq_id).expect("entered above");
            let begin = followed.forget_wrong_guesses(slot.token_ids);
            let end = slot.token_ids.len().min(begin + num_rows_left);
            if begin == end {
                continue;
            }
            num_rows_left -= end - begin;
            let is_caught_up = end == slot.token_ids.len();
            rows.push(followed, &slot.token_ids[begin..end], is_caught_up);
            if is_caught_up {
                growing.push((index, Growing::new(slot, num_wanted)));
            }
        }
        let mut logits = self.run(rows)?;
        while !growing.is_empty() {
            let mut rows = Rows::default();
            let mut unfinished = Vec::new();
            for (row_index, (index, mut draft)) in growing.into_iter().enumerate() {
                let Some(token_id) = self.draw(&logits, row_index, &draft) else {
                    drafts[index] = draft.token_ids;
                    continue;
                };
                draft.push(token_id);
                if draft.token_ids.len() == draft.num_wanted {
                    drafts[index] = draft.token_ids;
                    continue;
                }
                let followed = self
                    .sequences
                    .get_mut(&draft.slot.seq_id)
                    .expect("it drafts");
                rows.push(followed, &[token_id], true);
                unfinished.push((index, draft));
            }
            growing = unfinished;
            logits = self.run(rows)?;
        }
        for (slot, draft) in slots.iter().zip(&drafts) {
            if let Some(followed) = self.sequences.get_mut(&slot.seq_id)
                && !draft.is_empty()
            {
                followed.guessed = (slot.token_ids.len(), draft.clone());
            }
        }
        Ok(drafts)
    }

    /// Forgets a sequence that has ended.
    pub(crate) fn forget(&mut self, seq_id: SeqId) {
        if let Some(followed) = self.sequences.remove(&seq_id) {
            self.free_blocks.extend(followed.block_table);
        }
    }

    /// Tokens that are worth drafting for the slot.
    fn num_wanted(&self, slot: &DraftSlot<'_>) -> usize {
        let Some(followed) = self.sequences.get(&slot.seq_id) else {
            return 0;
        };
        // The last guess needs no row of its own here.
        let context_length = self.draft.model.info().context_length;
        let limit = slot
            .limit
            .min((context_length + 1).saturating_sub(slot.token_ids.len()));
        let cost = slot.row_cost + self.draft.relative_cost;
        let num_tokens = worthwhile(cost, limit, |_| followed.hit_rate.get());
        let is_time_to_probe = slot.token_ids.len() >= followed.guessed.0 + PROBE_TOKENS;
        num_tokens.max(usize::from(is_time_to_probe).min(limit))
    }

    /// Takes blocks for the slot's tokens and all guesses but the last; whether there are enough.
    fn reserve(&mut self, slot: &DraftSlot<'_>, num_wanted: usize) -> bool {
        let num_tokens = slot.token_ids.len() + num_wanted - 1;
        let num_blocks = num_tokens.div_ceil(self.draft.model.info().kv_block_tokens);
        let followed = self.sequences.entry(slot.seq_id).or_default();
        let num_missing = num_blocks.saturating_sub(followed.block_table.len());
        if num_missing > self.free_blocks.len() {
            return false;
        }
        followed
            .block_table
            .extend(self.free_blocks.drain(..num_missing));
        true
    }

    fn run(&mut self, rows: Rows) -> Result<Logits, ForwardError> {
        let batch = rows.into_batch();
        if batch.num_tokens() == 0 {
            return Ok(Logits::from_rows(
                self.draft.model.info().vocab_size,
                Vec::new(),
            ));
        }
        self.draft.model.forward(&batch)
    }

    /// The guess that follows, as the request itself would draw it; `None` where the row is no number.
    fn draw(&self, logits: &Logits, row_index: usize, draft: &Growing<'_>) -> Option<TokenId> {
        if !logits.is_finite(row_index) {
            return None;
        }
        let slot = draft.slot;
        let position = slot.token_ids.len() + draft.token_ids.len();
        let key = DrawKey {
            seed: slot.sampling.seed,
            choice_index: slot.seq_id.choice_index,
            position: u32::try_from(position).expect("positions are far below 2^32"),
        };
        let compute = self.draft.model.compute();
        let (token_id, _) = draw_token(
            compute,
            logits,
            row_index,
            None,
            slot.sampling,
            &draft.seen,
            key,
        );
        Some(token_id)
    }
}

impl Default for Followed {
    fn default() -> Self {
        Self {
            computed: Vec::new(),
            block_table: Vec::new(),
            guessed: (0, Vec::new()),
            hit_rate: HitRate::new(PRIOR_HIT_RATE),
        }
    }
}

impl Followed {
    /// Compares the latest draft with what came: each token up to the first that differs.
    fn learn(&mut self, token_ids: &[TokenId]) {
        let (begin, guessed) = &mut self.guessed;
        for (guess, token_id) in std::mem::take(guessed).iter().zip(&token_ids[*begin..]) {
            self.hit_rate.observe(guess == token_id);
            if guess != token_id {
                break;
            }
        }
    }

    /// Keeps what is computed as far as the sequence has it, its last token aside, whose logits are needed; how
    /// many tokens that are.
    fn forget_wrong_guesses(&mut self, token_ids: &[TokenId]) -> usize {
        let pairs = self.computed.iter().zip(&token_ids[..token_ids.len() - 1]);
        let num_right = pairs
            .take_while(|(computed, token)| computed == token)
            .count();
        self.computed.truncate(num_right);
        num_right
    }
}

impl<'a> Growing<'a> {
    fn new(slot: &'a DraftSlot<'a>, num_wanted: usize) -> Self {
        Self {
            slot,
            num_wanted,
            seen: slot.seen.clone(),
            token_ids: Vec::new(),
        }
    }

    fn push(&mut self, token_id: TokenId) {
        self.token_ids.push(token_id);
        if sampler::needs_seen_tokens(self.slot.sampling) {
            self.seen.push(token_id);
        }
    }
}

/// The rows of one pass.
#[derive(Default)]
struct Rows(ForwardBatch);

impl Rows {
    /// Adds the tokens behind those that are computed, and books them.
    fn push(&mut self, followed: &mut Followed, token_ids: &[TokenId], wants_logits: bool) {
        let batch = &mut self.0;
        if batch.cu_seqlens.is_empty() {
            batch.cu_seqlens.push(0);
        }
        let begin = followed.computed.len();
        followed.computed.extend_from_slice(token_ids);
        batch.token_ids.extend_from_slice(token_ids);
        let positions = begin..followed.computed.len();
        batch.positions.extend(positions.map(index_u32));
        let num_rows = index_u32(batch.token_ids.len());
        batch.cu_seqlens.push(num_rows);
        batch.block_tables.push(followed.block_table.clone());
        if wants_logits {
            batch.logit_rows.push(num_rows - 1);
        }
    }

    fn into_batch(self) -> ForwardBatch {
        self.0
    }
}

fn index_u32(index: usize) -> u32 {
    u32::try_from(index).expect("positions and rows are far below 2^32")
}
