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

/// Half `upper` of a byte of two nibbles.
pub(super) fn nibble(byte: u8, upper: bool) -> u8 {
    if upper { byte >> 4 } else { byte & 15 }
}
