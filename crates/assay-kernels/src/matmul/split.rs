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

/// A regular grid of tasks.
#[derive(Debug)]
pub(super) struct Grid {
    num_groups: usize,
    num_tiles: usize,
    groups_per_task: usize,
    tiles_per_task: usize,
}

impl Grid {
    pub(super) fn new(job: &Job<'_>, num_threads: usize) -> Self {
        let work = job.n * job.num_blocks * BLOCK * job.activations.num_tokens();
        Self::of(
            job.n.div_ceil(PANEL_ROWS),
            Tiles::of(job.activations),
            if work < PARALLEL_WORK { 1 } else { num_threads },
        )
    }

    fn of(num_groups: usize, tiles: Tiles, num_threads: usize) -> Self {
        let num_tiles = tiles.count;
        let wanted = if num_threads == 1 {
            1
        } else {
            num_threads * TASKS_PER_THREAD
        };
        let tiles_per_task = num_tiles.clamp(1, tiles.max_per_task);
        let row_tasks = wanted.div_ceil(num_tiles.div_ceil(tiles_per_task).max(1));
        let groups_per_task = num_groups
            .div_ceil(row_tasks)
            .next_multiple_of(tiles.groups_at_once);
        Self {
            num_groups,
            num_tiles,
            groups_per_task,
            tiles_per_task,
        }
    }

    pub(super) fn num_tasks(&self) -> usize {
        self.num_groups.div_ceil(self.groups_per_task)
            * self.num_tiles.div_ceil(self.tiles_per_task)
    }

    /// Task `index`, rows fastest: neighbours share the token tiles.
    pub(super) fn task(&self, index: usize) -> Task {
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

    /// Every cell belongs to exactly one task.
    #[test]
    fn tasks_cover_the_output_once() {
        for num_groups in [1, 2, 3, 7, 36, 96, 3072] {
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
                    let grid = Grid::of(num_groups, tiles, num_threads);
                    let mut seen = vec![0_u8; num_groups * num_tiles];
                    for index in 0..grid.num_tasks() {
                        let task = grid.task(index);
                        for tile in task.tiles {
                            for group in task.groups.clone() {
                                seen[tile * num_groups + group] += 1;
                            }
                        }
                    }
                    assert!(
                        seen.iter().all(|&count| count == 1),
                        "{num_groups} groups, {num_tiles} tiles, {num_threads} threads"
                    );
                }
            }
        }
    }
}
