//! A scripted model: a real logits source behind the real engine, whose rows a test decides.
//!
//! It stores the token ids of every KV slot, as a KV cache would store keys and values, and reads a
//! sequence's history back through its block table. So a wrong block table, a wrong position or a
//! block that two sequences share changes the history, and with it every logit. Positions that were
//! not written under the present owner are poisoned, never zero.

use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use assay_kernels::{Compute, Isa, ThreadPool};
use assay_models::{ForwardBatch, ForwardError, ForwardModel, Logits, ModelInfo, TokenId};

/// Decides a row from the sequence's tokens so far; the row has `vocab_size` logits.
pub type Script = Box<dyn FnMut(&[TokenId]) -> Vec<f32> + Send>;

/// A model whose logits are a function of the token history.
pub struct ScriptedModel {
    info: ModelInfo,
    script: Script,
    /// `[num_kv_blocks * kv_block_tokens]` what each slot holds.
    slots: Vec<Option<Slot>>,
    compute: Compute,
    gate: StepGate,
    batch_sizes: Arc<Mutex<Vec<usize>>>,
}

/// What stands in for one position's keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    position: u32,
    token_id: TokenId,
}

impl ScriptedModel {
    /// A model of `vocab_size` tokens with room for plenty; narrow it with the `with_` methods.
    pub fn new(
        vocab_size: usize,
        script: impl FnMut(&[TokenId]) -> Vec<f32> + Send + 'static,
    ) -> Self {
        let info = ModelInfo {
            architecture: "scripted".to_owned(),
            name: "scripted".to_owned(),
            vocab_size,
            context_length: 4096,
            kv_block_tokens: 16,
            num_kv_blocks: 2048,
        };
        Self {
            slots: vec![None; info.kv_block_tokens * info.num_kv_blocks],
            info,
            script: Box::new(script),
            compute: Compute::new(Isa::SCALAR, ThreadPool::new(NonZeroUsize::MIN)),
            gate: StepGate::default(),
            batch_sizes: Arc::default(),
        }
    }

    /// Sets the longest sequence.
    pub fn with_context_length(mut self, context_length: usize) -> Self {
        self.info.context_length = context_length;
        self
    }

    /// Sets the KV pool.
    pub fn with_kv_pool(mut self, num_kv_blocks: usize, kv_block_tokens: usize) -> Self {
        self.info.num_kv_blocks = num_kv_blocks;
        self.info.kv_block_tokens = kv_block_tokens;
        self.slots = vec![None; num_kv_blocks * kv_block_tokens];
        self
    }

    /// Lets `gate` hold each forward pass.
    pub fn with_gate(mut self, gate: &StepGate) -> Self {
        self.gate = gate.clone();
        self
    }

    /// Number of sequences of each forward pass so far, shared with the caller.
    pub fn batch_sizes(&self) -> Arc<Mutex<Vec<usize>>> {
        Arc::clone(&self.batch_sizes)
    }

    fn check(&self, holds: bool, what: impl FnOnce() -> String) -> Result<(), ForwardError> {
        if holds {
            Ok(())
        } else {
            Err(ForwardError::MalformedBatch(what()))
        }
    }

    /// Every rule of [`ForwardBatch`], so that a test sees a broken one at once.
    fn check_batch(&self, batch: &ForwardBatch) -> Result<(), ForwardError> {
        let num_tokens = batch.num_tokens();
        let vocab_size = self.info.vocab_size;
        self.check(batch.positions.len() == num_tokens, || {
            format!("{} positions, {num_tokens} tokens", batch.positions.len())
        })?;
        self.check(
            batch.cu_seqlens.len() == batch.num_sequences() + 1
                && batch.cu_seqlens.first() == Some(&0)
                && batch.cu_seqlens.last().map(|&end| end as usize) == Some(num_tokens)
                && batch.cu_seqlens.is_sorted_by(|a, b| a < b),
            || format!("cu_seqlens {:?} of {num_tokens} tokens", batch.cu_seqlens),
        )?;
        self.check(
            batch.token_ids.iter().all(|&id| (id as usize) < vocab_size),
            || "a token id is past the vocabulary".to_owned(),
        )?;
        self.check(
            batch.logit_rows.is_sorted_by(|a, b| a < b)
                && batch
                    .logit_rows
                    .iter()
                    .all(|&row| (row as usize) < num_tokens),
            || format!("logit rows {:?} of {num_tokens} tokens", batch.logit_rows),
        )
    }

