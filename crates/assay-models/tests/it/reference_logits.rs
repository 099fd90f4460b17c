//! Tiny random models against logits recorded from another engine in full f32 (`data/oracle`).
//!
//! Weights are F32, so nothing is quantised and what differs is only how two programs round: a wrong rotation,
//! norm, mask, window or gate is off by far more than the bounds.

use std::path::PathBuf;

use crate::support::{Setup, whole_prompt};

/// Largest and mean difference between two floating-point programs on these models.
const MAX_DIFFERENCE: f32 = 2e-3;
const MEAN_DIFFERENCE: f64 = 2e-4;

struct Recorded {
    token_ids: Vec<u32>,
    /// `[token_ids.len(), vocab_size]`.
    rows: Vec<Vec<f32>>,
}

fn data(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/oracle")
        .join(file)
}

fn recorded(name: &str) -> Recorded {
    let bytes = std::fs::read(data(&format!("{name}.logits.bin"))).unwrap();
    let words: Vec<[u8; 4]> = bytes.as_chunks::<4>().0.to_vec();
    let int = |index: usize| u32::from_le_bytes(words[index]);
    let (num_tokens, vocab_size) = (int(0) as usize, int(1) as usize);
    assert_eq!(
        words.len(),
        2 + num_tokens + num_tokens * vocab_size,
        "{name}: size"
    );
    let logits: Vec<f32> = words[2 + num_tokens..]
        .iter()
        .map(|word| f32::from_le_bytes(*word))
        .collect();
    Recorded {
        token_ids: (0..num_tokens).map(|index| int(2 + index)).collect(),
        rows: logits
            .chunks_exact(vocab_size)
            .map(<[f32]>::to_vec)
            .collect(),
    }
}

fn check_against_recorded(name: &str) {
    let recorded = recorded(name);
    let mut model = Setup::new(data(&format!("{name}.gguf"))).load();
    let rows = whole_prompt(&mut model, &recorded.token_ids);

    let (mut worst, mut total, mut count) = ((0.0, 0, 0), 0.0, 0);
    for (position, (found, expected)) in rows.iter().zip(&recorded.rows).enumerate() {
        assert_eq!(
            found.len(),
            expected.len(),
            "{name}: width of row {position}"
        );
        for (id, (found, expected)) in found.iter().zip(expected).enumerate() {
            let difference = (found - expected).abs();
            assert!(
                difference.is_finite(),
                "{name}: row {position}, id {id}: {found}"
            );
            total += f64::from(difference);
            count += 1;
            if difference > worst.0 {
                worst = (difference, position, id);
            }
        }
        let (best, margin) = top_two(expected);
        if margin > MAX_DIFFERENCE {
            assert_eq!(
                top_two(found).0,
                best,
                "{name}: arg-max of row {position}, margin {margin}"
            );
        }
    }
    let mean = total / f64::from(count);
    println!(
        "{name}: max {:.3e} at row {}, id {}; mean {mean:.3e}",
        worst.0, worst.1, worst.2
    );
    assert_eq!(
        count as usize,
        recorded.rows.len() * recorded.rows[0].len(),
        "{name}: values compared"
    );
    assert!(
        worst.0 <= MAX_DIFFERENCE,
        "{name}: {worst:?} (difference, row, id)"
    );
    assert!(mean <= MEAN_DIFFERENCE, "{name}: mean {mean}");
}

/// Index of the largest value and how far the second is below it.
fn top_two(row: &[f32]) -> (usize, f32) {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|&a, &b| row[b].total_cmp(&row[a]).then(a.cmp(&b)));
    (order[0], row[order[0]] - row[order[1]])
}

#[test]
fn llama_with_biases_scales_and_frequency_factors() {
    check_against_recorded("llama-dense");
}

#[test]
fn gemma3_with_a_windowed_and_a_full_layer() {
    check_against_recorded("gemma3-dense");
}
