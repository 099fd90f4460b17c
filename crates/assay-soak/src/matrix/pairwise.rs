//! Few cells that hold every pair of levels of any two factors: faults of one factor, and of two together, show in
//! one of them.

use std::collections::BTreeSet;

/// A pair of levels: two factors, ascending, and a level of each.
type Pair = ((usize, usize), (usize, usize));

/// Levels of cells such that any two levels of any two factors stand together in one; `sizes` are the numbers of
/// levels, each above 0. Greedy and the same every time.
pub fn covering_set<const N: usize>(sizes: [usize; N]) -> Vec<[usize; N]> {
    let mut uncovered: BTreeSet<Pair> = pairs_of_factors::<N>()
        .flat_map(|(a, b)| {
            let levels = (0..sizes[a]).flat_map(move |i| (0..sizes[b]).map(move |j| (i, j)));
            levels.map(move |(i, j)| ((a, i), (b, j)))
        })
        .collect();
    let mut cells = Vec::new();
    while let Some(&((a, i), (b, j))) = uncovered.first() {
        let mut chosen = [None; N];
        chosen[a] = Some(i);
        chosen[b] = Some(j);
        for factor in 0..N {
            if chosen[factor].is_some() {
                continue;
            }
            let gain = |level: usize| {
                let with_it = |&other: &usize| {
                    chosen[other].is_some_and(|other_level| {
                        uncovered.contains(&ordered((factor, level), (other, other_level)))
                    })
                };
                (0..N).filter(with_it).count()
            };
            // Of equals the one that comes round: else all but the large factors would stay at their first.
            let start = cells.len();
            let levels = (0..sizes[factor]).map(|offset| (start + offset) % sizes[factor]);
            let best = levels.rev().max_by_key(|&level| gain(level));
            chosen[factor] = best;
        }
        let cell = chosen.map(|level| level.unwrap_or(0));
        for (a, b) in pairs_of_factors::<N>() {
            uncovered.remove(&((a, cell[a]), (b, cell[b])));
        }
        cells.push(cell);
    }
    cells
}

fn pairs_of_factors<const N: usize>() -> impl Iterator<Item = (usize, usize)> {
    (0..N).flat_map(|a| (a + 1..N).map(move |b| (a, b)))
}

fn ordered(a: (usize, usize), b: (usize, usize)) -> Pair {
    if a.0 < b.0 { (a, b) } else { (b, a) }
}

#[cfg(test)]
mod tests {
    use super::covering_set;

    #[test]
    fn every_pair_of_levels_stands_in_a_cell_and_the_cells_are_few() {
        let sizes = [5, 11, 4, 3, 2, 2];
        let cells = covering_set(sizes);
        for a in 0..sizes.len() {
            for b in a + 1..sizes.len() {
                for (i, j) in (0..sizes[a]).flat_map(|i| (0..sizes[b]).map(move |j| (i, j))) {
                    assert!(
                        cells.iter().any(|cell| cell[a] == i && cell[b] == j),
                        "level {i} of factor {a} with level {j} of factor {b}"
                    );
                }
            }
        }
        // No fewer than the two largest factors make, and not many more.
        assert!((55..=66).contains(&cells.len()), "{} cells", cells.len());
        assert_eq!(cells, covering_set(sizes));
    }
}