    fn slot_index(
        &self,
        batch: &ForwardBatch,
        sequence_index: usize,
        position: u32,
    ) -> Result<usize, ForwardError> {
        let block_tokens = self.info.kv_block_tokens;
        batch.block_tables[sequence_index]
            .get(position as usize / block_tokens)
            .map(|block| block.0 as usize * block_tokens + position as usize % block_tokens)
            .filter(|&index| index < self.slots.len())
            .ok_or_else(|| {
                ForwardError::MalformedBatch(format!(
                    "sequence {sequence_index}: no block for position {position}"
                ))
            })
    }

    /// The tokens of positions `0..=last`, read back through the block table.
    fn history(
        &self,
        batch: &ForwardBatch,
        sequence_index: usize,
        last: u32,
    ) -> Result<Vec<TokenId>, ForwardError> {
        (0..=last)
            .map(|position| {
                let index = self.slot_index(batch, sequence_index, position)?;
                match self.slots[index] {
                    Some(slot) if slot.position == position => Ok(slot.token_id),
                    found => Err(ForwardError::MalformedBatch(format!(
                        "sequence {sequence_index}: slot {index} holds {found:?}, not position {position}"
                    ))),
                }
            })
            .collect()
    }
}

impl ForwardModel for ScriptedModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn forward(&mut self, batch: &ForwardBatch) -> Result<Logits, ForwardError> {
        self.gate.pass();
        self.check_batch(batch)?;
        locked(&self.batch_sizes).push(batch.num_sequences());

        // All rows write before any row reads: two sequences in one block spoil each other.
        let sequence_rows: Vec<(usize, usize)> = batch
            .cu_seqlens
            .windows(2)
            .enumerate()
            .flat_map(|(sequence_index, ends)| {
                (ends[0] as usize..ends[1] as usize).map(move |row| (sequence_index, row))
            })
            .collect();
        for &(sequence_index, row) in &sequence_rows {
            let position = batch.positions[row];
            let index = self.slot_index(batch, sequence_index, position)?;
            self.slots[index] = Some(Slot {
                position,
                token_id: batch.token_ids[row],
            });
        }
        let mut data = Vec::with_capacity(batch.logit_rows.len() * self.info.vocab_size);
        for &logit_row in &batch.logit_rows {
            let (sequence_index, row) = sequence_rows[logit_row as usize];
            let history = self.history(batch, sequence_index, batch.positions[row])?;
            let logits = (self.script)(&history);
            assert_eq!(
                logits.len(),
                self.info.vocab_size,
                "the script's row has the wrong width"
            );
            data.extend(logits);
        }
        Ok(Logits::from_rows(self.info.vocab_size, data))
    }

    fn compute(&self) -> &Compute {
        &self.compute
    }
}

/// Holds forward passes until a test lets them go. Clones are the same gate; it starts open.
#[derive(Clone, Default)]
pub struct StepGate {
    shared: Arc<GateShared>,
}

#[derive(Default)]
struct GateShared {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    is_closed: bool,
    num_tickets: usize,
    num_arrived: usize,
    num_passed: usize,
    delay: Duration,
}

impl StepGate {
    /// Holds every later pass at its begin.
    pub fn close(&self) {
        locked(&self.shared.state).is_closed = true;
    }

    /// Lets all passes go.
    pub fn open(&self) {
        locked(&self.shared.state).is_closed = false;
        self.shared.changed.notify_all();
    }

    /// Lets `num_steps` passes through the closed gate.
    pub fn let_through(&self, num_steps: usize) {
        locked(&self.shared.state).num_tickets += num_steps;
        self.shared.changed.notify_all();
    }

    /// Makes every pass take at least `delay`.
    pub fn slow_down(&self, delay: Duration) {
        locked(&self.shared.state).delay = delay;
    }

    /// Forward passes that reached the gate so far.
    pub fn num_arrived(&self) -> usize {
        locked(&self.shared.state).num_arrived
    }

