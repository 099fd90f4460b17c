//! A gate before each forward pass, so that a test can bring about "queue full" or "client gone in
//! prefill" without a race.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::locked;

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

    pub(super) fn pass(&self) {
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
