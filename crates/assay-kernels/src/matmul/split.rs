//! How a matmul is cut into tasks: rectangles of row groups × token tiles. The cut moves no bit; it
//! only balances threads and keeps a task's activations in the near caches.

use super::job::{Job, Task};
use super::quants::{BLOCK, PANEL_ROWS};
use crate::quantize::QuantizedActivations;

/// Tasks per thread, so that a thread that was interrupted does not hold up the rest.
const TASKS_PER_THREAD: usize = 4;
/// Multiplications below which another thread costs more than it saves.
const PARALLEL_WORK: usize = 1 << 17;
/// Most tokens of a task: their integers stay in the second-level cache.
const MAX_TOKENS: usize = 128;
/// The same for AMX, whose weights are unpacked once per task.
const MAX_TILE_ROW_TOKENS: usize = 256;

/// The token tiles of a job.
#[derive(Clone, Copy, Debug)]
struct Tiles {
    count: usize,
    max_per_task: usize,
    /// Row groups that the kernel takes together.
    groups_at_once: usize,
}

impl Tiles {
    fn of(activations: &QuantizedActivations) -> Self {
        let (max_tokens, groups_at_once) = if activations.in_tile_rows() {
            (MAX_TILE_ROW_TOKENS, 2)
        } else if activations.in_byte_rows() {
            (MAX_TOKENS, 2)
        } else {
            (MAX_TOKENS, 1)
        };
        Self {
            count: activations.num_tiles(),
            max_per_task: max_tokens / activations.full_tile_tokens(),
            groups_at_once,
        }
    }
}

/// The tasks of jobs that share their activations: about as many in all, and as large, whatever the number of jobs.
#[derive(Debug)]
pub(super) struct Grids(Vec<Grid>);

impl Grids {
    pub(super) fn new(jobs: &[Job<'_>], num_threads: usize) -> Self {
        let work: usize = jobs
            .iter()
            .map(|job| job.n * job.num_blocks * BLOCK * job.activations.num_tokens())
            .sum();
        let num_threads = if work < PARALLEL_WORK { 1 } else { num_threads };
        let num_groups = |job: &Job<'_>| job.n.div_ceil(PANEL_ROWS);
        let all_groups = jobs.iter().map(num_groups).sum();
        let grid = |job: &Job<'_>| {
            let tiles = Tiles::of(job.activations);
            Grid::of(num_groups(job), all_groups, tiles, num_threads)
        };
        Self(jobs.iter().map(grid).collect())
    }

    pub(super) fn num_tasks(&self) -> usize {
        self.0.iter().map(Grid::num_tasks).sum()
    }

    /// Task `index`, and the job that it is of.
    ///
    /// # Panics
    /// If there are not so many.
    pub(super) fn task(&self, mut index: usize) -> (usize, Task) {
        for (job, grid) in self.0.iter().enumerate() {
            match index.checked_sub(grid.num_tasks()) {
                Some(rest) => index = rest,
                None => return (job, grid.task(index)),
            }
        }
        panic!("no such task: {index} past the last");
    }
}

/// A regular grid of tasks.
#[derive(Debug)]
struct Grid {
    num_groups: usize,
    num_tiles: usize,
    groups_per_task: usize,
    tiles_per_task: usize,
}

impl Grid {
    /// Of a job of `num_groups`, where all jobs that run with it have `all_groups`.
    fn of(num_groups: usize, all_groups: usize, tiles: Tiles, num_threads: usize) -> Self {
        let num_tiles = tiles.count;
        let wanted = if num_threads == 1 {
            1
        } else {
            num_threads * TASKS_PER_THREAD
        };
        let tiles_per_task = num_tiles.clamp(1, tiles.max_per_task);
        let row_tasks = wanted.div_ceil(num_tiles.div_ceil(tiles_per_task).max(1));
        let groups_per_task = all_groups
            .div_ceil(row_tasks)
            .next_multiple_of(tiles.groups_at_once);
        Self {
            num_groups,
            num_tiles,
            groups_per_task,
            tiles_per_task,
        }
    }

    fn num_tasks(&self) -> usize {
        self.num_groups.div_ceil(self.groups_per_task)
            * self.num_tiles.div_ceil(self.tiles_per_task)
    }

    /// Task `index`, rows fastest: neighbours share the token tiles.
    fn task(&self, index: usize) -> Task {
        let row_tasks = self.num_groups.div_ceil(self.groups_per_task);
        let range =
            |index: usize, size: usize, end: usize| index * size..((index + 1) * size).min(end);
        Task {
            groups: range(index % row_tasks, self.groups_per_task, self.num_groups),
            tiles: range(index / row_tasks, self.tiles_per_task, self.num_tiles),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every cell of every job belongs to exactly one task.
    #[test]
    fn tasks_cover_the_outputs_once() {
        for jobs in [
            &[1][..],
            &[2],
            &[3],
            &[7],
            &[36],
            &[3072],
            &[36, 12, 12],
            &[1, 96, 3],
        ] {
            for num_tiles in [0, 1, 2, 31, 33, 128] {
                for (num_threads, max_per_task, groups_at_once) in [
                    (1, 32, 1),
                    (2, 32, 1),
                    (2, 16, 2),
                    (3, 32, 1),
                    (7, 16, 2),
                    (64, 32, 1),
                ] {
                    let tiles = Tiles {
                        count: num_tiles,
                        max_per_task,
                        groups_at_once,
                    };
                    let all_groups = jobs.iter().sum();
                    let grid = |&num_groups| Grid::of(num_groups, all_groups, tiles, num_threads);
                    let grids = Grids(jobs.iter().map(grid).collect());
                    let mut seen: Vec<Vec<u8>> = jobs
                        .iter()
                        .map(|num_groups| vec![0; num_groups * num_tiles])
                        .collect();
                    for index in 0..grids.num_tasks() {
                        let (job, task) = grids.task(index);
                        for tile in task.tiles {
                            for group in task.groups.clone() {
                                seen[job][tile * jobs[job] + group] += 1;
                            }
                        }
                    }
                    assert!(
                        seen.iter().flatten().all(|&count| count == 1),
                        "{jobs:?} groups, {num_tiles} tiles, {num_threads} threads"
                    );
                }
            }
        }
    }
}
