//! Every block format through a whole model, against the same model with its weights as F32.
//!
//! The F32 model holds the exact values of the blocks, so what differs is only the rounding of activations to integers;
//! its own arithmetic is judged by `reference_logits`. The bounds are those of the numerics contract's section 6.

use assay_formats::DType;
use assay_kernels::Isa;
use assay_kernels::matmul::supported_types;
use assay_models::Numerics;
use assay_testkit::tiny_model::TinyModel;

use crate::support::{Setup, whole_prompt};

/// How far two runs of one prompt are apart.
#[derive(Default)]
struct Distance {
    /// Mean of KL(f32 ‖ blocks) over positions.
    mean_kl: f64,
    /// Mean change of the log-probability of the token that follows.
    mean_logprob: f64,
    /// Greatest change of the log-odds between the two best tokens.
    max_log_odds: f64,
    /// Positions whose best token changed although the second was more than 0.02 below it.
    moved: usize,
}

/// Tokens of which the other instruction sets repeat the first rows (the scalar path is slow).
const REPEATED: usize = 8;

fn prompt() -> Vec<u32> {
    (0..48).map(|i| (i * i + 7 * i) % 100).collect()
}

/// Natural log-probabilities of a row of logits.
fn logprobs(logits: &[f32]) -> Vec<f64> {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let shifted = logits.iter().map(|&l| f64::from(l) - f64::from(max));
    let log_sum = shifted.clone().map(f64::exp).sum::<f64>().ln();
    shifted.map(|l| l - log_sum).collect()
}

/// The two best ids, best first.
fn top_two(row: &[f64]) -> [usize; 2] {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|&a, &b| row[b].total_cmp(&row[a]).then(a.cmp(&b)));
    [order[0], order[1]]
}

fn distance(token_ids: &[u32], expected: &[Vec<f32>], found: &[Vec<f32>]) -> Distance {
    let mut distance = Distance::default();
    let positions = (token_ids.len() - 1) as f64;
    for (next, (expected, found)) in token_ids[1..].iter().zip(expected.iter().zip(found)) {
        let (expected, found) = (logprobs(expected), logprobs(found));
        let kl = expected.iter().zip(&found).map(|(p, q)| p.exp() * (p - q));
        distance.mean_kl += kl.sum::<f64>() / positions;
        let next = *next as usize;
        distance.mean_logprob += (expected[next] - found[next]).abs() / positions;
        let [best, second] = top_two(&expected);
        let log_odds = |row: &[f64]| row[best] - row[second];
        let change = (log_odds(&expected) - log_odds(&found)).abs();
        distance.max_log_odds = distance.max_log_odds.max(change);
        distance.moved += usize::from(log_odds(&expected) > 0.02 && top_two(&found)[0] != best);
    }
    distance
}

fn check_against_f32(dtype: DType, architecture: &str, model: fn() -> TinyModel) {
    let blocks = model().with_matrices_of(dtype);
    let floats = Setup::tiny(&blocks.clone().dequantized());
    let expected = whole_prompt(&mut floats.load(), &prompt());
    let setup = Setup::tiny(&blocks);
    let found = whole_prompt(&mut setup.load(), &prompt());

    let exact = distance(&prompt(), &expected, &found);
    let fast = Setup {
        numerics: Numerics::Fast,
        ..setup.clone()
    };
    let rows = whole_prompt(&mut fast.load(), &prompt());
    let fast = distance(&prompt(), &expected, &rows);
    let what = format!(
        "{architecture} {dtype}: KL {:.1e} (fast {:.1e}), logprob {:.1e}, log-odds {:.1e}, {} moved",
        exact.mean_kl, fast.mean_kl, exact.mean_logprob, exact.max_log_odds, exact.moved
    );
    println!("{what}");
    assert!(exact.mean_kl <= 5e-6 && fast.mean_kl <= 4e-3, "{what}");
    assert!(exact.mean_logprob <= 0.003, "{what}");
    assert!(exact.max_log_odds <= 0.02 && exact.moved == 0, "{what}");

    for isa in Isa::available() {
        let setup = Setup {
            isa,
            num_threads: 1,
            ..setup.clone()
        };
        let again = whole_prompt(&mut setup.load(), &prompt()[..REPEATED]);
        assert!(
            bits(&again).eq(bits(&found[..REPEATED])),
            "{architecture} {dtype} on {}",
            isa.name()
        );
    }
}

fn bits(rows: &[Vec<f32>]) -> impl Iterator<Item = u32> {
    rows.iter().flatten().map(|logit| logit.to_bits())
}

fn is_block_format(dtype: &DType) -> bool {
    dtype.block_len() > 1
}

#[test]
fn every_block_format_runs_a_llama() {
    for dtype in supported_types().filter(is_block_format) {
        check_against_f32(dtype, "llama", TinyModel::llama);
    }
}

#[test]
fn every_block_format_runs_a_gemma3() {
    for dtype in supported_types().filter(is_block_format) {
        check_against_f32(dtype, "gemma3", TinyModel::gemma3);
    }
}

/// The list that the tests above walk is the one that users are told.
#[test]
fn the_formats_are_all_of_gguf() {
    let names: Vec<&str> = supported_types().map(DType::name).collect();
    assert_eq!(
        names,
        [
            "F32", "F16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K",
            "Q6_K", "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS",
            "IQ1_M", "BF16", "MXFP4"
        ]
    );
}
