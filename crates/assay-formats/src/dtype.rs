//! Element types of GGUF tensors: their numbers in the file, names, and block sizes.
//!
//! A type is a *layout*: so many elements stored in so many bytes. What the bytes mean is in [`crate::quant`].
//! Types that ggml keeps only in memory (Q8_1, Q8_K) and types it has withdrawn are absent: a file that names one is refused.

use std::fmt;

macro_rules! dtypes {
    ($($(#[$doc:meta])* $variant:ident = $id:literal, $name:literal, $len:literal, $bytes:expr;)*) => {
        /// A tensor element type, in ggml's numbering.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum DType {
            $($(#[$doc])* $variant,)*
        }

        impl DType {
            /// Every type this version knows, in the order of their numbers.
            pub const ALL: &[DType] = &[$(DType::$variant,)*];

            /// The type with ggml's number `id`, or `None` when this version does not know it.
            #[must_use]
            pub const fn from_ggml(id: u32) -> Option<DType> {
                match id {
                    $($id => Some(DType::$variant),)*
                    _ => None,
                }
            }

            /// The number that stands for this type in a GGUF file.
            #[must_use]
            pub const fn ggml_id(self) -> u32 {
                match self {
                    $(DType::$variant => $id,)*
                }
            }

            /// The name used in file names and by other tools, such as `Q4_K`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(DType::$variant => $name,)*
                }
            }

            /// Elements in one block; 1 for plain numbers.
            #[must_use]
            pub const fn block_len(self) -> usize {
                match self {
                    $(DType::$variant => $len,)*
                }
            }

            /// Bytes of one block.
            #[must_use]
            pub const fn block_bytes(self) -> usize {
                match self {
                    $(DType::$variant => $bytes,)*
                }
            }
        }
    };
}

dtypes! {
    /// IEEE binary32.
    F32 = 0, "F32", 1, 4;
    /// IEEE binary16.
    F16 = 1, "F16", 1, 2;
    /// 4-bit signed, one f16 scale per 32.
    Q4_0 = 2, "Q4_0", 32, 2 + 16;
    /// 4-bit unsigned, f16 scale and minimum per 32.
    Q4_1 = 3, "Q4_1", 32, 2 + 2 + 16;
    /// 5-bit signed, one f16 scale per 32.
    Q5_0 = 6, "Q5_0", 32, 2 + 4 + 16;
    /// 5-bit unsigned, f16 scale and minimum per 32.
    Q5_1 = 7, "Q5_1", 32, 2 + 2 + 4 + 16;
    /// 8-bit signed, one f16 scale per 32.
    Q8_0 = 8, "Q8_0", 32, 2 + 32;
    /// 2-bit unsigned, 4-bit scale and minimum per 16, f16 pair per 256.
    Q2K = 10, "Q2_K", 256, 16 + 64 + 2 + 2;
    /// 3-bit signed, 6-bit scale per 16, f16 per 256.
    Q3K = 11, "Q3_K", 256, 32 + 64 + 12 + 2;
    /// 4-bit unsigned, 6-bit scale and minimum per 32, f16 pair per 256.
    Q4K = 12, "Q4_K", 256, 2 + 2 + 12 + 128;
    /// 5-bit unsigned, 6-bit scale and minimum per 32, f16 pair per 256.
    Q5K = 13, "Q5_K", 256, 2 + 2 + 12 + 32 + 128;
    /// 6-bit signed, 8-bit scale per 16, f16 per 256.
    Q6K = 14, "Q6_K", 256, 128 + 64 + 16 + 2;
    /// 2.06 bits a weight, lattice of 256 points.
    IQ2XXS = 16, "IQ2_XXS", 256, 2 + 64;
    /// 2.31 bits a weight, lattice of 512 points.
    IQ2XS = 17, "IQ2_XS", 256, 2 + 64 + 8;
    /// 3.06 bits a weight, lattice of 256 points.
    IQ3XXS = 18, "IQ3_XXS", 256, 2 + 64 + 32;
    /// 1.56 bits a weight, lattice of 2,048 points.
    IQ1S = 19, "IQ1_S", 256, 2 + 32 + 16;
    /// 4-bit table look-up, one f16 scale per 32.
    IQ4NL = 20, "IQ4_NL", 32, 2 + 16;
    /// 3.44 bits a weight, lattice of 512 points.
    IQ3S = 21, "IQ3_S", 256, 2 + 64 + 32 + 8 + 4;
    /// 2.5 bits a weight, lattice of 1,024 points.
    IQ2S = 22, "IQ2_S", 256, 2 + 64 + 16;
    /// 4-bit table look-up, 6-bit scale per 32, f16 per 256.
    IQ4XS = 23, "IQ4_XS", 256, 2 + 2 + 128 + 4;
    /// Signed byte.
    I8 = 24, "I8", 1, 1;
    /// Signed 16-bit integer.
    I16 = 25, "I16", 1, 2;
    /// Signed 32-bit integer.
    I32 = 26, "I32", 1, 4;
    /// Signed 64-bit integer.
    I64 = 27, "I64", 1, 8;
    /// IEEE binary64.
    F64 = 28, "F64", 1, 8;
    /// 1.75 bits a weight, lattice of 2,048 points.
    IQ1M = 29, "IQ1_M", 256, 32 + 16 + 8;
    /// The upper half of a binary32.
    BF16 = 30, "BF16", 1, 2;
    /// Ternary, five trits a byte, f16 per 256.
    TQ1_0 = 34, "TQ1_0", 256, 2 + 4 * 13;
    /// Ternary, two bits each, f16 per 256.
    TQ2_0 = 35, "TQ2_0", 256, 2 + 64;
    /// OCP microscaling 4-bit float (E2M1), one power-of-two scale per 32.
    MXFP4 = 39, "MXFP4", 32, 1 + 16;
    /// 4-bit float (E2M1), one 8-bit float scale per 16.
    NVFP4 = 40, "NVFP4", 64, 4 + 32;
    /// One bit a weight, f16 per 128.
    Q1_0 = 41, "Q1_0", 128, 2 + 16;
}

impl DType {
    /// Bytes of a row of `k` elements, or `None` when `k` is not a whole number of blocks or the size overflows.
    #[must_use]
    pub const fn row_bytes(self, k: usize) -> Option<usize> {
        if !k.is_multiple_of(self.block_len()) {
            return None;
        }
        (k / self.block_len()).checked_mul(self.block_bytes())
    }
}

/// The name of a type that ggml had or has and that no file may hold, by its number: withdrawn layouts, and those
/// that ggml makes in memory only. For the error that refuses it.
#[must_use]
pub const fn never_stored(id: u32) -> Option<&'static str> {
    Some(match id {
        4 => "Q4_2",
        5 => "Q4_3",
        9 => "Q8_1",
        15 => "Q8_K",
        31 => "Q4_0_4_4",
        32 => "Q4_0_4_8",
        33 => "Q4_0_8_8",
        36 => "IQ4_NL_4_4",
        37 => "IQ4_NL_4_8",
        38 => "IQ4_NL_8_8",
        _ => return None,
    })
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
