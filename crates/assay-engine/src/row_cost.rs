//! What token rows cost a forward pass, in whole numbers: the matrix products of a row, and the keys
//! it attends to.
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

/// Cost of `num_rows` consecutive rows, the first at `position`.
pub(crate) fn of_rows(position: usize, num_rows: usize) -> u64 {
    let (position, num_rows) = (position as u64, num_rows as u64);
    num_rows * (ROW + position) + num_rows * num_rows.saturating_sub(1) / 2
}

/// How many of the `num_left` rows from `position` on fit `budget`.
pub(crate) fn rows_within(position: usize, num_left: usize, budget: u64) -> usize {
    // Rows only get dearer, so no more than this many fit; a few steps down reach the exact count.
    let at_most = budget / (ROW + position as u64);
    let mut num_rows = usize::try_from(at_most).map_or(num_left, |rows| rows.min(num_left));
    while of_rows(position, num_rows) > budget {
        num_rows -= 1;
    }
    num_rows
}

#[cfg(test)]
mod tests {
    use super::{ROW, of_budget, of_rows, rows_within};

    #[test]
    fn rows_cost_the_sum_of_their_keys_and_fill_a_budget_to_the_last() {
        for position in [0, 1, 2_047, 8_000, 131_071] {
            for num_rows in [0, 1, 2, 17, 512] {
                let cost = of_rows(position, num_rows);
                let one_by_one: u64 = (position..position + num_rows)
                    .map(|p| ROW + p as u64)
                    .sum();
                assert_eq!(cost, one_by_one, "{num_rows} rows at {position}");
                let at = format!("{num_rows} rows at {position} for {cost}");
                assert_eq!(rows_within(position, 9_999, cost), num_rows, "{at}");
                let one_short = rows_within(position, 9_999, cost.saturating_sub(1));
                assert_eq!(one_short, num_rows.saturating_sub(1), "{at}, one short");
                assert_eq!(
                    rows_within(position, 3, cost),
                    num_rows.min(3),
                    "{at}, 3 left"
                );
            }
        }
        assert_eq!(rows_within(0, 7, of_budget(usize::MAX)), 7);
    }
}
