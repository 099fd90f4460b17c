//! Good files: what the test kit writes is read back whole, through the parser and through the memory map.

use std::io::Write;
use std::path::Path;

use assay_formats::gguf::{Gguf, GgufError};
use assay_formats::{DType, GgufFile};
use assay_testkit::gguf_value::{Array, Value};
use assay_testkit::gguf_writer::GgufWriter;

fn every_scalar() -> Vec<(&'static str, Value)> {
    vec![
        ("t.u8", Value::U8(200)),
        ("t.i8", Value::I8(-100)),
        ("t.u16", Value::U16(60_000)),
        ("t.i16", Value::I16(-30_000)),
        ("t.u32", Value::U32(4_000_000_000)),
        ("t.i32", Value::I32(-2_000_000_000)),
        ("t.f32", Value::F32(1.5)),
        ("t.bool", Value::Bool(true)),
        ("t.string", Value::String("naïve 🦀".to_owned())),
        ("t.u64", Value::U64(u64::MAX)),
        ("t.i64", Value::I64(i64::MIN)),
        ("t.f64", Value::F64(-2.25)),
    ]
}

fn every_array() -> Vec<(&'static str, Value)> {
    vec![
        ("a.u8", Value::Array(Array::U8(vec![1, 255]))),
        ("a.i8", Value::Array(Array::I8(vec![-1, 127]))),
        ("a.u16", Value::Array(Array::U16(vec![1, 65_535]))),
        ("a.i16", Value::Array(Array::I16(vec![-1, 3]))),
        ("a.u32", Value::Array(Array::U32(vec![1, u32::MAX]))),
        ("a.i32", Value::Array(Array::I32(vec![-1, 3]))),
        ("a.f32", Value::Array(Array::F32(vec![-0.0, 3.5]))),
        ("a.bool", Value::Array(Array::Bool(vec![true, false, true]))),
        (
            "a.string",
            Value::Array(Array::String(
                ["", "a", "Ġthe", "日本"].map(str::to_owned).to_vec(),
            )),
        ),
        ("a.u64", Value::Array(Array::U64(vec![1, u64::MAX]))),
        ("a.i64", Value::Array(Array::I64(vec![i64::MIN]))),
        ("a.f64", Value::Array(Array::F64(vec![1e300]))),
        ("a.empty", Value::Array(Array::String(Vec::new()))),
    ]
}

#[test]
fn every_value_type_is_read_back_in_order() {
    let entries: Vec<_> = every_scalar().into_iter().chain(every_array()).collect();
    let writer = entries
        .iter()
        .fold(GgufWriter::new(), |writer, (key, value)| {
            writer.kv(key, value.clone())
        });
    let gguf = Gguf::parse(writer.build()).expect("a good file");
    let metadata = gguf.metadata();
    let read: Vec<_> = metadata
        .iter()
        .map(|(key, value)| (key, Value::from(value)))
        .collect();
    assert_eq!(read, entries);
    for (key, value) in entries {
        let found = metadata.get(key).map(Value::from);
        assert_eq!(found, Some(value), "look-up of {key}");
    }
    assert!(metadata.get("t.u").is_none());
    assert!(metadata.get("").is_none());
}

#[test]
fn tensors_are_read_back_through_the_map() {
    let f32_bytes: Vec<u8> = (0..24_u8).collect();
    let q8_bytes: Vec<u8> = (0..68_u8).collect();
    let bytes = GgufWriter::new()
        .alignment(64)
        .tensor("z.weight", DType::F32, &[3, 2], &f32_bytes)
        .tensor("a.weight", DType::Q8_0, &[32, 1, 2], &q8_bytes)
        .build();
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(&bytes).expect("writing it");
    let gguf = GgufFile::open(file.path()).expect("a good file");
    assert_eq!(gguf.bytes(), bytes);
    assert_eq!(gguf.alignment(), 64);
    let names: Vec<_> = gguf.tensors().iter().map(|tensor| tensor.name).collect();
    assert_eq!(names, ["z.weight", "a.weight"]);
    let z = gguf.tensor("z.weight").expect("z.weight");
    assert_eq!(
        (z.columns(), z.rows(), z.num_elements(), z.dtype),
        (3, 2, 6, DType::F32)
    );
    assert_eq!(gguf.tensor_bytes(&z), f32_bytes);
    let a = gguf.tensor("a.weight").expect("a.weight");
    assert_eq!((a.columns(), a.rows(), a.dtype), (32, 2, DType::Q8_0));
    assert_eq!(gguf.tensor_bytes(&a), q8_bytes);
    assert_eq!(a.byte_offset % 64, 0);
    assert!(gguf.tensor("b.weight").is_none());
}

#[test]
fn what_is_not_a_regular_file_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // A device stands for the pipes on which opening would wait for ever.
    let device = Path::new("/dev/null").to_owned();
    for path in [
        folder.path().join("missing.gguf"),
        folder.path().to_owned(),
        device,
    ] {
        let error = GgufFile::open(&path).expect_err("not a file");
        assert!(matches!(error, GgufError::Open { .. }), "{error}");
        assert!(
            error.to_string().contains(&path.display().to_string()),
            "{error}"
        );
    }
}

#[test]
fn an_empty_file_is_refused_as_not_gguf() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let error = GgufFile::open(file.path()).expect_err("empty");
    assert!(matches!(error, GgufError::NotGguf { .. }), "{error}");
}

#[test]
fn a_file_without_tensors_or_metadata_is_legal() {
    let gguf = Gguf::parse(GgufWriter::new().build()).expect("an empty model");
    assert!(gguf.metadata().is_empty() && gguf.tensors().is_empty());
    // Vocabulary-only files may end right after the header, before the alignment is reached.
    let vocabulary = GgufWriter::new()
        .str_array("tokenizer.ggml.tokens", ["a"])
        .build();
    let header_end = 24 + 8 + 21 + 4 + 4 + 8 + 8 + 1;
    let gguf = Gguf::parse(&vocabulary[..header_end]).expect("no padding");
    assert_eq!(gguf.data_offset(), 96);
}
