//! Every golden case on every instruction set against the committed hashes.
//!
//! To add a case, register it and run the recorder below (scalar reference only). A changed hash of an old
//! case is a change of the contract.

use assay_kernels::golden::{CASES, recorded};
use assay_kernels::{Compute, Isa, ThreadPool, self_test};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

fn compute(isa: Isa, num_threads: usize) -> Compute {
    Compute::new(
        isa,
        ThreadPool::new(NonZeroUsize::new(num_threads).expect("at least one")),
    )
}

#[test]
fn fault_6_fault_114_every_isa_reproduces_the_recorded_hashes() {
    for isa in Isa::available() {
        for num_threads in [1, 3] {
            let cx = compute(isa, num_threads);
            for case in CASES.iter().copied().flatten() {
                let expected =
                    recorded(case.name).unwrap_or_else(|| panic!("{} is not recorded", case.name));
                let found = (case.run)(&cx).expect("a CPU has every op").to_hex();
                assert_eq!(
                    found.as_str(),
                    expected,
                    "{} on {} with {num_threads} threads",
                    case.name,
                    isa.name()
                );
            }
        }
    }
}

/// Time that this thread computed, where the system tells it: others' work on a busy machine is not the self-test's.
struct Clock {
    start: Instant,
    on_cpu: Option<Duration>,
}

impl Clock {
    fn start() -> Clock {
        Clock {
            start: Instant::now(),
            on_cpu: Clock::on_cpu(),
        }
    }

    fn on_cpu() -> Option<Duration> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        let nanos = text.split(' ').next()?.parse().ok()?;
        Some(Duration::from_nanos(nanos))
    }

    fn elapsed(&self) -> Duration {
        match (self.on_cpu, Clock::on_cpu()) {
            (Some(start), Some(end)) if end > start => end - start,
            _ => self.start.elapsed(),
        }
    }
}

#[test]
fn the_self_test_passes_within_its_time() {
    // The scalar path is for reading, not for serving; only the path a server would take has a time limit.
    let cx = compute(Isa::detect(), 1);
    let best = (0..5)
        .map(|_| {
            let clock = Clock::start();
            self_test(&cx).unwrap();
            clock.elapsed()
        })
        .min()
        .unwrap();
    assert!(
        best < Duration::from_millis(50),
        "the self-test took {best:?}"
    );
}

#[test]
fn names_are_unique_and_nothing_stale_is_recorded() {
    let names: BTreeSet<&str> = CASES
        .iter()
        .copied()
        .flatten()
        .map(|case| case.name)
        .collect();
    assert_eq!(
        names.len(),
        CASES.iter().map(|cases| cases.len()).sum::<usize>(),
        "a name is taken twice"
    );
    let lines: Vec<&str> = include_str!("../golden/n1.txt").lines().collect();
    let stale: Vec<_> = lines
        .iter()
        .filter(|line| !names.contains(line.split(' ').next().unwrap()))
        .collect();
    assert!(stale.is_empty(), "recorded but gone: {stale:?}");
}

#[test]
#[ignore = "writes golden/n1.txt; run it by hand after adding a case"]
fn record_golden_hashes() {
    let cx = compute(Isa::SCALAR, 1);
    let mut lines: Vec<String> = CASES
        .iter()
        .copied()
        .flatten()
        .map(|case| {
            format!(
                "{} {}",
                case.name,
                (case.run)(&cx).expect("a CPU has every op").to_hex()
            )
        })
        .collect();
    lines.sort();
    let text = lines.iter().fold(String::new(), |mut text, line| {
        writeln!(text, "{line}").expect("a string takes every write");
        text
    });
    std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/golden/n1.txt"), text).unwrap();
}
