//! Points of the IQ lattices as whole numbers, and their signs.

/// Element values of the IQ2 lattices.
const IQ2_VALUES: [i8; 3] = [8, 25, 43];
/// Element values of the IQ1 lattice, times eight.
const IQ1_VALUES: [i8; 3] = [-8, 0, 8];

/// The eight positive elements of an IQ2 point.
pub(super) fn iq2_octet(point: u16) -> [i8; 8] {
    std::array::from_fn(|k| IQ2_VALUES[usize::from(point >> (2 * k) & 3)])
}

/// Eight times the eight elements of an IQ1 point.
pub(super) fn iq1_octet(point: u16) -> [i8; 8] {
    std::array::from_fn(|k| IQ1_VALUES[usize::from(point >> (2 * k) & 3)])
}

/// The eight positive elements of two IQ3 points.
pub(super) fn iq3_octet(points: [u16; 2], values: &[i8; 8]) -> [i8; 8] {
    std::array::from_fn(|k| values[usize::from(points[k / 4] >> (4 * (k % 4)) & 7)])
}

/// Negates element k where bit k is set.
pub(super) fn with_signs(mut octet: [i8; 8], signs: u8) -> [i8; 8] {
    for (k, value) in octet.iter_mut().enumerate() {
        if signs >> k & 1 == 1 {
            *value = -*value;
        }
    }
    octet
}

/// The signs that seven stored bits stand for: their number is always even, so the eighth follows.
pub(super) fn even_signs(seven: u32) -> u8 {
    let seven = (seven & 127) as u8;
    seven | (seven.count_ones() as u8 & 1) << 7
}

/// Scale of sub-block `j` out of nibbles, low ones first: always odd, 1 to 31.
pub(super) fn odd_scale(scales: &[u8], j: usize) -> i8 {
    2 * nibble(scales[j / 2], j % 2 == 1).cast_signed() + 1
}

/// Half `upper` of a byte of two nibbles.
pub(super) fn nibble(byte: u8, upper: bool) -> u8 {
    if upper { byte >> 4 } else { byte & 15 }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::quant::grids;

    /// Every point reads without a hole in the value table, and no two are the same.
    fn check_grid<const N: usize>(points: &[u16; N], read: impl Fn(u16) -> [i8; 8]) {
        let octets: BTreeSet<[i8; 8]> = points.iter().map(|&point| read(point)).collect();
        assert_eq!(octets.len(), N);
    }

    #[test]
    fn every_point_is_read_and_distinct() {
        check_grid(&grids::IQ2_XXS, iq2_octet);
        check_grid(&grids::IQ2_XS, iq2_octet);
        check_grid(&grids::IQ2_S, iq2_octet);
        check_grid(&grids::IQ1, iq1_octet);
        let values = [1, 2, 3, 4, 5, 6, 7, 8];
        check_grid(&grids::IQ3_XXS, |point| iq3_octet([point; 2], &values));
        check_grid(&grids::IQ3_S, |point| iq3_octet([point; 2], &values));
    }

    #[test]
    fn the_eighth_sign_makes_their_number_even() {
        for seven in 0..128 {
            let signs = even_signs(seven);
            assert_eq!(u32::from(signs & 127), seven);
            assert!(signs.count_ones().is_multiple_of(2));
        }
    }
}
