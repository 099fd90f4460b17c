//! Workers and the door through which they join a run.
//!
//! One atomic word holds the run's number, whether its door is open, and how many workers are inside.
//! A worker that wakes late finds the door shut and simply goes back to waiting, so a run never waits for
//! a worker that the system has not scheduled; it waits only for those inside.

use super::job::Job;
use crate::float_mode;
use core_affinity::CoreId;
use std::cell::UnsafeCell;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

/// How long a waiting thread spins before it parks: about the length of the gaps between the ops of a layer.
const SPIN: Duration = Duration::from_micros(30);

/// Spins between two looks at the clock.
const SPINS_PER_CLOCK: u32 = 64;

/// Lower half of the door word: workers inside.
const INSIDE: u64 = (1 << 30) - 1;
/// Workers may enter.
const OPEN: u64 = 1 << 30;
/// The pool is being dropped.
const CLOSED: u64 = 1 << 31;
/// Upper half: the run's number.
const RUN: u64 = 1 << 32;

/// A worker's bed: whether it sleeps, and whom to wake.
#[derive(Debug, Default)]
struct Seat {
    parked: AtomicBool,
    thread: OnceLock<Thread>,
}

/// What the pool and its workers share.
pub(super) struct Shared {
    door: AtomicU64,
    /// The current job; written only while the door is shut and nobody is inside.
    job: UnsafeCell<*const Job<'static>>,
    seats: Vec<Seat>,
    caller_parked: AtomicBool,
    caller: Mutex<()>,
    caller_wake: Condvar,
}

// SAFETY: everything but `job` is Sync. `job` is written by the one caller that holds the run lock, before
// it opens the door, and read by workers only between entering through the open door and leaving.
unsafe impl Sync for Shared {}
// SAFETY: the raw pointer is only followed under the protocol above; no thread-bound data is held.
unsafe impl Send for Shared {}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("seats", &self.seats.len())
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(num_workers: usize) -> Self {
        Self {
            door: AtomicU64::new(0),
            job: UnsafeCell::new(std::ptr::null()),
            seats: (0..num_workers).map(|_| Seat::default()).collect(),
            caller_parked: AtomicBool::new(false),
            caller: Mutex::new(()),
            caller_wake: Condvar::new(),
        }
    }

    /// Opens the door for `job`, wakes up to `helpers` sleeping workers, runs `own_part`, and returns when the
    /// door is shut and empty. The caller must hold the pool's run lock.
    pub(super) fn share(&self, job: &Job<'_>, helpers: usize, own_part: impl FnOnce()) {
        // SAFETY: the run lock is held and the previous run ended with the door shut and nobody inside, so no
        // one reads the cell. The lifetime is erased: workers follow the pointer only while inside, and this
        // function leaves only when all have left; `own_part` (`Job::work`) does not unwind.
        unsafe {
            *self.job.get() = std::ptr::from_ref(job).cast();
        }
        let run = self.door.load(Ordering::Relaxed) & !(RUN - 1);
        self.door
            .store(run.wrapping_add(RUN) | OPEN, Ordering::SeqCst);
        for seat in self.seats.iter().take(helpers) {
            if seat.parked.load(Ordering::SeqCst) && seat.parked.swap(false, Ordering::SeqCst) {
                seat.wake();
            }
        }
        own_part();
        let before = self.door.fetch_and(!OPEN, Ordering::SeqCst);
        if before & INSIDE != 0 {
            self.wait_until_empty();
        }
    }

    fn is_empty(&self) -> bool {
        self.door.load(Ordering::SeqCst) & INSIDE == 0
    }

    fn wait_until_empty(&self) {
        if spin_until(|| self.is_empty()) {
            return;
        }
        self.caller_parked.store(true, Ordering::SeqCst);
        let mut guard = self.caller.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.is_empty() {
            guard = self
                .caller_wake
                .wait(guard)
                .unwrap_or_else(PoisonError::into_inner);
        }
        self.caller_parked.store(false, Ordering::SeqCst);
    }

    /// Tells the workers to end.
    pub(super) fn close(&self) {
        self.door.fetch_or(CLOSED, Ordering::SeqCst);
        for seat in &self.seats {
            seat.wake();
        }
    }

    /// Enters the run numbered in `door`, if its door is still open.
    fn enter(&self, mut door: u64) -> bool {
        let run = door & !(RUN - 1);
        while door & OPEN != 0 && door & !(RUN - 1) == run {
            match self.door.compare_exchange_weak(
                door,
                door + 1,
                Ordering::SeqCst,
                Ordering::SeqCst,
            ) {
                Ok(_) => return true,
                Err(now) => door = now,
            }
        }
        false
    }

    fn leave(&self) {
        let before = self.door.fetch_sub(1, Ordering::SeqCst);
        // From here the job may be gone; only `self`, which the worker's Arc keeps, is touched.
        if before & (INSIDE | OPEN) == 1 && self.caller_parked.load(Ordering::SeqCst) {
            let _guard = self.caller.lock().unwrap_or_else(PoisonError::into_inner);
            self.caller_wake.notify_one();
        }
    }

    fn work(&self, seat: &Seat) {
        let mut last_run = 0;
        loop {
            // `last_run` starts at 0 and runs are numbered from 1.
            let has_news = || {
                let door = self.door.load(Ordering::SeqCst);
                door & CLOSED != 0 || (door & OPEN != 0 && door & !(RUN - 1) != last_run)
            };
            if !spin_until(has_news) {
                seat.park_until(has_news);
            }
            let door = self.door.load(Ordering::SeqCst);
            if door & CLOSED != 0 {
                return;
            }
            if !self.enter(door) {
                continue;
            }
            last_run = door & !(RUN - 1);
            // SAFETY: this worker is inside, so the caller is still in `share` and the job is alive; the write of
            // the cell happened before the door opened, which `enter` has seen.
            let job = unsafe { &**self.job.get() };
            job.work();
            self.leave();
        }
    }
}

impl Seat {
    fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    fn park_until(&self, has_news: impl Fn() -> bool) {
        loop {
            // Announce, then look again: the caller opens the door, then looks at `parked`. One of the two sees the other.
            self.parked.store(true, Ordering::SeqCst);
            if has_news() {
                self.parked.store(false, Ordering::SeqCst);
                return;
            }
            thread::park();
        }
    }
}

/// Spins until `done` or until [`SPIN`] is over; says whether it is done.
fn spin_until(done: impl Fn() -> bool) -> bool {
    let mut start = None;
    loop {
        for _ in 0..SPINS_PER_CLOCK {
            if done() {
                return true;
            }
            std::hint::spin_loop();
        }
        if start.get_or_insert_with(Instant::now).elapsed() > SPIN {
            return done();
        }
    }
}

/// Starts worker `index`.
pub(super) fn spawn(
    shared: Arc<Shared>,
    index: usize,
    core: Option<CoreId>,
) -> io::Result<JoinHandle<()>> {
    let builder = thread::Builder::new().name(format!("assay-worker-{}", index + 1));
    builder.spawn(move || {
        let Some(seat) = shared.seats.get(index) else {
            return;
        };
        // The seat is filled before the worker can park, so whoever sees `parked` finds a thread to wake.
        let _ = seat.thread.set(thread::current());
        if let Some(core) = core {
            core_affinity::set_for_current(core);
        }
        float_mode::ensure_default();
        shared.work(seat);
    })
}
