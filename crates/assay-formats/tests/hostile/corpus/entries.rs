//! Faults of metadata entries: keys, value types, scalars, strings, arrays, and the alignment entry.

use super::{Case, case};
use crate::raw::Raw;

const KEY: &str = "metadata key \"some.key\" (1 of 1), ";

pub(super) fn cases() -> Vec<Case> {
    let one = || Raw::header(0, 1);
    let entry = |value_type| Raw::entry("some.key", value_type).mark();
    let alignment = |value_type| {
        Raw::header(0, 1)
            .str("general.alignment")
            .mark()
            .u32(value_type)
    };
    let past_end = |name, value_type, have: usize, expected| {
        case(
            name,
            entry(value_type).raw(&vec![0; have]),
            &[KEY, "value at byte", expected],
        )
    };
    vec![
        case(
            "key empty (fault 181)",
            one().mark().u64(0).u32(4).u32(1),
            &["metadata key 1 of 1, key length", "is empty"],
        ),
        case(
            "key length 2^60 (fault 195)",
            one().mark().u64(1 << 60).raw(&[b'k'; 64]),
            &["key length", "above the limit of 65535"],
        ),
        case(
            "key length -1",
            one().mark().u64(u64::MAX).raw(&[b'k'; 64]),
            &["key length", "above the limit"],
        ),
        case(
            "key length 65536",
            one().mark().u64(65_536).raw(&[b'k'; 66_000]),
            &["key length", "65536 is above"],
        ),
        case(
            "key past the end",
            one().u64(65).mark().raw(&[b'k'; 64]),
            &["key 1 of 1, key at", "needs 65 bytes", "has 64 left"],
        ),
        case(
            "key not UTF-8",
            one()
                .u64(12)
                .raw(b"abc")
                .mark()
                .raw(b"\xff\xfedefghij")
                .u64(0),
            &["key at", "not UTF-8 after 3 bytes"],
        ),
        case(
            "no value type",
            one().str("some.keys").mark(),
            &["value type", "needs 4 bytes"],
        ),
        case(
            "value type 13",
            one().str("some.key").mark().u32(13).u64(0),
            &[KEY, "value type 13 does not exist"],
        ),
        case(
            "value type -1",
            one().str("some.key").mark().u32(u32::MAX),
            &[KEY, "value type 4294967295"],
        ),
        past_end("u8 past the end", 0, 0, "needs 1 bytes"),
        past_end("i8 past the end", 1, 0, "needs 1 bytes"),
        past_end(
            "u16 past the end",
            2,
            1,
            "needs 2 bytes, but the file has 1 left",
        ),
        past_end(
            "i16 past the end",
            3,
            1,
            "needs 2 bytes, but the file has 1 left",
        ),
        past_end(
            "u32 past the end",
            4,
            3,
            "needs 4 bytes, but the file has 3 left",
        ),
        past_end(
            "i32 past the end",
            5,
            3,
            "needs 4 bytes, but the file has 3 left",
        ),
        past_end(
            "f32 past the end",
            6,
            3,
            "needs 4 bytes, but the file has 3 left",
        ),
        past_end("bool past the end", 7, 0, "needs 1 bytes"),
        past_end(
            "string length past the end",
            8,
            7,
            "needs 8 bytes, but the file has 7 left",
        ),
        past_end(
            "u64 past the end",
            10,
            7,
            "needs 8 bytes, but the file has 7 left",
        ),
        past_end(
            "i64 past the end",
            11,
            7,
            "needs 8 bytes, but the file has 7 left",
        ),
        past_end(
            "f64 past the end",
            12,
            7,
            "needs 8 bytes, but the file has 7 left",
        ),
        case(
            "bool 2",
            entry(7).raw(&[2]),
            &[KEY, "boolean byte 2 is neither 0 nor 1"],
        ),
        case("bool -1", entry(7).raw(&[255]), &[KEY, "boolean byte 255"]),
        case(
            "string length -1",
            Raw::entry("some.key", 8).u64(u64::MAX).mark().raw(b"abc"),
            &[KEY, "needs 18446744073709551615 bytes"],
        ),
        case(
            "string length 2^40",
            Raw::entry("some.key", 8).u64(1 << 40).mark().raw(b"abc"),
            &[KEY, "needs 1099511627776 bytes"],
        ),
        case(
            "string one past the end",
            Raw::entry("some.key", 8).u64(4).mark().raw(b"abc"),
            &[KEY, "needs 4 bytes, but the file has 3 left"],
        ),
        case(
            "string not UTF-8",
            Raw::entry("some.key", 8)
                .u64(3)
                .raw(b"ab")
                .mark()
                .raw(b"\xc3"),
            &[KEY, "not UTF-8 after 2 bytes"],
        ),
        case(
            "key twice",
            Raw::header(0, 3)
                .str("a.b")
                .u32(7)
                .raw(&[1])
                .str("a.a")
                .u32(7)
                .raw(&[1])
                .mark()
                .str("a.b")
                .u32(7)
                .raw(&[0]),
            &[
                "metadata key \"a.b\" (3 of 3), key",
                "occurs twice (first at byte 24)",
            ],
        ),
        case(
            "hostile key in an error",
            one().str("\u{1b}[31mred\n").u32(4).mark(),
            &["\"\\u{1b}[31mred\\n\""],
        ),
        case(
            "alignment 0 (fault 193)",
            alignment(4).u32(0),
            &[
                "\"general.alignment\" (1 of 1), value",
                "alignment 0 is not a power of two",
            ],
        ),
        case(
            "alignment 3",
            alignment(4).u32(3),
            &["alignment 3 is not a power of two"],
        ),
        case(
            "alignment 24",
            alignment(4).u32(24),
            &["alignment 24 is not a power of two"],
        ),
        case(
            "alignment 128 KiB",
            alignment(4).u32(131_072),
            &["alignment 131072 is not a power of two from 1 to 65536"],
        ),
        case(
            "alignment 2^31",
            alignment(4).u32(1 << 31),
            &["alignment 2147483648"],
        ),
        case(
            "alignment -1",
            alignment(4).u32(u32::MAX),
            &["alignment 4294967295"],
        ),
        case(
            "alignment as i32",
            alignment(5).u32(32),
            &["must have type u32, found i32"],
        ),
        case(
            "alignment as u64 (fault 185)",
            alignment(10).u64(32),
            &["must have type u32, found u64"],
        ),
        case(
            "alignment as string",
            alignment(8).str("32"),
            &["must have type u32, found string"],
        ),
        case(
            "alignment as array",
            alignment(9).u32(4).u64(1).u32(32),
            &["must have type u32, found array of u32"],
        ),
        case(
            "alignment as f32",
            alignment(6).u32(32_f32.to_bits()),
            &["must have type u32, found f32"],
        ),
    ]
}

