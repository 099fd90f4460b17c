//! One run's work: the indices still to claim, the task, and the first panic.

use super::IN_TASK;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// A run as its participants see it; lives on the caller's stack until all have left.
pub(super) struct Job<'a> {
    task: &'a (dyn Fn(usize) + Sync),
    num_tasks: usize,
    next: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl<'a> Job<'a> {
    pub(super) fn new(task: &'a (dyn Fn(usize) + Sync), num_tasks: usize) -> Self {
        Self {
            task,
            num_tasks,
            next: AtomicUsize::new(0),
            panic: Mutex::new(None),
        }
    }

    /// Claims and runs indices until none is left. Never unwinds.
    pub(super) fn work(&self) {
        let was_in_task = IN_TASK.replace(true);
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            // Overshoot is at most one per participant, far from wrapping.
            if index >= self.num_tasks {
                break;
            }
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (self.task)(index))) {
                self.panic
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .get_or_insert(panic);
            }
        }
        IN_TASK.set(was_in_task);
    }

    /// The first panic caught, once every participant has left.
    pub(super) fn into_panic(self) -> Option<Box<dyn Any + Send>> {
        self.panic
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
