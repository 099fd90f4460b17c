//! An array of distinct values as a chain of choices: the first that applies, the next, until the word that ends it.
//! Items keep the schema's order, so that each subset has one way.

use assay_api::decisions::schema::Subset;
use assay_api::decisions::{Answers, Choice, ChoiceValue, Question};

/// The word that ends an array.
const STOP: &str = assay_api::decisions::schema::STOP;

/// One step of a subset: what may come next.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// Indices of values; after them, the end where it is allowed.
    pub(super) items: Vec<usize>,
    pub(super) may_stop: bool,
}

/// What may follow `chosen`, indices in ascending order.
pub(super) fn step(subset: &Subset, chosen: &[usize]) -> Step {
    let first = chosen.last().map_or(0, |last| last + 1);
    let num_values = subset.values.len();
    let is_full = chosen.len() >= subset.max_items;
    // An item that leaves too few behind it for the fewest allowed leads nowhere.
    let missing = subset.min_items.saturating_sub(chosen.len() + 1);
    let end = if is_full {
        first
    } else {
        num_values.saturating_sub(missing)
    };
    Step {
        items: (first..end).collect(),
        may_stop: chosen.len() >= subset.min_items,
    }
}

impl Step {
    /// How many ways there are on.
    pub(super) fn count(&self) -> usize {
        self.items.len() + usize::from(self.may_stop)
    }

    /// The question for this step; `is_first` says that nothing was chosen before.
    pub(super) fn question(&self, subset: &Subset, is_first: bool) -> Question {
        let instructions = match (&subset.instructions, is_first) {
            (Some(instructions), true) => {
                format!("{instructions}\nWhich is the first of these that applies?")
            }
            (None, true) => "Which is the first of these that applies?".to_owned(),
            (_, false) => "Which is the next of these that applies?".to_owned(),
        };
        let choice = |text: &str, description: Option<&str>| Choice {
            path: subset.path.clone(),
            value: ChoiceValue::Text(text.to_owned()),
            description: description.map(str::to_owned),
        };
        let items = self.items.iter().filter_map(|item| subset.texts.get(*item));
        let mut choices: Vec<Choice> = items.map(|text| choice(text, None)).collect();
        if self.may_stop {
            let none = if is_first {
                "none of these applies"
            } else {
                "no other applies"
            };
            choices.push(choice(STOP, Some(none)));
        }
        Question {
            path: subset.path.clone(),
            instructions: Some(instructions),
            answers: Answers::Choice(choices),
            described: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn subset(num_values: usize, min_items: usize, max_items: usize) -> Subset {
        Subset {
            path: "schema".to_owned(),
            instructions: None,
            values: (0..num_values).map(|value| json!(value)).collect(),
            texts: (0..num_values).map(|value| value.to_string()).collect(),
            min_items,
            max_items,
        }
    }

    /// Walks every way and collects where they end.
    fn ends(subset: &Subset, chosen: &[usize], found: &mut Vec<Vec<usize>>) {
        let step = step(subset, chosen);
        if step.may_stop {
            found.push(chosen.to_vec());
        }
        assert!(step.count() > 0, "{chosen:?} leads nowhere");
        for item in step.items {
            ends(subset, &[chosen, &[item]].concat(), found);
        }
    }

    #[test]
    fn every_allowed_subset_has_exactly_one_way() {
        for (num_values, min_items, max_items) in [
            (1, 0, 1),
            (4, 0, 4),
            (4, 1, 2),
            (4, 3, 3),
            (5, 2, 4),
            (3, 3, 3),
        ] {
            let mut found = Vec::new();
            ends(&subset(num_values, min_items, max_items), &[], &mut found);
            let mut distinct = found.clone();
            distinct.sort();
            distinct.dedup();
            assert_eq!(distinct.len(), found.len());
            let allowed = (0u32..1 << num_values).filter(|set| {
                let size = set.count_ones() as usize;
                (min_items..=max_items).contains(&size)
            });
            assert_eq!(
                found.len(),
                allowed.count(),
                "{num_values} {min_items} {max_items}"
            );
        }
    }
}
