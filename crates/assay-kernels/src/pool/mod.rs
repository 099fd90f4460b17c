//! A fixed set of worker threads that splits independent tasks.
//!
//! A run hands out indices by one atomic counter; the caller takes part. Workers spin briefly after a run,
//! then park: a spinning server beside another process loses far more than a wake costs. Which thread runs a
//! task never changes its result, so the pool has no say in numerics beyond checking the float mode.

mod job;
mod worker;

use crate::disjoint::DisjointSlice;
use crate::float_mode;
use job::Job;
use std::cell::Cell;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use worker::Shared;

thread_local! {
    /// Set while this thread runs a task of any pool; a nested run then goes inline instead of waiting for itself.
    static IN_TASK: Cell<bool> = const { Cell::new(false) };
}

/// Whether workers are bound to cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// The operating system places the workers.
    Floating,
    /// Worker `i` stays on core `i`; core 0 is left to the caller (see [`ThreadPool::pin_caller`]).
    /// Without effect if the pool has more threads than the process has cores.
    Pinned,
}

/// Worker threads. Which thread runs a task never changes its result.
#[derive(Debug)]
pub struct ThreadPool {
    num_threads: NonZeroUsize,
    affinity: Affinity,
    shared: Arc<Shared>,
    /// Held for the whole of a run, so that runs from several threads follow each other.
    run_lock: Mutex<()>,
    workers: Vec<JoinHandle<()>>,
}

impl ThreadPool {
    /// A pool of `num_threads` threads, the caller included; workers float.
    pub fn new(num_threads: NonZeroUsize) -> Self {
        Self::with_affinity(num_threads, Affinity::Floating)
    }

    /// A pool of `num_threads` threads, the caller included, placed as `affinity` says.
    ///
    /// If the system refuses a thread, the pool is smaller; [`ThreadPool::num_threads`] says how large it is.
    pub fn with_affinity(num_threads: NonZeroUsize, affinity: Affinity) -> Self {
        let cores = match affinity {
            Affinity::Floating => Vec::new(),
            Affinity::Pinned => core_affinity::get_core_ids().unwrap_or_default(),
        };
        let affinity = if cores.len() >= num_threads.get() {
            affinity
        } else {
            Affinity::Floating
        };
        let shared = Arc::new(Shared::new(num_threads.get() - 1));
        let mut workers = Vec::with_capacity(num_threads.get() - 1);
        for index in 0..num_threads.get() - 1 {
            let core = match affinity {
                Affinity::Floating => None,
                Affinity::Pinned => cores.get(index + 1).copied(),
            };
            match worker::spawn(Arc::clone(&shared), index, core) {
                Ok(handle) => workers.push(handle),
                Err(_) => break,
            }
        }
        let num_threads = NonZeroUsize::MIN.saturating_add(workers.len());
        Self {
            num_threads,
            affinity,
            shared,
            run_lock: Mutex::new(()),
            workers,
        }
    }

    /// Threads that take part in [`ThreadPool::run`], the caller included.
    pub fn num_threads(&self) -> usize {
        self.num_threads.get()
    }

    /// Binds the calling thread to the core that a pinned pool leaves free; returns whether it did.
    pub fn pin_caller(&self) -> bool {
        self.affinity == Affinity::Pinned
            && core_affinity::get_core_ids()
                .unwrap_or_default()
                .first()
                .is_some_and(|&core| core_affinity::set_for_current(core))
    }

    /// Runs `task(0..num_tasks)`, each index once, and returns when all are done.
    ///
    /// Runs from several threads follow each other; a run from inside a task happens inline.
    ///
    /// # Panics
    /// If a task panics: the other tasks still run, then the first panic seen continues here.
    pub fn run(&self, num_tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        float_mode::ensure_default();
        if num_tasks == 0 {
            return;
        }
        let job = Job::new(task, num_tasks);
        if num_tasks == 1 || self.workers.is_empty() || IN_TASK.get() {
            job.work();
        } else {
            let _one_run = self.run_lock.lock().unwrap_or_else(PoisonError::into_inner);
            let helpers = self.workers.len().min(num_tasks - 1);
            self.shared.share(&job, helpers, || job.work());
        }
        if let Some(panic) = job.into_panic() {
            resume_unwind(panic);
        }
    }

    /// Splits `out` into chunks of `chunk_len` (the last may be shorter) and runs `task(index, chunk)` on each.
    ///
    /// # Panics
    /// If `chunk_len` is 0 while `out` is not empty, or as [`ThreadPool::run`].
    pub fn for_each_chunk<T: Send>(
        &self,
        out: &mut [T],
        chunk_len: usize,
        task: impl Fn(usize, &mut [T]) + Sync,
    ) {
        if out.is_empty() {
            return;
        }
        assert!(chunk_len > 0, "chunks of no elements");
        let len = out.len();
        let parts = DisjointSlice::new(out);
        self.run(len.div_ceil(chunk_len), &|index| {
            let start = index * chunk_len;
            // SAFETY: `run` gives each index once, and chunks of different indices do not overlap.
            let chunk = unsafe { parts.part(start, chunk_len.min(len - start)) };
            task(index, chunk);
        });
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.shared.close();
        for worker in self.workers.drain(..) {
            // A worker catches every task's panic, so there is none to report here.
            let _ = worker.join();
        }
    }
}

#[cfg(test)]
mod tests;
