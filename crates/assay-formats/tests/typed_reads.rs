//! Typed metadata reads: absent is `None`, another type or a number that does not fit is an error with key and place.

use assay_formats::gguf::{Gguf, GgufError, Metadata};
use assay_testkit::gguf_value::{Array, Value};
use assay_testkit::gguf_writer::GgufWriter;

/// Where the value (its type number) of a lone entry with a three-byte key stands.
const VALUE_OFFSET: u64 = 4 + 4 + 8 + 8 + 8 + 3;

fn file(value: Value) -> Gguf<Vec<u8>> {
    Gguf::parse(GgufWriter::new().kv("a.k", value).build()).expect("a good file")
}

type Read = fn(Metadata<'_>) -> Result<String, GgufError>;

/// An array's elements as text, or that there is none.
fn listed<T: std::fmt::Debug>(elements: Option<impl ExactSizeIterator<Item = T>>) -> String {
    let elements = elements.map(|elements| {
        let len = elements.len();
        let elements: Vec<T> = elements.collect();
        assert_eq!(elements.len(), len, "the length is known beforehand");
        elements
    });
    format!("{elements:?}")
}

/// Every typed read, its result as text.
const READS: [(&str, Read); 12] = [
    ("str", |m| m.str("a.k").map(|v| format!("{v:?}"))),
    ("bool", |m| m.bool("a.k").map(|v| format!("{v:?}"))),
    ("u32", |m| m.u32("a.k").map(|v| format!("{v:?}"))),
    ("u64", |m| m.u64("a.k").map(|v| format!("{v:?}"))),
    ("i32", |m| m.i32("a.k").map(|v| format!("{v:?}"))),
    ("f32", |m| m.f32("a.k").map(|v| format!("{v:?}"))),
    ("str_array", |m| m.str_array("a.k").map(listed)),
    ("f32_array", |m| m.f32_array("a.k").map(listed)),
    ("bool_array", |m| m.bool_array("a.k").map(listed)),
    ("byte_array", |m| {
        m.byte_array("a.k").map(|v| format!("{v:?}"))
    }),
    ("i32_array", |m| m.i32_array("a.k").map(listed)),
    ("u32_array", |m| m.u32_array("a.k").map(listed)),
];

/// Checks all reads of a value: those listed answer with this text, the others name key, place and found type.
fn check_reads(value: Value, answers: &[(&str, &str)]) {
    let gguf = file(value.clone());
    let type_name = gguf.metadata().get("a.k").expect("the key").type_name();
    for (name, read) in READS {
        let expected = answers
            .iter()
            .find(|(answering, _)| *answering == name)
            .map(|(_, text)| *text);
        match (read(gguf.metadata()), expected) {
            (Ok(text), Some(expected)) => assert_eq!(text, expected, "{name} of {value:?}"),
            (
                Err(GgufError::WrongType {
                    key, offset, found, ..
                }),
                None,
            ) => {
                assert_eq!(
                    (key.as_str(), offset),
                    ("a.k", VALUE_OFFSET),
                    "{name} of {value:?}"
                );
                assert_eq!(found, type_name, "{name} of {value:?}");
            }
            (result, expected) => panic!("{name} of {value:?}: {result:?}, expected {expected:?}"),
        }
    }
}

fn check_out_of_range(read: Read, value: Value, words: &str) {
    let error = read(file(value.clone()).metadata()).expect_err("out of range");
    assert!(
        matches!(error, GgufError::OutOfRange { .. }),
        "{value:?}: {error:?}"
    );
    let text = error.to_string();
    let expected = format!("metadata key \"a.k\" at byte {VALUE_OFFSET}: {words}");
    assert_eq!(text, expected, "{value:?}");
}

#[test]
fn an_absent_key_is_none_for_every_read() {
    let bytes = GgufWriter::new().u32("a.other", 1).build();
    let gguf = Gguf::parse(bytes).expect("a good file");
    for (name, read) in READS {
        assert_eq!(
            read(gguf.metadata()).expect("absent is no error"),
            "None",
            "{name}"
        );
    }
}

#[test]
fn scalars_answer_their_own_type_only() {
    let integer = |text| [("u32", text), ("u64", text), ("i32", text)];
    check_reads(Value::U8(7), &integer("Some(7)"));
    check_reads(Value::I8(7), &integer("Some(7)"));
    check_reads(Value::U16(7), &integer("Some(7)"));
    check_reads(Value::I16(7), &integer("Some(7)"));
    check_reads(Value::U32(7), &integer("Some(7)"));
    check_reads(Value::I32(7), &integer("Some(7)"));
    check_reads(Value::U64(7), &integer("Some(7)"));
    check_reads(Value::I64(7), &integer("Some(7)"));
    check_reads(Value::Bool(true), &[("bool", "Some(true)")]);
    check_reads(Value::F32(0.5), &[("f32", "Some(0.5)")]);
    check_reads(Value::F64(0.5), &[]);
    check_reads(Value::String("7".to_owned()), &[("str", "Some(\"7\")")]);
}

#[test]
fn arrays_answer_their_own_type_only() {
    let integers = [("i32_array", "Some([1, 2])"), ("u32_array", "Some([1, 2])")];
    let bytes = [integers[0], integers[1], ("byte_array", "Some([1, 2])")];
    check_reads(Value::Array(Array::U8(vec![1, 2])), &bytes);
    check_reads(Value::Array(Array::I8(vec![1, 2])), &bytes);
    check_reads(Value::Array(Array::U16(vec![1, 2])), &integers);
    check_reads(Value::Array(Array::I16(vec![1, 2])), &integers);
    check_reads(Value::Array(Array::U32(vec![1, 2])), &integers);
    check_reads(Value::Array(Array::I32(vec![1, 2])), &integers);
    check_reads(Value::Array(Array::U64(vec![1, 2])), &integers);
    check_reads(Value::Array(Array::I64(vec![1, 2])), &integers);
    check_reads(
        Value::Array(Array::Bool(vec![true])),
        &[("bool_array", "Some([true])")],
    );
    check_reads(
        Value::Array(Array::F32(vec![1.0])),
        &[("f32_array", "Some([1.0])")],
    );
    check_reads(Value::Array(Array::F64(vec![1.0])), &[]);
    let strings = Value::Array(Array::String(["a", "", "é"].map(str::to_owned).to_vec()));
    check_reads(strings, &[("str_array", "Some([\"a\", \"\", \"é\"])")]);
}

#[test]
fn numbers_that_do_not_fit_are_refused() {
    let read = |name: &str| {
        READS
            .iter()
            .find(|(known, _)| *known == name)
            .expect("a known read")
            .1
    };
    check_out_of_range(
        read("u32"),
        Value::I32(-1),
        "-1 is not an integer that fits u32",
    );
    check_out_of_range(
        read("u32"),
        Value::U64(1 << 32),
        "4294967296 is not an integer that fits u32",
    );
    check_out_of_range(
        read("u64"),
        Value::I64(i64::MIN),
        "-9223372036854775808 is not an integer that fits u64",
    );
    check_out_of_range(
        read("i32"),
        Value::U32(1 << 31),
        "2147483648 is not an integer that fits i32",
    );
    check_out_of_range(
        read("i32"),
        Value::U64(u64::MAX),
        "18446744073709551615 is not an integer that fits i32",
    );
    check_out_of_range(read("f32"), Value::F32(f32::NAN), "NaN is not a finite f32");
    check_out_of_range(
        read("f32"),
        Value::F32(f32::NEG_INFINITY),
        "-inf is not a finite f32",
    );
    let array = Value::Array(Array::I64(vec![0, -1]));
    check_out_of_range(
        read("u32_array"),
        array,
        "element 1, -1, is not an integer that fits u32",
    );
    let array = Value::Array(Array::U32(vec![0, 7, u32::MAX]));
    check_out_of_range(
        read("i32_array"),
        array,
        "element 2, 4294967295, is not an integer that fits i32",
    );
}

#[test]
fn integers_of_every_width_keep_their_sign() {
    let i8s = file(Value::Array(Array::I8(vec![-1, 2])));
    assert_eq!(
        i8s.metadata().byte_array("a.k").expect("bytes"),
        Some([255, 2].as_slice())
    );
    let extremes = [
        Array::I8(vec![i8::MIN, -1, i8::MAX]),
        Array::I16(vec![i16::MIN, -1, i16::MAX]),
        Array::I32(vec![i32::MIN, -1, i32::MAX]),
        Array::I64(vec![i64::MIN, -1, i64::MAX]),
        Array::U64(vec![0, 1, u64::MAX]),
    ];
    let expected: [[i128; 3]; 5] = [
        [i8::MIN.into(), -1, i8::MAX.into()],
        [i16::MIN.into(), -1, i16::MAX.into()],
        [i32::MIN.into(), -1, i32::MAX.into()],
        [i64::MIN.into(), -1, i64::MAX.into()],
        [0, 1, u64::MAX.into()],
    ];
    for (array, expected) in extremes.into_iter().zip(expected) {
        let gguf = file(Value::Array(array));
        let Some(assay_formats::gguf::Value::Array(array)) = gguf.metadata().get("a.k") else {
            panic!("the array");
        };
        let integers: Vec<i128> = array.integers().expect("integers").collect();
        assert_eq!(integers, expected);
    }
}
