//! Faults of tensor descriptions and of the data they point at.

use super::{Case, case};
use crate::raw::Raw;

const TENSOR: &str = "tensor \"blk.0.w\" (1 of 1), ";

/// A name long enough that a description which breaks off is not already refused for its count.
const LONG_NAME: &str = "blk.0.ffn_gate_up_exps.weight.merged";
const LONG_TENSOR: &str = "tensor \"blk.0.ffn_gate_up_exps.weight.merged\" (1 of 1), ";

/// The fixed header and metadata count of a file with one tensor.
fn one() -> Raw {
    Raw::header(1, 0)
}

pub(super) fn cases() -> Vec<Case> {
    let named = || one().str("blk.0.w");
    let shaped = |name, shape: &[u64], bad: usize, expected| {
        let raw = one()
            .tensor("blk.0.w", shape)
            .mark_back(8 * (shape.len() - bad));
        case(name, raw.data(0, 0).section(256), &[TENSOR, expected])
    };
    let sized = |name, shape: &[u64], dtype, expected| {
        let raw = one()
            .tensor("blk.0.w", shape)
            .mark_back(8 * shape.len() + 4);
        case(
            name,
            raw.data(dtype, 0).section(256),
            &[TENSOR, "shape at", expected],
        )
    };
    let dims = |name, n: u32, expected| {
        case(
            name,
            named().mark().u32(n).section(256),
            &[TENSOR, "number of dimensions", expected],
        )
    };
    let typed = |name, dtype, expected| {
        let raw = one().tensor("blk.0.w", &[256]).mark();
        case(
            name,
            raw.data(dtype, 0).section(1024),
            &[TENSOR, "type at", expected, env!("CARGO_PKG_VERSION")],
        )
    };
    vec![
        case(
            "tensor name empty",
            one().mark().u64(0).section(64),
            &["tensor 1 of 1, name length", "is empty"],
        ),
        case(
            "tensor name of 65 bytes",
            one().mark().u64(65).section(128),
            &["name length", "65 is above the limit of 64"],
        ),
        case(
            "tensor name length -1",
            one().mark().u64(u64::MAX).section(64),
            &["name length", "above the limit"],
        ),
        case(
            "tensor name past the end",
            one().u64(60).mark().raw(&[b'n'; 59]),
            &["tensor 1 of 1, name at", "needs 60 bytes"],
        ),
        case(
            "tensor name not UTF-8",
            one().u64(2).raw(b"n").mark().raw(b"\xff").section(64),
            &["name at", "not UTF-8 after 1 bytes"],
        ),
        case(
            "no dimension count",
            one().str(LONG_NAME).mark(),
            &["number of dimensions", "needs 4 bytes"],
        ),
        dims("no dimensions", 0, "0 dimensions, expected 1 to 4"),
        dims("five dimensions (fault 187)", 5, "5 dimensions"),
        dims("1000 dimensions (fault 194)", 1000, "1000 dimensions"),
        dims("2^32-1 dimensions", u32::MAX, "4294967295 dimensions"),
        case(
            "dimension past the end",
            one().str(LONG_NAME).u32(2).u64(8).mark().raw(&[0; 7]),
            &[LONG_TENSOR, "dimension 1", "has 7 left"],
        ),
        shaped("first dimension 0", &[0, 4], 0, "dimension 0 at"),
        shaped("last dimension 0", &[4, 1, 1, 0], 3, "dimension 3 at"),
        shaped("dimension -1", &[u64::MAX], 0, "-1 is negative"),
        shaped(
            "dimension -2^63",
            &[4, 1 << 63],
            1,
            "-9223372036854775808 is negative",
        ),
        sized(
            "elements wrap to 0",
            &[1 << 32, 1 << 32],
            0,
            "size of shape [4294967296, 4294967296] overflows",
        ),
        sized(
            "elements wrap to 4",
            &[(1 << 62) + 1, 4],
            24,
            "overflows 64 bits",
        ),
        sized(
            "elements wrap over four",
            &[1 << 16, 1 << 16, 1 << 16, 1 << 16],
            12,
            "overflows 64 bits",
        ),
        sized("bytes wrap to 0", &[1 << 62], 0, "overflows 64 bits"),
        sized("bytes wrap to 8", &[(1 << 61) + 1], 28, "overflows 64 bits"),
        sized(
            "row of 33 in Q4_0",
            &[33, 2],
            2,
            "row of 33 elements is not a whole number of Q4_0 blocks of 32",
        ),
        sized(
            "row of half a block",
            &[16, 2],
            8,
            "row of 16 elements is not a whole number of Q8_0",
        ),
        sized(
            "row of 128 in Q4_K",
            &[128, 8],
            12,
            "not a whole number of Q4_K blocks of 256",
        ),
        sized(
            "row of 48 in NVFP4",
            &[48],
            40,
            "not a whole number of NVFP4 blocks of 64",
        ),
        typed("type 4 (withdrawn)", 4, "type 4 is Q4_2, which assay"),
        typed("type 9 (in memory only)", 9, "type 9 is Q8_1, which assay"),
        typed(
            "type 31 (withdrawn)",
            31,
            "type 31 is Q4_0_4_4, which assay",
        ),
        typed(
            "type 999 (fault 189)",
            999,
            "type 999 is not known to assay",
        ),
        typed("type -1", u32::MAX, "type 4294967295 is not known to assay"),
        case(
            "no type",
            one().tensor(LONG_NAME, &[8]).mark(),
            &[LONG_TENSOR, "type at", "needs 4 bytes"],
        ),
        case(
            "no offset",
            one().tensor(LONG_NAME, &[8]).u32(0).mark().u32(0),
            &[LONG_TENSOR, "offset at", "needs 8 bytes"],
        ),
    ]
}

