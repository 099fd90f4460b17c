//! Scheduler and block manager against naive references, over random operations.

use std::num::NonZeroUsize;

use assay_engine::block_manager::PrefixCache;
use assay_engine::scheduler::SchedulerConfig;
use assay_models::TokenId;
use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};

use crate::checked::{BLOCK_TOKENS, Checked, MAX_PROMPT, MAX_REPLY};

const LONGEST_IN_BLOCKS: usize = (MAX_PROMPT + MAX_REPLY).div_ceil(BLOCK_TOKENS);

/// What happens to a scheduler.
#[derive(Clone, Debug)]
enum Operation {
    Add {
        prompt: Vec<TokenId>,
        salt: Option<&'static str>,
        num_reply: usize,
        num_choices: u32,
    },
    Step,
    Cancel {
        nth: usize,
    },
}

/// Prompts of a few families, so that many begin alike and part anywhere.
fn any_prompt() -> impl Strategy<Value = Vec<TokenId>> {
    let tail = prop::collection::vec(0_u32..3, 0..4);
    (0_u32..3, 1..MAX_PROMPT - 3, tail).prop_map(|(family, num_common, tail)| {
        let common = (0..num_common as u32).map(|i| 10 + i * family);
        common.chain(tail).collect()
    })
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let add = (
        any_prompt(),
        prop::sample::select(vec![None, None, Some("a"), Some("b")]),
        1..=MAX_REPLY,
        prop::sample::select(vec![1_u32, 1, 1, 3]),
    );
    prop_oneof![
        2 => add.prop_map(|(prompt, salt, num_reply, num_choices)| Operation::Add {
            prompt,
            salt,
            num_reply,
            num_choices,
        }),
        5 => Just(Operation::Step),
        1 => any::<usize>().prop_map(|nth| Operation::Cancel { nth }),
    ]
}

/// The limits of a run; what each step must look like is known to [`Checked`].
#[derive(Clone, Debug)]
struct Limits {
    config: SchedulerConfig,
    num_blocks: usize,
    prefix_cache: PrefixCache,
}

impl ReferenceStateMachine for Limits {
    type State = Self;
    type Transition = Operation;

    fn init_state() -> BoxedStrategy<Self> {
        (
            1_usize..10,
            prop::sample::select(vec![0_usize, 1, 7, 60, 500]),
            (
                prop::sample::select(vec![None, None, NonZeroUsize::new(1), NonZeroUsize::new(5)]),
                prop::sample::select(vec![0, 550, 3_430]),
                prop::sample::select(vec![1, 8]),
            ),
            LONGEST_IN_BLOCKS..4 * LONGEST_IN_BLOCKS,
            prop::sample::select(vec![PrefixCache::On, PrefixCache::On, PrefixCache::Off]),
        )
            .prop_map(
                |(
                    max_num_seqs,
                    spare_tokens,
                    (prefill_chunk, logits_cost, rows_at_once),
                    num_blocks,
                    prefix_cache,
                )| Self {
                    config: SchedulerConfig {
                        max_num_seqs,
                        max_num_batched_tokens: max_num_seqs + spare_tokens,
                        prefill_chunk,
                        logits_cost,
                        rows_at_once,
                    },
                    num_blocks,
                    prefix_cache,
                },
            )
            .boxed()
    }

    fn transitions(_: &Self) -> BoxedStrategy<Operation> {
        any_operation().boxed()
    }

    fn apply(state: Self, _: &Operation) -> Self {
        state
    }
}

/// A scheduler under random operations.
struct Run;

impl StateMachineTest for Run {
    type SystemUnderTest = Checked;
    type Reference = Limits;

    fn init_test(limits: &Limits) -> Checked {
        Checked::new(limits.config, limits.num_blocks, limits.prefix_cache)
    }

    fn apply(mut checked: Checked, _: &Limits, operation: Operation) -> Checked {
        match operation {
            Operation::Add {
                prompt,
                salt,
                num_reply,
                num_choices,
            } => {
                checked.add_choices(prompt, salt, num_reply, num_choices);
            }
            Operation::Step => {
                checked.step();
            }
            Operation::Cancel { nth } => checked.cancel(nth),
        }
        checked
    }

    fn check_invariants(checked: &Checked, limits: &Limits) {
        checked.check_blocks();
        if limits.prefix_cache == PrefixCache::Off {
            assert_eq!(checked.scheduler.blocks().num_cached(), 0);
            assert_eq!(checked.happened.num_copies, 0);
        }
    }

    fn teardown(mut checked: Checked, _: Limits) {
        checked.run_to_the_end();
    }
}

prop_state_machine! {
    #[test]
    fn any_operations_keep_every_rule(sequential 1..120 => Run);
}

/// Eight growing sequences in a pool for two: preemption happens, and all end.
#[test]
fn a_pool_too_small_for_all_preempts_and_ends() {
    for prefix_cache in [PrefixCache::On, PrefixCache::Off] {
        let config = SchedulerConfig {
            max_num_seqs: 8,
            max_num_batched_tokens: 64,
            prefill_chunk: None,
            logits_cost: 0,
            rows_at_once: 1,
        };
        let mut checked = Checked::new(config, 2 * LONGEST_IN_BLOCKS, prefix_cache);
        for _ in 0..8 {
            checked.add(8, MAX_REPLY);
        }
        checked.run_to_the_end();
        assert!(checked.happened.num_preemptions > 0);
        // A preempted sequence finds again what nobody needed the blocks of.
        let num_hits = checked.happened.num_early_hits;
        assert_eq!(num_hits > 0, prefix_cache == PrefixCache::On, "{num_hits}");
    }
}

/// The random operations above reach everything that the cache does.
#[test]
fn hits_copies_and_evictions_really_happen() {
    let config = SchedulerConfig {
        max_num_seqs: 6,
        max_num_batched_tokens: 24,
        prefill_chunk: None,
        logits_cost: 0,
        rows_at_once: 1,
    };
    let mut checked = Checked::new(config, 2 * LONGEST_IN_BLOCKS, PrefixCache::On);
    for round in 0..12_u32 {
        let prompt = |tail: u32| (0..30 + round % 5).chain([900 + tail, 950]).collect();
        checked.add_choices(prompt(round), None, 8, 3);
        checked.add_choices(prompt(round + 1), None, 3, 1);
        checked.add(17, 2);
        for _ in 0..5 {
            checked.step();
        }
    }
    checked.run_to_the_end();
    let happened = checked.happened;
    assert!(happened.num_early_hits > 0, "{happened:?}");
    assert!(happened.num_late_hits > 0, "{happened:?}");
    assert!(happened.num_copies > 0, "{happened:?}");
    assert!(happened.num_evictions > 0, "{happened:?}");
}
