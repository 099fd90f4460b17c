//! What token rows cost a forward pass, in whole numbers: the matrix products of a row, the keys it attends to, and
//! the head where its logits are wanted.
//!
//! An estimate for sharing steps only. Knows no device and no sequence, and never reaches a result.

/// Keys of attention that take as long as the matrix products of one row: the cost of a row at
/// position 0, and of one row of budget. A row at position p costs `ROW + p`.
///
/// Measured on SmolLM2-135M with two threads: a row takes 0.75 ms and a key 0.4 µs, that is 1,900
/// keys a row; a round number beside it, since another model or machine shifts the ratio anyway.
pub(crate) const ROW: u64 = 2048;

/// The budget that is worth `num_rows` rows at position 0.
pub(crate) fn of_budget(num_rows: usize) -> u64 {
    (num_rows as u64).saturating_mul(ROW)
}

/// What logits cost that take `share` of a row's time in the layers.
pub(crate) fn of_logits(share: f64) -> u64 {
    // A cast saturates: a share that makes no sense makes steps small or large, never wrong.
    (share * ROW as f64).round() as u64
}

/// Rows that follow each other in one sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Position of the first.
    pub(crate) position: usize,
    pub(crate) num_rows: usize,
    /// Leading ones whose logits nobody wants; at most `num_rows`.
    pub(crate) num_plain: usize,
}

impl Run {
    /// The first `num_rows` of them.
    pub(crate) fn first(self, num_rows: usize) -> Self {
        Self {
            num_rows,
            num_plain: self.num_plain.min(num_rows),
            ..self
        }
    }

    /// What the rows cost without anyone's logits: the order of sharing goes by it, so that the choices of one request
    /// stand together whether or not its prompt is scored.
    pub(crate) fn cost_of_rows(self) -> u64 {
        sum(ROW, self.position, self.num_rows)
    }

    /// Those behind the first `num_rows`.
    pub(crate) fn behind(self, num_rows: usize) -> Self {
        Self {
            position: self.position + num_rows,
            num_rows: self.num_rows - num_rows,
            num_plain: self.num_plain.saturating_sub(num_rows),
        }
    }
}

/// The costs of one model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowCost {
    /// Of a row's logits, beside the row itself.
    pub(crate) logits: u64,
}

impl RowCost {
    /// Cost of all rows of `run`.
    pub(crate) fn of(self, run: Run) -> u64 {
        let num_with_logits = (run.num_rows - run.num_plain) as u64;
        sum(ROW, run.position, run.num_rows) + num_with_logits * self.logits
    }

    /// How many leading rows of `run` fit `budget`.
    pub(crate) fn rows_within(self, run: Run, budget: u64) -> usize {
        let num_plain = within(ROW, run.position, run.num_plain, budget);
        if num_plain < run.num_plain {
            return num_plain;
        }
        let rest = run.behind(num_plain);
        let left = budget - sum(ROW, run.position, num_plain);
        num_plain + within(ROW + self.logits, rest.position, rest.num_rows, left)
    }
}

/// Cost of `num_rows` consecutive rows, the first at `position`; `row` at position 0.
fn sum(row: u64, position: usize, num_rows: usize) -> u64 {
    let (position, num_rows) = (position as u64, num_rows as u64);
    num_rows * (row + position) + num_rows * num_rows.saturating_sub(1) / 2
}

/// How many of `num_left` such rows fit `budget`.
fn within(row: u64, position: usize, num_left: usize, budget: u64) -> usize {
    // Rows only get dearer, so no more than this many fit; a few steps down reach the exact count.
    let at_most = budget / (row + position as u64);
    let mut num_rows = usize::try_from(at_most).map_or(num_left, |rows| rows.min(num_left));
    while sum(row, position, num_rows) > budget {
        num_rows -= 1;
    }
    num_rows
}

#[cfg(test)]
mod tests {
    use super::{ROW, RowCost, Run, of_budget, of_logits};

    #[test]
    fn rows_cost_the_sum_of_their_keys_and_logits_and_fill_a_budget_to_the_last() {
        for (position, logits) in [(0, 0), (1, 550), (2_047, 3_430), (8_000, 1), (131_071, 9)] {
            let costs = RowCost { logits };
            for (num_rows, num_plain) in [(0, 0), (1, 0), (2, 1), (17, 16), (512, 0), (512, 200)] {
                let run = Run {
                    position,
                    num_rows,
                    num_plain,
                };
                let cost = costs.of(run);
                let one_by_one: u64 = (0..num_rows)
                    .map(|i| ROW + (position + i) as u64 + if i < num_plain { 0 } else { logits })
                    .sum();
                assert_eq!(cost, one_by_one, "{run:?}");
                let split = costs.of(run.first(num_rows / 3)) + costs.of(run.behind(num_rows / 3));
                assert_eq!(split, cost, "{run:?} in two");
                // As many of more rows as it costs, no more and no fewer.
                let longer = Run {
                    num_rows: 9_999,
                    ..run
                };
                assert_eq!(costs.rows_within(longer, cost), num_rows, "{run:?}");
                let one_short = costs.rows_within(longer, cost.saturating_sub(1));
                assert_eq!(one_short, num_rows.saturating_sub(1), "{run:?}, one short");
                let short = longer.first(3);
                assert_eq!(costs.rows_within(short, cost), num_rows.min(3), "{run:?}");
            }
        }
        let run = Run {
            position: 0,
            num_rows: 7,
            num_plain: 7,
        };
        let costs = RowCost { logits: 0 };
        assert_eq!(costs.rows_within(run, of_budget(usize::MAX)), 7);
    }

    #[test]
    fn a_share_of_a_row_is_so_many_keys() {
        assert_eq!([0.0, 0.25, 1.68].map(of_logits), [0, 512, 3_441]);
        assert_eq!(of_logits(f64::NAN), 0);
    }
}