pub(super) fn array_cases() -> Vec<Case> {
    let len = |element_type, len: u64| {
        let raw = Raw::array("some.key", element_type, len).mark_back(8);
        raw.raw(&[1; 24])
    };
    let huge = |name, element_type, count, expected| {
        case(
            name,
            len(element_type, count),
            &[KEY, "array length", expected],
        )
    };
    let strings = |count| Raw::array("some.key", 8, count).str("abc");
    vec![
        case(
            "array element type 13 (fault 183)",
            Raw::entry("some.key", 9).mark().u32(13).u64(0),
            &[KEY, "array element type", "value type 13"],
        ),
        case(
            "array element type -1",
            Raw::entry("some.key", 9).mark().u32(u32::MAX).u64(0),
            &[KEY, "array element type"],
        ),
        case(
            "array of arrays",
            Raw::entry("some.key", 9).mark().u32(9).u64(1).u32(9).u64(1),
            &[KEY, "arrays of arrays"],
        ),
        case(
            "no array element type",
            Raw::entry("some.key", 9).mark(),
            &[KEY, "array element type", "needs 4 bytes"],
        ),
        case(
            "no array length",
            Raw::entry("some.key", 9).u32(4).mark().u32(0),
            &[KEY, "array length", "needs 8 bytes"],
        ),
        huge(
            "u8 array -1",
            0,
            u64::MAX,
            "count 18446744073709551615 of at least 1 bytes",
        ),
        huge(
            "u8 array one past the end",
            0,
            25,
            "count 25 of at least 1 bytes each does not fit in the 24 bytes",
        ),
        huge("i8 array 2^63", 1, 1 << 63, "of at least 1 bytes"),
        huge("u16 array wraps", 2, 1 << 63, "of at least 2 bytes"),
        huge("i16 array wraps", 3, (1 << 63) + 1, "of at least 2 bytes"),
        huge("u32 array wraps", 4, 1 << 62, "of at least 4 bytes"),
        huge("i32 array wraps", 5, (1 << 62) + 1, "of at least 4 bytes"),
        huge(
            "f32 array one past the end",
            6,
            7,
            "count 7 of at least 4 bytes each does not fit in the 24 bytes",
        ),
        huge("bool array -1", 7, u64::MAX, "of at least 1 bytes"),
        huge("string array -1", 8, u64::MAX, "of at least 8 bytes"),
        huge("string array wraps", 8, 1 << 61, "of at least 8 bytes"),
        huge(
            "string array beyond the file",
            8,
            4,
            "count 4 of at least 8 bytes each does not fit in the 24 bytes",
        ),
        huge("u64 array wraps", 10, 1 << 61, "of at least 8 bytes"),
        huge("i64 array wraps", 11, (1 << 61) + 1, "of at least 8 bytes"),
        huge("f64 array 2^40", 12, 1 << 40, "of at least 8 bytes"),
        case(
            "bool array element 2",
            Raw::array("some.key", 7, 3).raw(&[0, 1]).mark().raw(&[2]),
            &[KEY, "value of element 2", "boolean byte 2"],
        ),
        case(
            "string element length -1",
            strings(2).u64(u64::MAX).mark().raw(b"abc"),
            &[KEY, "string of element 1", "needs 18446744073709551615"],
        ),
        case(
            "string element length wraps",
            strings(2).u64(u64::MAX - 7).mark().raw(b"abc"),
            &[KEY, "string of element 1"],
        ),
        case(
            "string element past the end",
            strings(2).u64(4).mark().raw(b"abc"),
            &[
                KEY,
                "string of element 1",
                "needs 4 bytes, but the file has 3 left",
            ],
        ),
        case(
            "string element length cut",
            strings(2).mark().raw(&[0; 5]),
            &[KEY, "string length of element 1", "has 5 left"],
        ),
        case(
            "string element not UTF-8",
            strings(2).u64(3).raw(b"a").mark().raw(b"\x80b"),
            &[KEY, "string of element 1", "not UTF-8 after 1 bytes"],
        ),
    ]
}
