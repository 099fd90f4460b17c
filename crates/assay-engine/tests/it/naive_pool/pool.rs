//! The real pool beside the naive one.

use super::*;

/// The block manager with the sequences that it serves.
struct Pool {
    blocks: BlockManager,
    num_begun: u64,
    sequences: BTreeMap<u64, Sequence>,
}

impl Pool {
    fn nth(&mut self, nth: usize) -> Option<&mut Sequence> {
        let num_sequences = self.sequences.len().max(1);
        self.sequences.values_mut().nth(nth % num_sequences)
    }

    fn begin(&mut self, token_ids: Vec<TokenId>, salt: Salt) {
        let arrival = self.num_begun;
        self.num_begun += 1;
        let seq_id = SeqId {
            arrival,
            choice_index: 0,
        };
        let num_tokens = token_ids.len();
        let mut sequence = Sequence::new(seq_id, token_ids, salt.map(Into::into));
        let hit = self.blocks.find(&sequence);
        if self.blocks.room_beside(num_tokens, hit.as_ref()).is_none() {
            return;
        }
        match hit {
            Some(hit) => {
                self.blocks.take_hit(&mut sequence, hit).expect("counted");
            }
            None => self.blocks.grow(&mut sequence).expect("counted"),
        }
        self.sequences.insert(arrival, sequence);
    }

    fn run(&mut self, operation: Operation) -> Option<()> {
        match operation {
            Operation::Begin { token_ids, salt } => self.begin(token_ids, salt),
            Operation::Compute { nth, num_tokens } => {
                let sequence = self.nth(nth)?;
                let begin = sequence.num_computed_tokens;
                sequence.num_computed_tokens += sequence.num_uncomputed_tokens().min(num_tokens);
                let mut sequence = sequence.clone();
                self.blocks.cache_blocks(&mut sequence, begin);
                *self.nth(nth)? = sequence;
            }
            Operation::TakeHit { nth } => {
                let mut sequence = self.nth(nth).filter(|one| one.is_cached)?.clone();
                if let Some(hit) = self.blocks.find(&sequence) {
                    self.blocks
                        .take_hit(&mut sequence, hit)
                        .expect("it has blocks");
                }
                *self.nth(nth)? = sequence;
            }
            Operation::Append { nth, token_id } => {
                let mut sequence = self.nth(nth)?.clone();
                sequence.token_ids.push(token_id);
                self.blocks.grow(&mut sequence).ok()?;
                *self.nth(nth)? = sequence;
            }
            Operation::CacheTail { nth } => {
                let mut sequence = self.nth(nth)?.clone();
                self.blocks.cache_tail(&mut sequence);
                *self.nth(nth)? = sequence;
            }
            Operation::Fork {
                nth,
                token_ids,
                is_cached,
            } => {
                let trunk = self.nth(nth)?.clone();
                if trunk.num_uncomputed_tokens() > 0 || !trunk.is_cached {
                    return None;
                }
                let seq_id = SeqId {
                    arrival: self.num_begun,
                    choice_index: 0,
                };
                self.num_begun += 1;
                let token_ids = [trunk.token_ids.as_slice(), &token_ids].concat();
                let mut branch = Sequence::new(seq_id, token_ids, trunk.cache_salt.clone());
                branch.is_cached = is_cached;
                self.blocks.fork(&trunk, &mut branch).ok()?;
                self.sequences.insert(seq_id.arrival, branch);
            }
            Operation::End { nth } => {
                let arrival = self.nth(nth)?.seq_id.arrival;
                let mut sequence = self.sequences.remove(&arrival)?;
                self.blocks.free(&mut sequence);
            }
        }
        Some(())
    }
}

impl StateMachineTest for Pool {
    type SystemUnderTest = Self;
    type Reference = NaivePool;

    fn init_test(naive: &NaivePool) -> Self {
        Self {
            blocks: BlockManager::new(naive.num_blocks, BLOCK_TOKENS, PrefixCache::On),
            num_begun: 0,
            sequences: BTreeMap::new(),
        }
    }

    fn apply(mut pool: Self, _: &NaivePool, operation: Operation) -> Self {
        // A sequence that is not there, or a pool that is full, is for both the same.
        let _ = pool.run(operation);
        pool
    }

    fn check_invariants(pool: &Self, naive: &NaivePool) {
        let computed = pool
            .sequences
            .iter()
            .map(|(id, s)| (*id, s.num_computed_tokens));
        let expected = naive.sequences.iter().map(|(id, s)| (*id, s.num_computed));
        assert_eq!(
            computed.collect::<Vec<_>>(),
            expected.collect::<Vec<_>>(),
            "computed tokens of each sequence"
        );
        let blocks = &pool.blocks;
        assert_eq!(blocks.num_used(), naive.num_used(), "used");
        assert_eq!(blocks.num_cached(), naive.num_cached(), "cached");
        assert_eq!(blocks.num_free(), naive.num_free(), "free");
        assert_eq!(blocks.num_evictions(), naive.num_evictions, "evictions");
        let mut num_references = vec![0; naive.num_blocks];
        for block in pool.sequences.values().flat_map(|s| &s.block_table) {
            num_references[block.0 as usize] += 1;
        }
        assert_eq!(blocks.num_references(), num_references, "references");
    }
}

prop_state_machine! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_operations_leave_what_a_naive_pool_has(sequential 1..80 => Pool);
}