    /// Waits until a pass stands at the closed gate.
    ///
    /// # Panics
    /// After ten seconds: the test's engine does not step.
    pub fn wait_held(&self) {
        let state = locked(&self.shared.state);
        let (_state, timeout) = self
            .shared
            .changed
            .wait_timeout_while(state, Duration::from_secs(10), |state| {
                !(state.is_closed && state.num_arrived > state.num_passed)
            })
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!timeout.timed_out(), "no forward pass came to the gate");
    }

    fn pass(&self) {
        let mut state = locked(&self.shared.state);
        state.num_arrived += 1;
        self.shared.changed.notify_all();
        while state.is_closed && state.num_tickets == 0 {
            state = self
                .shared
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.num_tickets = state.num_tickets.saturating_sub(1);
        state.num_passed += 1;
        let delay = state.delay;
        drop(state);
        if !delay.is_zero() {
            std::thread::sleep(delay);
        }
    }
}

/// A row of pseudo-random logits in −8..8 that depends on every token of the history.
pub fn background_row(vocab_size: usize, history: &[TokenId]) -> Vec<f32> {
    // FNV-1a over ids, then splitmix64 per column.
    let seed = history.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &id| {
        (hash ^ (u64::from(id) + 1)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (0..vocab_size as u64)
        .map(|column| {
            let mut bits = seed.wrapping_add((column + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            bits ^= bits >> 31;
            (bits >> 40) as f32 / (1_u32 << 20) as f32 - 8.0
        })
        .collect()
}

/// A background row in which `token_id` is the most likely by far, yet not certain.
pub fn forcing_row(vocab_size: usize, history: &[TokenId], token_id: TokenId) -> Vec<f32> {
    let mut row = background_row(vocab_size, history);
    row[token_id as usize] = 12.0;
    row
}

/// A row that no softmax exists for.
pub fn nan_row(vocab_size: usize) -> Vec<f32> {
    let mut row = vec![0.0; vocab_size];
    row[vocab_size / 2] = f32::NAN;
    row
}

/// A script that answers any prompt of `num_prompt_tokens` with `reply`, one token after the other,
/// then with the background.
pub fn replying(
    vocab_size: usize,
    num_prompt_tokens: usize,
    reply: Vec<TokenId>,
) -> impl FnMut(&[TokenId]) -> Vec<f32> + Send + 'static {
    move |history| {
        let reply_index = history.len().checked_sub(num_prompt_tokens);
        match reply_index.and_then(|index| reply.get(index)) {
            Some(&token_id) => forcing_row(vocab_size, history, token_id),
            None => background_row(vocab_size, history),
        }
    }
}

/// A small vocabulary of bytes for scripted models.
///
/// Ids 0..=255 are the single bytes (so halves of characters are there), then come pieces of several
/// bytes, then one end token that spells nothing.
#[derive(Clone, Debug)]
pub struct ScriptedVocab {
    token_bytes: Vec<Vec<u8>>,
}

impl ScriptedVocab {
    /// The vocabulary with `pieces` after the single bytes.
    pub fn new<T: AsRef<[u8]>>(pieces: impl IntoIterator<Item = T>) -> Self {
        let mut token_bytes: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
        token_bytes.extend(pieces.into_iter().map(|piece| piece.as_ref().to_vec()));
        token_bytes.push(Vec::new());
        Self { token_bytes }
    }

    /// Bytes of each token, by id.
    pub fn token_bytes(&self) -> &[Vec<u8>] {
        &self.token_bytes
    }

    /// Number of tokens, the end token included.
    pub fn vocab_size(&self) -> usize {
        self.token_bytes.len()
    }

    /// The end token.
    pub fn end_token_id(&self) -> TokenId {
        TokenId::try_from(self.token_bytes.len() - 1).expect("a vocabulary is counted by u32")
    }

    /// Tokens that spell `text`, the longest piece first at each place.
    pub fn encode(&self, text: &[u8]) -> Vec<TokenId> {
        let mut token_ids = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (token_id, piece) = (0..)
                .zip(&self.token_bytes)
                .filter(|(_, piece)| !piece.is_empty() && rest.starts_with(piece))
                .max_by_key(|(_, piece)| piece.len())
                .expect("every single byte is a token");
            token_ids.push(token_id);
            rest = &rest[piece.len()..];
        }
        token_ids
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
