//! Top-k and argmax against a full sort, on every instruction set.

use assay_kernels::Isa;
use assay_kernels::testing::SeededGenerator;
use assay_kernels::top_k::{NanInRow, argmax, top_k};

fn check_top_k(what: &str, row: &[f32], k: usize) {
    let mut sorted: Vec<(u32, f32)> = row
        .iter()
        .enumerate()
        .map(|(i, &v)| (i as u32, v))
        .collect();
    // The sort is stable, so equal values keep ascending indices.
    sorted.sort_by(|a, b| b.1.partial_cmp(&a.1).expect("no NaN in these rows"));
    for isa in Isa::available() {
        let at = format!("{what}, {} values, k = {k}, {}", row.len(), isa.name());
        let got = top_k(isa, row, k).expect("no NaN in these rows");
        assert_eq!(got.len(), k.min(row.len()), "{at}: length");
        for (rank, (got, want)) in got.iter().zip(&sorted).enumerate() {
            assert_eq!(
                (got.0, got.1.to_bits()),
                (want.0, want.1.to_bits()),
                "{at}, rank {rank}"
            );
        }
        let best = argmax(isa, row).expect("no NaN in these rows");
        assert_eq!(best, sorted.first().copied(), "{at}: argmax");
    }
}

#[test]
fn equals_a_full_sort() {
    let mut generator = SeededGenerator::new(11);
    for len in [0, 1, 2, 15, 16, 17, 63, 64, 65, 100, 1000, 5003] {
        let random = generator.units(len);
        let ascending: Vec<f32> = (0..len).map(|i| i as f32).collect();
        let descending: Vec<f32> = (0..len).map(|i| -(i as f32)).collect();
        let ties: Vec<f32> = (0..len)
            .map(|_| (generator.next_u32() % 3) as f32)
            .collect();
        let equal = vec![0.25; len];
        let zeros: Vec<f32> = (0..len)
            .map(|i| if i % 3 == 0 { 0.0 } else { -0.0 })
            .collect();
        let masked: Vec<f32> = (0..len)
            .map(|i| {
                if i % 50 == 7 {
                    generator.next_unit()
                } else {
                    f32::NEG_INFINITY
                }
            })
            .collect();
        let infinite: Vec<f32> = (0..len)
            .map(|i| match i % 9 {
                0 => f32::INFINITY,
                1 => f32::NEG_INFINITY,
                2 => f32::MAX,
                _ => f32::from_bits(generator.next_u32() & 0x80FF_FFFF),
            })
            .collect();
        for k in [0, 1, 2, 20, 64, 200, 6000] {
            for (what, row) in [
                ("random", &random),
                ("ascending", &ascending),
                ("descending", &descending),
                ("ties", &ties),
                ("equal", &equal),
                ("zeros of both signs", &zeros),
                ("masked", &masked),
                ("infinite and subnormal", &infinite),
            ] {
                check_top_k(what, row, k);
            }
        }
    }
}

#[test]
fn nan_is_reported_wherever_it_stands() {
    for isa in Isa::available() {
        for len in [1, 17, 64, 1000] {
            for index in [0, len / 2, len - 1] {
                for k in [0, 1, 20] {
                    let mut row: Vec<f32> = (0..len).map(|i| -(i as f32)).collect();
                    row[index] = f32::from_bits(0xFFC0_0001);
                    let at = format!("{} values, k = {k}, {}", len, isa.name());
                    assert_eq!(top_k(isa, &row, k), Err(NanInRow { index }), "{at}");
                    assert_eq!(argmax(isa, &row), Err(NanInRow { index }), "{at}");
                }
            }
        }
    }
}