pub(super) fn data_cases() -> Vec<Case> {
    let offset = |name, offset, data, expected| {
        let raw = one().tensor("blk.0.w", &[16]).u32(0).mark().u64(offset);
        case(name, raw.section(data), &[TENSOR, "offset at", expected])
    };
    let two = |shape: &[u64]| {
        Raw::header(2, 0)
            .tensor("a", shape)
            .data(0, 32)
            .tensor("b", &[8])
            .u32(0)
            .mark()
    };
    let other_alignment = || Raw::header(1, 1).str("general.alignment").u32(4).u32(64);
    vec![
        offset(
            "offset 1",
            1,
            256,
            "1 is not a multiple of the alignment 32",
        ),
        offset(
            "offset 16",
            16,
            256,
            "16 is not a multiple of the alignment 32",
        ),
        offset(
            "offset 2^40 (fault 186)",
            1 << 40,
            256,
            "data at 1099511627776 of 64 bytes after the data start",
        ),
        offset(
            "offset -32 wraps",
            u64::MAX - 31,
            256,
            "data at 18446744073709551584 of 64 bytes",
        ),
        offset("offset at the end", 256, 256, "does not fit"),
        offset("data one byte short", 32, 95, "data at 32 of 64 bytes"),
        offset("no data", 0, 0, "data at 0 of 64 bytes"),
        case(
            "end wraps",
            one()
                .tensor("blk.0.w", &[1 << 61])
                .u32(0)
                .mark()
                .u64(1 << 63)
                .section(256),
            &[
                TENSOR,
                "data at 9223372036854775808 of 9223372036854775808 bytes",
            ],
        ),
        case(
            "terabytes of data",
            one()
                .tensor("blk.0.w", &[4096, 1 << 28])
                .u32(0)
                .mark()
                .u64(0)
                .section(256),
            &[TENSOR, "of 4398046511104 bytes"],
        ),
        case(
            "offset misaligned for the file's alignment",
            other_alignment()
                .tensor("blk.0.w", &[8])
                .u32(0)
                .mark()
                .u64(32)
                .section(256),
            &[TENSOR, "32 is not a multiple of the alignment 64"],
        ),
        case(
            "overlap",
            two(&[16]).u64(64).section(256),
            &[
                "tensor \"b\" (2 of 2), offset",
                "overlaps that of tensor \"a\"",
            ],
        ),
        case(
            "same bytes twice",
            two(&[8]).u64(32).section(256),
            &[
                "tensor \"b\" (2 of 2), offset",
                "overlaps that of tensor \"a\"",
            ],
        ),
        case(
            "tensor twice",
            Raw::header(2, 0)
                .tensor("a", &[8])
                .data(0, 0)
                .mark()
                .tensor("a", &[8])
                .data(0, 32)
                .section(256),
            &[
                "tensor \"a\" (2 of 2), name",
                "occurs twice (first at byte 24)",
            ],
        ),
    ]
}
