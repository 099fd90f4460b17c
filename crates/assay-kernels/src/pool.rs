//! A fixed set of worker threads that splits independent tasks.

use std::num::NonZeroUsize;

/// Worker threads. Which thread runs a task never changes its result.
#[derive(Debug)]
pub struct ThreadPool {
    num_threads: NonZeroUsize,
}

impl ThreadPool {
    /// A pool of `num_threads` threads, the caller included.
    pub fn new(num_threads: NonZeroUsize) -> Self {
        Self { num_threads }
    }

    /// Threads that take part in [`ThreadPool::run`], the caller included.
    pub fn num_threads(&self) -> usize {
        self.num_threads.get()
    }

    /// Runs `task(0..num_tasks)`, each index once, and returns when all are done.
    pub fn run(&self, num_tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        for index in 0..num_tasks {
            task(index);
        }
    }
}
