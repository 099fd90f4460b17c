//! The figures of an evaluation: pure functions of answers and what the answers should have been.
//!
//! A truth is a distribution too: one answer has all of it, or, where people disagreed, each has its share.

/// Bins of the calibration error, each with the same number of answers.
const NUM_BINS: usize = 15;

/// One answer beside the truth; both distributions are over the same answers in the same order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Judged {
    /// What was read; sums to 1.
    pub(super) probabilities: Vec<f64>,
    /// What is so; sums to 1.
    pub(super) truth: Vec<f64>,
    /// Probability that the model says any of the answers at all.
    pub(super) label_mass: f64,
    /// Whether the options in reverse bring another answer; `None` where they have no order to reverse.
    pub(super) is_flipped: Option<bool>,
}

impl Judged {
    /// How sure the answer is, and how much of the truth it has.
    fn confidence_and_truth(&self) -> (f64, f64) {
        let mode = mode(&self.probabilities);
        let at = |values: &[f64]| values.get(mode).copied().unwrap_or_default();
        (at(&self.probabilities), at(&self.truth))
    }
}

/// Index of the greatest value; the first of equals.
pub(super) fn mode(values: &[f64]) -> usize {
    let mut best = 0;
    for (index, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = index;
        }
    }
    best
}

/// Share of answers whose most likely one is the truth's most likely one.
pub(super) fn accuracy(judged: &[Judged]) -> f64 {
    let is_right = |one: &Judged| mode(&one.probabilities) == mode(&one.truth);
    mean(judged.iter().map(|one| f64::from(is_right(one))))
}

/// Expected calibration error: answers in order of their confidence, cut into [`NUM_BINS`] bins of the same number (the
/// sizes differ by one at most); the mean over all answers of their bin's |mean confidence − mean truth|. Equal
/// confidences keep the order of the rows.
pub(super) fn calibration_error(judged: &[Judged]) -> f64 {
    let mut pairs: Vec<(f64, f64)> = judged.iter().map(Judged::confidence_and_truth).collect();
    pairs.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let count = pairs.len();
    let bins = (0..NUM_BINS).map(|bin| bin * count / NUM_BINS..(bin + 1) * count / NUM_BINS);
    let gaps = bins.map(|bin| {
        let gap = pairs[bin]
            .iter()
            .map(|(confidence, truth)| confidence - truth);
        gap.sum::<f64>().abs()
    });
    gaps.sum::<f64>() / count as f64
}

/// Mean over answers of the squared distance between distribution and truth, summed over all answers of a question:
/// 0 is best, 2 is worst.
pub(super) fn brier(judged: &[Judged]) -> f64 {
    let distance = |one: &Judged| {
        let pairs = one.probabilities.iter().zip(&one.truth);
        pairs.map(|(p, truth)| (p - truth) * (p - truth)).sum()
    };
    mean(judged.iter().map(distance))
}

/// Share of the answers with an order to reverse that are others when it is reversed; `None` without any.
pub(super) fn flip_rate(judged: &[Judged]) -> Option<f64> {
    let flips: Vec<bool> = judged.iter().filter_map(|one| one.is_flipped).collect();
    let rate = mean(flips.iter().map(|flipped| f64::from(*flipped)));
    (!flips.is_empty()).then_some(rate)
}

/// Mean probability that the model says any of the answers at all.
pub(super) fn label_mass(judged: &[Judged]) -> f64 {
    mean(judged.iter().map(|one| one.label_mass))
}

/// NaN of nothing.
pub(super) fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len();
    values.sum::<f64>() / count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(p: f64, is_yes: bool) -> Judged {
        Judged {
            probabilities: vec![p, 1.0 - p],
            truth: vec![f64::from(is_yes), f64::from(!is_yes)],
            label_mass: 0.5,
            is_flipped: None,
        }
    }

    fn check(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
    }

    #[test]
    fn accuracy_takes_the_first_of_equals() {
        let rows = [
            judged(0.75, true),
            judged(0.25, true),
            judged(0.5, true),
            judged(0.5, false),
        ];
        check(accuracy(&rows), 0.5);
    }

    #[test]
    fn brier_is_summed_over_a_question_s_answers() {
        // 0.25² + 0.25² = 0.125 and 0.75² + 0.75² = 1.125.
        check(brier(&[judged(0.75, true), judged(0.25, true)]), 0.625);
        let thirds = Judged {
            probabilities: vec![0.5, 0.25, 0.25],
            truth: vec![0.0, 1.0, 0.0],
            ..judged(0.5, true)
        };
        // 0.25 + 0.5625 + 0.0625.
        check(brier(&[thirds]), 0.875);
    }

    #[test]
    fn calibration_error_of_one_answer_a_bin_is_the_mean_gap() {
        // Fifteen answers, one a bin: sure of 0.6 and right ten times of fifteen.
        let rows: Vec<Judged> = (0..15).map(|index| judged(0.6, index < 10)).collect();
        check(calibration_error(&rows), (10.0 * 0.4 + 5.0 * 0.6) / 15.0);
    }

    #[test]
    fn calibration_error_evens_out_within_a_bin_alone() {
        // Thirty answers, two a bin: in each bin one is right, one is wrong, both are sure of `confidence`.
        let mut rows: Vec<Judged> = (0..30)
            .map(|index| judged(0.5 + f64::from(index / 2) / 64.0, index % 2 == 0))
            .collect();
        // The gap of bin b is |(0.5 + b / 64) - 0.5|; its mean over b = 0..15 is 7 / 64.
        check(calibration_error(&rows), 7.0 / 64.0);
        // The order of the rows is of no account.
        rows.reverse();
        check(calibration_error(&rows), 7.0 / 64.0);
    }

    #[test]
    fn a_soft_truth_counts_with_its_share() {
        let soft = Judged {
            truth: vec![0.7, 0.3],
            ..judged(0.9, true)
        };
        let rows = vec![soft; 15];
        check(accuracy(&rows), 1.0);
        check(calibration_error(&rows), 0.2);
        check(brier(&rows), 0.08);
    }

    #[test]
    fn flips_are_counted_among_those_with_an_order() {
        let with = |is_flipped| Judged {
            is_flipped,
            ..judged(0.5, true)
        };
        let rows = [
            with(Some(true)),
            with(None),
            with(Some(false)),
            with(Some(false)),
        ];
        check(flip_rate(&rows).expect("some"), 1.0 / 3.0);
        assert_eq!(flip_rate(&rows[1..2]), None);
        check(label_mass(&rows), 0.5);
    }
}
