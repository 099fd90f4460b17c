//! Scores on a device against the host's ops. Skipped, with the reason, where there is no device.

use std::num::NonZeroUsize;

use super::cuda::{NUM_BEST, RowScores};
use crate::cuda::{Cuda, DeviceBuffer};
use crate::log_softmax::log_sum_exp;
use crate::testing::SeededGenerator;
use crate::top_k::top_k;
use crate::{Compute, Isa, ThreadPool};

/// Rows of one length: ordinary, tied, with what is no number or infinite, all alike.
fn rows_of(len: usize) -> Vec<Vec<f32>> {
    let mut generator = SeededGenerator::new(0x5C0E + len as u64);
    let plain: Vec<f32> = generator.units(len).iter().map(|x| x * 20.0).collect();
    let tied: Vec<f32> = (0..len)
        .map(|_| (generator.next_u32() % 5) as f32 - 2.0)
        .collect();
    let with = |value: f32, at: usize| {
        let mut row = plain.clone();
        row[at % len] = value;
        row
    };
    vec![
        with(f32::NAN, len - 1),
        with(f32::INFINITY, 700),
        with(f32::NEG_INFINITY, 3),
        with(1e-40, 5),
        vec![f32::NEG_INFINITY; len],
        vec![-0.0; len],
        (0..len)
            .map(|i| if i % 2 == 0 { -0.0 } else { 0.0 })
            .collect(),
        tied,
        plain,
    ]
}

#[test]
fn scores_on_a_device_are_the_hosts() {
    let cuda = match Cuda::open(0) {
        Ok(cuda) => cuda,
        Err(error) => {
            eprintln!("scores_on_a_device_are_the_hosts is skipped: {error}");
            return;
        }
    };
    let cx = Compute::new(Isa::detect(), ThreadPool::new(NonZeroUsize::MIN));
    let mut scores = RowScores::default();
    for len in [
        1, 7, 20, 1023, 1024, 1025, 4_097, 49_152, 128_256, 262_144, 400_000,
    ] {
        let rows = rows_of(len);
        let mut logits = DeviceBuffer::default();
        logits.fill(&cuda, &rows.concat());
        scores.score(&cuda, &logits, len);
        let found = scores.read(&cuda).unwrap();
        assert_eq!(found.len(), rows.len());
        for (index, (row, found)) in rows.iter().zip(found).enumerate() {
            let what = format!("row {index} of {len}");
            assert_eq!(found.is_finite, row.iter().all(|x| x.is_finite()), "{what}");
            let bits = |sum: crate::log_softmax::LogSumExp| (sum.max.to_bits(), sum.ln_z.to_bits());
            let expected = log_sum_exp(&cx, row).map(bits);
            assert_eq!(found.normaliser.map(bits), expected, "{what}");
            let Ok(best) = top_k(cx.isa, row, NUM_BEST) else {
                assert!(found.best.is_empty(), "{what}");
                continue;
            };
            let bits = |best: &[(u32, f32)]| -> Vec<(u32, u32)> {
                best.iter().map(|&(id, x)| (id, x.to_bits())).collect()
            };
            if len < 300_000 {
                assert_eq!(bits(&found.best), bits(&best), "{what}");
            } else {
                assert!(found.best.is_empty(), "{what}");
            }
            // Ids come in the order of the whole row, so those that come before one are its place in it.
            let whole = top_k(cx.isa, row, len).unwrap();
            let places: Vec<usize> = [0, len / 3, len - 1].into();
            let ids: Vec<u32> = places.iter().map(|&place| whole[place].0).collect();
            let named = scores.of_ids(&cuda, &logits, len, index, &ids).unwrap();
            for (place, (logit, before)) in places.into_iter().zip(named) {
                assert_eq!(before as usize, place, "{what}");
                assert_eq!(logit.to_bits(), whole[place].1.to_bits(), "{what}");
            }
        }
    }
}
