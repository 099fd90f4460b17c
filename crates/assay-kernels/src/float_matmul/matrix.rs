//! A float matrix as the kernels want it: 16 rows interleaved, in its stored element type.
//!
//! The repack is a pure permutation (rows past the end are zero), so reading a row back gives the file's values.

use crate::numerics::{bf16_to_f32, f16_to_f32};

/// Rows of one group: the lanes of the widest register.
pub(super) const GROUP_ROWS: usize = 16;

/// Element type of a float matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatType {
    /// IEEE binary32.
    F32,
    /// IEEE binary16.
    F16,
    /// bfloat16: the upper half of an f32.
    BF16,
}

impl FloatType {
    /// Bytes of one element.
    pub fn size_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::BF16 => 2,
        }
    }
}

/// Why bytes are no matrix of the shape given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FloatMatrixError {
    /// The byte count is not rows × columns × element size.
    #[error(
        "float matrix of {num_rows} x {num_cols} {float_type:?} does not fit its {num_bytes} bytes"
    )]
    Size {
        /// Element type.
        float_type: FloatType,
        /// N.
        num_rows: usize,
        /// K.
        num_cols: usize,
        /// Bytes given.
        num_bytes: usize,
    },
}

/// A matrix `[N, K]` of floats, repacked for the kernels.
#[derive(Clone, Debug)]
pub struct FloatMatrix {
    num_rows: usize,
    num_cols: usize,
    pub(super) groups: Groups,
}

/// Elements `[num_groups, K, 16]`: element (n, k) stands at `(n / 16, k, n % 16)`.
#[derive(Clone, Debug)]
pub(super) enum Groups {
    F32(Vec<[f32; GROUP_ROWS]>),
    F16(Vec<[u16; GROUP_ROWS]>),
    BF16(Vec<[u16; GROUP_ROWS]>),
}

impl FloatMatrix {
    /// Repacks row-major little-endian bytes, `[num_rows, num_cols]`, as files store them.
    ///
    /// # Errors
    /// [`FloatMatrixError::Size`] if the bytes are more or fewer than the shape needs.
    pub fn from_le_bytes(
        float_type: FloatType,
        num_rows: usize,
        num_cols: usize,
        bytes: &[u8],
    ) -> Result<Self, FloatMatrixError> {
        let expected = num_rows
            .checked_mul(num_cols)
            .and_then(|elements| elements.checked_mul(float_type.size_bytes()));
        if expected != Some(bytes.len()) {
            let num_bytes = bytes.len();
            return Err(FloatMatrixError::Size {
                float_type,
                num_rows,
                num_cols,
                num_bytes,
            });
        }
        let groups = match float_type {
            FloatType::F32 => {
                let elements = bytes.as_chunks::<4>().0;
                Groups::F32(interleave(num_rows, num_cols, |i| {
                    f32::from_le_bytes(elements[i])
                }))
            }
            FloatType::F16 | FloatType::BF16 => {
                let elements = bytes.as_chunks::<2>().0;
                let packed = interleave(num_rows, num_cols, |i| u16::from_le_bytes(elements[i]));
                if float_type == FloatType::F16 {
                    Groups::F16(packed)
                } else {
                    Groups::BF16(packed)
                }
            }
        };
        Ok(Self {
            num_rows,
            num_cols,
            groups,
        })
    }

    /// N: outputs.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// K: inputs.
    pub fn num_cols(&self) -> usize {
        self.num_cols
    }

    /// Element type, as stored.
    pub fn float_type(&self) -> FloatType {
        match &self.groups {
            Groups::F32(_) => FloatType::F32,
            Groups::F16(_) => FloatType::F16,
            Groups::BF16(_) => FloatType::BF16,
        }
    }

    /// The elements as they are kept, `[num_groups, K, 16]`, little-endian.
    pub(crate) fn to_le_bytes(&self) -> Vec<u8> {
        match &self.groups {
            Groups::F32(groups) => groups
                .iter()
                .flatten()
                .flat_map(|x| x.to_le_bytes())
                .collect(),
            Groups::F16(groups) | Groups::BF16(groups) => groups
                .iter()
                .flatten()
                .flat_map(|x| x.to_le_bytes())
                .collect(),
        }
    }

    pub(super) fn num_groups(&self) -> usize {
        self.num_rows.div_ceil(GROUP_ROWS)
    }

    /// Copies row `row` to `out`, `[num_cols]`, exactly: the embedding lookup of an unquantised model.
    ///
    /// # Panics
    /// If the row is past the matrix or `out` is not `num_cols` long.
    pub fn copy_row(&self, row: usize, out: &mut [f32]) {
        assert!(
            row < self.num_rows,
            "float matrix: row {row} of {}",
            self.num_rows
        );
        assert_eq!(out.len(), self.num_cols, "float matrix: output of one row");
        for (k, out) in out.iter_mut().enumerate() {
            *out = self.get(row, k);
        }
    }

    /// Element (row, k); the row may be padding.
    #[inline]
    pub(super) fn get(&self, row: usize, k: usize) -> f32 {
        let (index, lane) = (row / GROUP_ROWS * self.num_cols + k, row % GROUP_ROWS);
        match &self.groups {
            Groups::F32(groups) => groups[index][lane],
            Groups::F16(groups) => f16_to_f32(groups[index][lane]),
            Groups::BF16(groups) => bf16_to_f32(groups[index][lane]),
        }
    }
}

/// Moves row-major elements to `[num_groups, num_cols, 16]`; padding rows are zero.
fn interleave<E: Copy + Default>(
    num_rows: usize,
    num_cols: usize,
    element: impl Fn(usize) -> E,
) -> Vec<[E; GROUP_ROWS]> {
    let mut groups = vec![[E::default(); GROUP_ROWS]; num_rows.div_ceil(GROUP_ROWS) * num_cols];
    for row in 0..num_rows {
        let group = &mut groups[row / GROUP_ROWS * num_cols..][..num_cols];
        for (k, lanes) in group.iter_mut().enumerate() {
            lanes[row % GROUP_ROWS] = element(row * num_cols + k);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repacking_is_a_permutation() {
        for (num_rows, num_cols) in [(0, 5), (1, 1), (16, 3), (17, 3), (40, 7)] {
            let values: Vec<u16> = (0..num_rows * num_cols)
                .map(|i| 0x3C00 + i as u16)
                .collect();
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            for (float_type, value) in [
                (FloatType::F16, f16_to_f32 as fn(u16) -> f32),
                (FloatType::BF16, bf16_to_f32),
            ] {
                let matrix =
                    FloatMatrix::from_le_bytes(float_type, num_rows, num_cols, &bytes).unwrap();
                assert_eq!(matrix.float_type(), float_type);
                let mut row = vec![0.0; num_cols];
                for n in 0..num_rows {
                    matrix.copy_row(n, &mut row);
                    for (k, &got) in row.iter().enumerate() {
                        assert_eq!(
                            got,
                            value(values[n * num_cols + k]),
                            "{float_type:?} at [{n}, {k}]"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_wrong_size_is_an_error() {
        for (num_rows, num_cols, num_bytes) in
            [(2, 3, 23), (2, 3, 25), (usize::MAX, 2, 8), (1, 1, 0)]
        {
            let error =
                FloatMatrix::from_le_bytes(FloatType::F32, num_rows, num_cols, &vec![0; num_bytes]);
            let float_type = FloatType::F32;
            let expected = FloatMatrixError::Size {
                float_type,
                num_rows,
                num_cols,
                num_bytes,
            };
            assert_eq!(error.expect_err("the size is wrong"), expected);
        }
    }
}
