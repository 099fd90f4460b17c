//! How many tokens of a draft are worth their rows.
//!
//! A draft token is kept with all those before it or not at all, so the `i`th is worth its row while the product
//! of the first `i` acceptance rates is above what a row costs, in tokens. Rates are learnt from the sequence's
//! own reply. All of it steers time only: no number here reaches a token or a score.

/// Rows at position 0 that take as long as the rest of a pass: reading the weights once.
///
/// Measured on SmolLM2-135M Q4_1 with two threads; a larger model reads more for each row, so this errs to the
/// side of few drafts.
const PASS_ROWS: f64 = 2.2;

/// Weight of the newest observation: about the last ten count.
const RATE: f64 = 0.1;

/// What one more row costs in a step of `num_sequences` decode rows, in tokens: each sequence pays with its time
/// for a row that may bring one of them a token. 0..1.
pub(crate) fn row_cost(num_sequences: usize) -> f64 {
    let num_sequences = num_sequences as f64;
    num_sequences / (PASS_ROWS + num_sequences)
}

/// A learnt share of guesses that came true.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HitRate(f64);

impl HitRate {
    /// What is believed before anything was seen, 0..=1.
    pub(crate) const fn new(prior: f64) -> Self {
        Self(prior)
    }

    /// Learns of one guess.
    pub(crate) fn observe(&mut self, is_hit: bool) {
        let seen = f64::from(u8::from(is_hit));
        self.0 += (seen - self.0) * RATE;
    }

    /// The share.
    pub(crate) fn get(self) -> f64 {
        self.0
    }
}

/// Leading tokens of a draft that are worth `cost` each, up to `limit`; `rate(i)` is the acceptance rate of
/// token `i`, given those before it.
pub(crate) fn worthwhile(cost: f64, limit: usize, rate: impl Fn(usize) -> f64) -> usize {
    let mut reached = 1.0;
    (0..limit)
        .take_while(|&index| {
            reached *= rate(index);
            reached > cost
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::{HitRate, row_cost, worthwhile};

    #[test]
    fn a_draft_ends_where_a_row_costs_more_than_it_brings() {
        // 0.8, 0.64, 0.51, 0.41, 0.33, 0.26
        assert_eq!(worthwhile(0.3, 8, |_| 0.8), 5);
        assert_eq!(worthwhile(0.3, 3, |_| 0.8), 3);
        assert_eq!(worthwhile(0.3, 8, |_| 0.3), 0);
        assert_eq!(
            worthwhile(0.3, 8, |index| if index < 2 { 1.0 } else { 0.0 }),
            2
        );
    }

    #[test]
    fn rows_are_dearer_in_company() {
        let costs: Vec<f64> = [1, 2, 8, 64].map(row_cost).to_vec();
        assert!(costs.is_sorted_by(|a, b| a < b), "{costs:?}");
        assert!(
            costs.iter().all(|cost| (0.0..1.0).contains(cost)),
            "{costs:?}"
        );
    }

    #[test]
    fn a_rate_follows_what_it_sees() {
        let mut rate = HitRate::new(0.5);
        for _ in 0..60 {
            rate.observe(true);
        }
        assert!(rate.get() > 0.99, "{rate:?}");
        for _ in 0..30 {
            rate.observe(false);
        }
        assert!(rate.get() < 0.1, "{rate:?}");
    }
}
