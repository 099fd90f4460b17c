//! A bound on the time that one reply's constraint may take from everybody's steps.
//!
//! The parser bounds the items of a step, not the work: with an ambiguous grammar that grows with their square or
//! worse. Its author may not know; every other reply waits. Time is the only measure of it that there is, so a
//! reply may fail here on a slow machine and not on a fast one. What does not fail is not changed by it.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::error::MatchError;

/// What a step may take without being counted: several times what a large schema needs.
const FREE_PER_STEP: Duration = Duration::from_millis(25);
/// What all steps of a reply may take beyond that.
const OVERTIME_MAX: Duration = Duration::from_secs(2);

/// Time that a reply's steps took beyond what is free.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overtime(Duration);

impl Overtime {
    /// Runs one step's work.
    ///
    /// # Errors
    /// The bound was passed, by this step or before.
    pub(crate) fn count<T>(&mut self, work: impl FnOnce() -> T) -> Result<T, MatchError> {
        let before = thread_time();
        let result = work();
        self.add(thread_time().saturating_sub(before))?;
        Ok(result)
    }

    fn add(&mut self, taken: Duration) -> Result<(), MatchError> {
        self.0 += taken.saturating_sub(FREE_PER_STEP);
        if self.0 > OVERTIME_MAX {
            let seconds = OVERTIME_MAX.as_secs();
            let reason = format!(
                "its steps took {seconds} s more than steps may; an ambiguous grammar takes longer with every token"
            );
            return Err(MatchError::Limit { reason });
        }
        Ok(())
    }
}

/// Time of this thread on a processor: other load does not count.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{FREE_PER_STEP, OVERTIME_MAX, Overtime};

    #[test]
    fn only_what_is_not_free_adds_up() {
        let mut overtime = Overtime::default();
        for _ in 0..10_000 {
            overtime.add(FREE_PER_STEP).expect("free");
        }
        let step = FREE_PER_STEP + OVERTIME_MAX / 2;
        overtime.add(step).expect("half of it");
        overtime.add(step).expect("all of it");
        overtime.add(Duration::ZERO).expect("no more");
        overtime
            .add(FREE_PER_STEP + Duration::from_millis(1))
            .expect_err("too much");
    }

    #[test]
    fn work_is_timed() {
        let mut overtime = Overtime::default();
        let rounds = (1..1_000).find(|_| {
            let work = || (0..20_000_000_u64).fold(0, |sum, n| std::hint::black_box(sum ^ n));
            overtime.count(work).is_err()
        });
        assert!(rounds > Some(1), "{rounds:?}");
    }
}
