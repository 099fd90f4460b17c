//! Quants of few different values: an index of three or four bits per quant in another layout, and
//! the table that turns indices into quants, one byte shuffle per vector.

use super::{BLOCK, QuantLayout, U3, U4};
use assay_formats::quant::{IQ4_VALUES, MXFP4_VALUES};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// The values a format's quants can have.
pub(crate) trait QuantTable: Send + Sync + 'static {
    /// Where the indices lie.
    type Indices: QuantLayout;
    /// What is added to a value to store it unsigned: the least value's size.
    const ZERO_POINT: u8;
    /// The values; those beyond what `Indices` can address are never used.
    const VALUES: [i8; 16];
}

/// Quants `VALUES[i] + ZERO_POINT` of table `T`, stored as `i`.
pub(crate) struct LookUp<T>(std::marker::PhantomData<T>);

macro_rules! tables {
    ($($(#[$doc:meta])* $name:ident: $indices:ident, $zero_point:literal, $values:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name;

        impl QuantTable for $name {
            type Indices = $indices;
            const ZERO_POINT: u8 = $zero_point;
            const VALUES: [i8; 16] = $values;
        }
    )*};
}

tables! {
    /// IQ4_NL, IQ4_XS.
    Iq4: U4, 127, IQ4_VALUES;
    /// MXFP4: twice the E2M1 values.
    Mxfp4: U4, 12, MXFP4_VALUES;
    /// IQ3_XXS: eight sizes of either sign.
    Iq3Xxs: U4, 62, [-62, -52, -44, -36, -28, -20, -12, -4, 4, 12, 20, 28, 36, 44, 52, 62];
    /// IQ3_S: the odd numbers.
    Iq3S: U4, 15, [-15, -13, -11, -9, -7, -5, -3, -1, 1, 3, 5, 7, 9, 11, 13, 15];
    /// IQ2_XXS, IQ2_XS, IQ2_S: three sizes of either sign.
    Iq2: U3, 43, padded([-43, -25, -8, 8, 25, 43]);
    /// IQ1_S, IQ1_M: eight times a ternary digit, shifted up or down by one.
    Iq1: U3, 9, padded([-9, -7, -1, 1, 7, 9]);
}

/// Six values and what is never used.
const fn padded(values: [i8; 6]) -> [i8; 16] {
    let mut table = [0; 16];
    let mut i = 0;
    while i < values.len() {
        table[i] = values[i];
        i += 1;
    }
    table
}

impl<T: QuantTable> LookUp<T> {
    /// The quant of each index.
    const QUANTS: [u8; 16] = {
        let mut quants = [0; 16];
        let mut i = 0;
        while i < 16 {
            quants[i] = T::VALUES[i].cast_unsigned().wrapping_add(T::ZERO_POINT);
            i += 1;
        }
        quants
    };

    /// The first index of each quant; 0 where there is none.
    const INDICES: [u8; 256] = {
        let mut indices = [0; 256];
        let mut i = 16;
        while i > 0 {
            i -= 1;
            indices[Self::QUANTS[i] as usize] = i as u8;
        }
        indices
    };
}

impl<T: QuantTable> QuantLayout for LookUp<T> {
    const SUB_BLOCK_BYTES: usize = T::Indices::SUB_BLOCK_BYTES;

    fn put(sub_block: &mut [u8], row: usize, quants: &[u8; BLOCK]) {
        let indices = quants.map(|quant| Self::INDICES[usize::from(quant)]);
        T::Indices::put(sub_block, row, &indices);
    }

    fn get(sub_block: &[u8], row: usize) -> [u8; BLOCK] {
        T::Indices::get(sub_block, row).map(|index| Self::QUANTS[usize::from(index)])
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn pair512<const I: usize>(sub_block: *const u8) -> [__m512i; 2] {
        // SAFETY: the caller vouches for the CPU and for the bytes of `Indices`; a table is 16 bytes.
        unsafe {
            let table = _mm_loadu_si128(const { &Self::QUANTS }.as_ptr().cast());
            let table = _mm512_broadcast_i32x4(table);
            T::Indices::pair512::<I>(sub_block).map(|index| _mm512_shuffle_epi8(table, index))
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn pair256<const I: usize>(sub_block: *const u8, half: usize) -> [__m256i; 2] {
        // SAFETY: the caller vouches for the CPU and for the bytes of `Indices`; a table is 16 bytes.
        unsafe {
            let table = _mm_loadu_si128(const { &Self::QUANTS }.as_ptr().cast());
            let table = _mm256_broadcastsi128_si256(table);
            let [even, odd] = T::Indices::pair256::<I>(sub_block, half);
            [
                _mm256_shuffle_epi8(table, even),
                _mm256_shuffle_epi8(table, odd),
            ]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every value of a table is stored unsigned and comes back as itself.
    fn check_table<T: QuantTable>(num_values: usize) {
        for &value in &T::VALUES[..num_values] {
            let stored = i16::from(value) + i16::from(T::ZERO_POINT);
            let quant = u8::try_from(stored).expect("the zero point lifts every value");
            let index = LookUp::<T>::INDICES[usize::from(quant)];
            assert_eq!(T::VALUES[usize::from(index)], value);
        }
    }

    #[test]
    fn tables_hold_their_values() {
        check_table::<Iq4>(16);
        check_table::<Mxfp4>(16);
        check_table::<Iq3Xxs>(16);
        check_table::<Iq3S>(16);
        check_table::<Iq2>(6);
        check_table::<Iq1>(6);
    }
}
