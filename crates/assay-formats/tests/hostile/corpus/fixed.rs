//! Faults of the fixed header: magic, version, byte order, counts.

use super::{Case, case};
use crate::raw::Raw;

pub(super) fn cases() -> Vec<Case> {
    let gguf = || Raw::of(b"GGUF");
    vec![
        case("empty file", Raw::of(b""), &["not a GGUF file", "[]"]),
        case("one byte", Raw::of(b"G"), &["not a GGUF file", "[47]"]),
        case("three bytes", Raw::of(b"GGU"), &["not a GGUF file"]),
        case(
            "another magic",
            Raw::of(b"PK\x03\x04 and more"),
            &["not a GGUF file", "[50, 4b, 03, 04]"],
        ),
        case(
            "magic reversed",
            Raw::of(b"FUGG").u32(3).u64(0).u64(0),
            &["not a GGUF file"],
        ),
        case(
            "no version",
            gguf().mark(),
            &["version", "needs 4 bytes, but the file has 0 left"],
        ),
        case(
            "version cut",
            gguf().mark().raw(&[3, 0]),
            &["version", "has 2 left"],
        ),
        case(
            "version 0",
            gguf().u32(0).u64(0).u64(0),
            &["version at byte 4", "version 0 is not supported"],
        ),
        case(
            "version 1",
            gguf().u32(1).u64(0).u64(0),
            &["version 1 is not supported", "only version 3"],
        ),
        case(
            "version 2",
            gguf().u32(2).u64(0).u64(0),
            &["version 2 is not supported"],
        ),
        case(
            "version 4",
            gguf().u32(4).u64(0).u64(0),
            &["version 4 is not supported"],
        ),
        case(
            "version huge",
            gguf().u32(u32::MAX).u64(0).u64(0),
            &["version 4294967295 is not supported"],
        ),
        case(
            "big-endian 3 (fault 191)",
            gguf().raw(&3_u32.to_be_bytes()),
            &["version at byte 4", "big-endian (version 3"],
        ),
        case(
            "big-endian 2",
            gguf().raw(&2_u32.to_be_bytes()),
            &["big-endian (version 2"],
        ),
        case(
            "no tensor count",
            gguf().u32(3).mark(),
            &["tensor count", "needs 8 bytes"],
        ),
        case(
            "no metadata count",
            gguf().u32(3).u64(0).mark().raw(&[0; 7]),
            &["metadata count", "has 7 left"],
        ),
        case(
            "tensor count -1",
            gguf().u32(3).mark().u64(u64::MAX).u64(0),
            &["tensor count", "above the limit"],
        ),
        case(
            "tensor count 2^60",
            gguf().u32(3).mark().u64(1 << 60).u64(0),
            &["tensor count", "above the limit"],
        ),
        case(
            "tensor count beyond the file",
            gguf().u32(3).mark().u64(1000).u64(0).raw(&[0; 999]),
            &[
                "tensor count",
                "count 1000 of at least 33 bytes each does not fit in the 999 bytes left",
            ],
        ),
        case(
            "metadata count -1",
            gguf().u32(3).u64(0).mark().u64(u64::MAX),
            &["metadata count", "above the limit"],
        ),
        case(
            "metadata count 2^60 (fault 182)",
            gguf().u32(3).u64(0).mark().u64(1 << 60),
            &["metadata count", "above the limit"],
        ),
        case(
            "metadata count beyond the file",
            gguf().u32(3).u64(0).mark().u64(60_000).raw(&[1; 64]),
            &[
                "metadata count",
                "count 60000 of at least 14 bytes each does not fit in the 64 bytes left",
            ],
        ),
        case(
            "one entry fewer than promised",
            Raw::header(0, 2).str("a").u32(4).u32(1).mark().section(64),
            &["metadata key 2 of 2"],
        ),
        case(
            "one tensor fewer than promised (fault 190)",
            Raw::header(2, 0)
                .tensor("a", &[4])
                .data(0, 0)
                .mark()
                .raw(&[0; 8])
                .section(64),
            &["tensor 2 of 2, name length", "is empty"],
        ),
    ]
}
