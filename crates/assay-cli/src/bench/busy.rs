//! Whether others compute on this machine: CPU time that passed and was not ours.

use std::fs;
use std::time::Duration;

use thiserror::Error;

use crate::system;

/// Share of all cores that others may use while a figure is taken.
const MAX_OTHERS: f64 = 0.05;
/// Clock ticks that may be booked a little late, whatever the share.
const SLACK_TICKS: u64 = 3;

/// The machine is not quiet, so no figure is quoted. A process that ends with it exits with code 3.
#[derive(Debug, Error)]
#[error(
    "the machine is busy: {what}. Wait until it is quiet, or give --force to measure anyway and mark the figures"
)]
pub(crate) struct MachineBusy {
    what: String,
}

impl MachineBusy {
    pub(super) fn during(num_figures: usize) -> Self {
        Self {
            what: format!("others computed while {num_figures} of the figures were taken"),
        }
    }
}

/// Looks at the machine for a while.
///
/// # Errors
/// [`MachineBusy`], with what is seen.
pub(super) fn look(duration: Duration) -> Result<(), MachineBusy> {
    let meter = BusyMeter::start();
    std::thread::sleep(duration);
    match meter.others() {
        Some(others) if others.is_too_much() => Err(MachineBusy {
            what: format!(
                "others use {:.0} % of its cores{}",
                others.share() * 100.0,
                system::load_average()
                    .map_or_else(String::new, |load| format!(", load average {load}"))
            ),
        }),
        _ => Ok(()),
    }
}

/// CPU time since a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct BusyMeter {
    start: Option<Ticks>,
}

/// CPU time that others used, in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Others {
    used: u64,
    all: u64,
}

impl Others {
    pub(super) fn share(self) -> f64 {
        self.used as f64 / self.all.max(1) as f64
    }

    pub(super) fn is_too_much(self) -> bool {
        self.used > SLACK_TICKS && self.share() > MAX_OTHERS
    }
}

impl BusyMeter {
    pub(super) fn start() -> Self {
        Self {
            start: Ticks::read(),
        }
    }

    /// What others used since; `None` where the system does not tell.
    pub(super) fn others(self) -> Option<Others> {
        Some(self.start?.until(Ticks::read()?))
    }
}

/// Counters since the start of the machine and of this process.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    busy: u64,
    idle: u64,
    own: u64,
}

impl Ticks {
    fn read() -> Option<Self> {
        let (busy, idle) = parse_cpu(&fs::read_to_string("/proc/stat").ok()?)?;
        let own = parse_own(&fs::read_to_string("/proc/self/stat").ok()?)?;
        Some(Self { busy, idle, own })
    }

    fn until(self, later: Self) -> Others {
        let busy = later.busy.saturating_sub(self.busy);
        let own = later.own.saturating_sub(self.own);
        Others {
            used: busy.saturating_sub(own),
            all: busy + later.idle.saturating_sub(self.idle),
        }
    }
}

/// Busy and idle ticks of all cores together. Time stolen by a hypervisor is busy: it was not ours.
fn parse_cpu(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; guest time is part of user.
    let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = ticks[..] else {
        return None;
    };
    Some((user + nice + system + irq + softirq + steal, idle + iowait))
}

/// User and system ticks of this process, all threads.
fn parse_own(stat: &str) -> Option<u64> {
    // The name in parentheses may hold anything, spaces too; utime and stime are the 14th and 15th field.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_time_is_not_others_and_stolen_time_is() {
        let stat =
            |user, idle, steal| format!("cpu  {user} 0 0 {idle} 0 0 0 {steal} 0 0\ncpu0 1 1\n");
        let ticks = |cpu: String, own| {
            let (busy, idle) = parse_cpu(&cpu).expect("a cpu line");
            Ticks { busy, idle, own }
        };
        let start = ticks(stat(100, 1000, 0), 50);
        let alone = start.until(ticks(stat(200, 1100, 0), 149));
        assert_eq!(alone, Others { used: 1, all: 200 });
        assert!(!alone.is_too_much());
        let beside = start.until(ticks(stat(200, 1100, 0), 120));
        assert!(beside.is_too_much(), "{beside:?}");
        let stolen = start.until(ticks(stat(180, 1100, 20), 130));
        assert!(stolen.is_too_much(), "{stolen:?}");
        // A few ticks of a short measurement say nothing.
        let short = start.until(ticks(stat(110, 1000, 0), 57));
        assert!(!short.is_too_much(), "{short:?}");
    }

    #[test]
    fn the_process_name_may_hold_anything() {
        let line = "7 (a) b (c d) S 1 2 3 4 5 6 7 8 9 10 40 2 0 0 20";
        assert_eq!(parse_own(line), Some(42));
        assert_eq!(parse_own("nonsense"), None);
        assert_eq!(parse_cpu("cpu0 1 2 3"), None);
    }

    #[test]
    fn spinning_of_our_own_is_not_somebody_else() {
        let Some(start) = Ticks::read() else { return };
        // On a loaded machine a thread may wait long for its first tick: work until it is counted.
        let begin = std::time::Instant::now();
        let is_counted = || Ticks::read().is_some_and(|now| now.own > start.own);
        while !is_counted() {
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "our own time is not counted"
            );
        }
    }
}
