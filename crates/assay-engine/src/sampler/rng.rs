//! Philox4x32-10: random numbers by counter, so a draw depends on its key and place alone.
//!
//! Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
//! The key is the request's seed; the counter is (position low, position high, choice, 0), so no
//! draw depends on what else runs, on preemption, or on how many draws came before.

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// Golden ratio and √3 − 1: what the key is bumped by each round.
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const NUM_ROUNDS: usize = 10;

/// The four words at `counter` under `key`.
pub fn philox4x32_10(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for round in 0..NUM_ROUNDS {
        if round > 0 {
            key[0] = key[0].wrapping_add(WEYL[0]);
            key[1] = key[1].wrapping_add(WEYL[1]);
        }
        let (high_0, low_0) = widening_mul(MULTIPLIERS[0], counter[0]);
        let (high_1, low_1) = widening_mul(MULTIPLIERS[1], counter[2]);
        counter = [
            high_1 ^ counter[1] ^ key[0],
            low_1,
            high_0 ^ counter[3] ^ key[1],
            low_0,
        ];
    }
    counter
}

/// Uniform in [0, 1), a multiple of 2^−53: the draw of one token.
///
/// `position` is the drawn token's index in its sequence, prompt included.
pub fn uniform(seed: u64, choice_index: u32, position: u64) -> f64 {
    let [position_low, position_high] = words(position);
    let random = philox4x32_10([position_low, position_high, choice_index, 0], words(seed));
    let bits = (u64::from(random[0]) << 32 | u64::from(random[1])) >> 11;
    // 53 bits are exact in f64, and so is the scaling by a power of two.
    bits as f64 * f64::from_bits(0x3CA0_0000_0000_0000)
}

/// Low and high half.
fn words(value: u64) -> [u32; 2] {
    [(value & 0xFFFF_FFFF) as u32, (value >> 32) as u32]
}

/// High and low half of the product.
fn widening_mul(a: u32, b: u32) -> (u32, u32) {
    let [low, high] = words(u64::from(a) * u64::from(b));
    (high, low)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_philox(counter: [u32; 4], key: [u32; 2], expected: [u32; 4]) {
        let words = philox4x32_10(counter, key);
        assert_eq!(words, expected, "counter {counter:08x?} key {key:08x?}");
    }

    /// The known-answer vectors published with Random123.
    #[test]
    fn known_answers() {
        check_philox(
            [0; 4],
            [0; 2],
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8],
        );
        check_philox(
            [u32::MAX; 4],
            [u32::MAX; 2],
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd],
        );
        check_philox(
            [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
            [0xa409_3822, 0x299f_31d0],
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
        );
    }

    #[test]
    fn uniforms_stay_below_one_and_spread() {
        let num_draws = 10_000;
        let mut sum = 0.0;
        for position in 0..num_draws {
            let u = uniform(7, 3, position);
            assert!((0.0..1.0).contains(&u), "position {position}: {u}");
            sum += u;
        }
        let mean = sum / num_draws as f64;
        // Standard error is 0.0029; the seed is fixed.
        assert!((mean - 0.5).abs() < 0.01, "mean {mean}");
    }

    #[test]
    fn seed_choice_and_position_each_change_the_draw() {
        let base = uniform(1, 0, 5);
        assert_ne!(base.to_bits(), uniform(2, 0, 5).to_bits());
        assert_ne!(base.to_bits(), uniform(1 << 32 | 1, 0, 5).to_bits());
        assert_ne!(base.to_bits(), uniform(1, 1, 5).to_bits());
        assert_ne!(base.to_bits(), uniform(1, 0, 6).to_bits());
        assert_eq!(base.to_bits(), uniform(1, 0, 5).to_bits());
    }
}
