//! The watch notices: steps as the engine makes them pass, forged ones do not.

use assay_engine::PrefixCache;
use assay_engine::block_manager::BlockManager;
use assay_engine::scheduler::{Scheduler, SchedulerConfig, SchedulerOutput};
use assay_engine::sequence::{SeqId, Sequence};
use assay_models::{BlockId, KvBlockCopy, TokenId};

use super::Watch;

const BLOCK_TOKENS: usize = 4;

fn seq_id(arrival: u64) -> SeqId {
    SeqId {
        arrival,
        choice_index: 0,
    }
}

fn blocks() -> BlockManager {
    BlockManager::new(16, BLOCK_TOKENS, PrefixCache::On)
}

/// A scheduler over `blocks` with two prompts that begin alike.
fn scheduler(blocks: BlockManager) -> Scheduler {
    let config = SchedulerConfig {
        max_num_seqs: 4,
        max_num_batched_tokens: 64,
        prefill_chunk: None,
        logits_cost: 0,
        rows_at_once: 1,
    };
    let mut scheduler = Scheduler::new(config, blocks);
    for (arrival, last) in [(0, 7), (1, 8)] {
        let prompt = vec![1, 2, 3, 4, 5, last];
        scheduler.add(Sequence::new(seq_id(arrival), prompt, None));
    }
    scheduler
}

/// Tokens that a step drew.
type Drawn = Vec<(SeqId, TokenId)>;

/// What a forger may change of one step, seen by the watch or not.
#[derive(Default)]
struct Forgery<'a> {
    /// Before the pass.
    scheduled: Option<&'a dyn Fn(&mut SchedulerOutput)>,
    /// What the watch is told was drawn.
    drawn: Option<&'a dyn Fn(&mut Drawn)>,
    /// The watch does not see the step at all.
    is_hidden: bool,
}

/// Runs six steps, each sequence drawing one token after the other, the third of them forged.
fn faults_of(blocks: BlockManager, forgery: &Forgery<'_>) -> Vec<String> {
    let mut scheduler = scheduler(blocks);
    let watch = Watch::default();
    let mut observer = watch.observer();
    for step in 0..6 {
        let forgery = (step == 2).then_some(forgery);
        let output = scheduler.schedule();
        let is_seen = forgery.is_none_or(|forgery| !forgery.is_hidden);
        let mut shown = output.clone();
        if let Some(forge) = forgery.and_then(|forgery| forgery.scheduled) {
            forge(&mut shown);
        }
        if is_seen {
            observer.scheduled(&scheduler, &shown);
        }
        let ends_prompt = output.scheduled.iter().filter(|entry| entry.wants_logits);
        let drawn: Drawn = ends_prompt.map(|entry| (entry.seq_id, 20 + step)).collect();
        scheduler.apply(&output, &drawn);
        let mut told = drawn;
        if let Some(forge) = forgery.and_then(|forgery| forgery.drawn) {
            forge(&mut told);
        }
        if is_seen {
            observer.booked(&scheduler, &shown, &told);
        }
    }
    watch.faults()
}

/// The forged steps have a fault that says so.
fn check_noticed(blocks: BlockManager, forgery: &Forgery<'_>, says: &str) {
    let faults = faults_of(blocks, forgery);
    assert!(
        faults.iter().any(|fault| fault.contains(says)),
        "{says}: {faults:?}"
    );
}

#[test]
fn honest_steps_have_no_fault() {
    assert_eq!(
        faults_of(blocks(), &Forgery::default()),
        Vec::<String>::new()
    );
}

#[test]
fn a_lost_entry_is_noticed() {
    let drawn = Forgery {
        drawn: Some(&|drawn| drawn.truncate(1)),
        ..Forgery::default()
    };
    check_noticed(blocks(), &drawn, "computed and known tokens");
    let scheduled = Forgery {
        scheduled: Some(&|output| output.scheduled.truncate(1)),
        ..Forgery::default()
    };
    check_noticed(blocks(), &scheduled, "is not where its table says");
}

#[test]
fn a_token_of_another_sequence_is_noticed() {
    let swapped = Forgery {
        drawn: Some(&|drawn| {
            if let [first, second] = &mut drawn[..] {
                second.1 += 1;
                std::mem::swap(&mut first.1, &mut second.1);
            }
        }),
        ..Forgery::default()
    };
    check_noticed(blocks(), &swapped, "computed and known tokens");
}

#[test]
fn a_leaked_block_is_noticed() {
    let mut leaking = blocks();
    let mut forgotten = Sequence::new(seq_id(9), vec![1; BLOCK_TOKENS], None);
    leaking.grow(&mut forgotten).expect("the pool is empty");
    check_noticed(leaking, &Forgery::default(), "tables hold []");
}

#[test]
fn a_row_out_of_order_is_noticed() {
    let hidden = Forgery {
        is_hidden: true,
        ..Forgery::default()
    };
    check_noticed(blocks(), &hidden, "never written");
    let too_far = Forgery {
        scheduled: Some(&|output| output.scheduled[0].num_scheduled_tokens = 0),
        ..Forgery::default()
    };
    check_noticed(blocks(), &too_far, "computed and known tokens");
}

#[test]
fn a_block_overwritten_by_a_copy_is_noticed() {
    let copy = KvBlockCopy {
        from: BlockId(1),
        to: BlockId(0),
    };
    let copied = Forgery {
        scheduled: Some(&|output| output.block_copies.push(copy)),
        ..Forgery::default()
    };
    check_noticed(blocks(), &copied, "another history");
}
