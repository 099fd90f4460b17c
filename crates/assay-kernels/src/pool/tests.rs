//! The pool under test: every index once, panics, nesting, many tiny runs.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

const SIZES: [usize; 3] = [1, 2, 8];

fn pool(num_threads: usize) -> ThreadPool {
    ThreadPool::new(NonZeroUsize::new(num_threads).expect("sizes are positive"))
}

fn check_each_index_once(pool: &ThreadPool, num_tasks: usize) {
    let counts: Vec<AtomicUsize> = (0..num_tasks).map(|_| AtomicUsize::new(0)).collect();
    pool.run(num_tasks, &|index| {
        counts[index].fetch_add(1, Ordering::Relaxed);
    });
    for (index, count) in counts.iter().enumerate() {
        let count = count.load(Ordering::Relaxed);
        assert_eq!(
            count,
            1,
            "task {index} of {num_tasks}, {} threads",
            pool.num_threads()
        );
    }
}

#[test]
fn each_index_runs_once() {
    for num_threads in SIZES {
        let pool = pool(num_threads);
        assert_eq!(pool.num_threads(), num_threads);
        for num_tasks in [0, 1, 2, 3, 7, 64, 1000] {
            check_each_index_once(&pool, num_tasks);
        }
    }
}

#[test]
fn many_tiny_runs_lose_nothing() {
    for num_threads in SIZES {
        let pool = pool(num_threads);
        let sum = AtomicUsize::new(0);
        for _ in 0..3000 {
            pool.run(3, &|index| {
                sum.fetch_add(index + 1, Ordering::Relaxed);
            });
        }
        assert_eq!(sum.load(Ordering::Relaxed), 18_000, "{num_threads} threads");
    }
}

#[test]
fn runs_after_parking_wake_the_workers() {
    let pool = pool(2);
    for _ in 0..5 {
        std::thread::sleep(std::time::Duration::from_millis(2));
        // Two tasks that wait for each other finish only if a second thread joins.
        let arrived = AtomicUsize::new(0);
        pool.run(2, &|_| {
            arrived.fetch_add(1, Ordering::SeqCst);
            while arrived.load(Ordering::SeqCst) < 2 {
                std::thread::yield_now();
            }
        });
    }
}

#[test]
fn a_panic_reaches_the_caller_after_all_tasks_ran() {
    for num_threads in SIZES {
        let pool = pool(num_threads);
        let ran = AtomicUsize::new(0);
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool.run(50, &|index| {
                ran.fetch_add(1, Ordering::Relaxed);
                assert!(index != 13, "task thirteen");
            });
        }));
        let panic = result.expect_err("the panic must reach the caller");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"task thirteen"));
        assert_eq!(ran.load(Ordering::Relaxed), 50, "{num_threads} threads");
        check_each_index_once(&pool, 20);
    }
}

#[test]
fn nested_runs_go_inline() {
    let pool = pool(2);
    let count = AtomicUsize::new(0);
    pool.run(4, &|_| {
        pool.run(5, &|_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
    });
    assert_eq!(count.load(Ordering::Relaxed), 20);
}

#[test]
fn runs_from_several_threads_follow_each_other() {
    let pool = pool(3);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for num_tasks in 0..60 {
                    check_each_index_once(&pool, num_tasks);
                }
            });
        }
    });
}

#[test]
fn chunks_cover_the_slice() {
    for num_threads in SIZES {
        let pool = pool(num_threads);
        for (len, chunk_len) in [(0, 0), (0, 4), (1, 4), (4, 4), (10, 4), (1000, 7)] {
            let mut out = vec![usize::MAX; len];
            pool.for_each_chunk(&mut out, chunk_len, |index, chunk| chunk.fill(index));
            for (i, &index) in out.iter().enumerate() {
                assert_eq!(index, i / chunk_len, "element {i} of {len} by {chunk_len}");
            }
        }
    }
}

#[test]
fn workers_keep_subnormals() {
    let pool = pool(4);
    pool.run(16, &|_| {
        std::thread::sleep(std::time::Duration::from_micros(200));
        assert!(float_mode::keeps_subnormals());
    });
}

#[test]
fn a_pinned_pool_works() {
    let pool = ThreadPool::with_affinity(NonZeroUsize::new(2).expect("two"), Affinity::Pinned);
    check_each_index_once(&pool, 100);
}
