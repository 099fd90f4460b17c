//! Damage to a good file: cut at every byte, bits flipped, numbers replaced by extreme ones.

use std::fs;
use std::path::Path;

use assay_formats::DType;
use assay_formats::gguf::Gguf;
use assay_testkit::gguf_value::{Array, Value};
use assay_testkit::gguf_walk::read_everything;
use assay_testkit::gguf_writer::GgufWriter;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::raw::Raw;
use crate::{allocation, refusal};

/// A small file with every value type, a vocabulary, and tensors of several types and ranks.
fn good_file() -> Vec<u8> {
    let vocabulary = (0..40).map(|i| format!("token{i}"));
    GgufWriter::new()
        .str("general.architecture", "llama")
        .alignment(32)
        .kv("t.u8", Value::U8(1))
        .kv("t.i8", Value::I8(-1))
        .kv("t.u16", Value::U16(2))
        .kv("t.i16", Value::I16(-2))
        .i32("t.i32", -4)
        .f32("t.f32", 1e-5)
        .bool("t.bool", true)
        .u64("t.u64", 8)
        .kv("t.i64", Value::I64(-8))
        .kv("t.f64", Value::F64(0.5))
        .str_array("tokenizer.ggml.tokens", vocabulary)
        .f32_array("tokenizer.ggml.scores", &[0.25; 40])
        .i32_array("tokenizer.ggml.token_type", &[1; 40])
        .kv("a.bool", Value::Array(Array::Bool(vec![true, false])))
        .kv("a.u64", Value::Array(Array::U64(vec![1, 2])))
        .tensor_f32("output_norm.weight", &[8], &[1.0; 8])
        .tensor("blk.0.attn_q.weight", DType::Q4K, &[256, 2], &[0x11; 288])
        .tensor("blk.0.ffn_up.weight", DType::Q8_0, &[32, 1, 2], &[0x22; 68])
        .tensor(
            "blk.0.ffn_gate_exps.weight",
            DType::F16,
            &[4, 2, 2, 1],
            &[0x3c; 32],
        )
        .build()
}

/// Parses; whatever comes out must be an error with text or a header that keeps its promises.
fn check_survives(name: &str, bytes: &[u8]) {
    match allocation::parse_bounded(name, bytes) {
        Ok(gguf) => read_everything(&gguf),
        Err(error) => assert!(!error.to_string().is_empty(), "{name}: {error:?}"),
    }
}

#[test]
fn the_undamaged_file_is_accepted() {
    let bytes = good_file();
    let gguf = Gguf::parse(&bytes[..]).expect("a good file");
    assert_eq!((gguf.metadata().len(), gguf.tensors().len()), (17, 4));
    check_survives("undamaged", &bytes);
}

#[test]
fn a_file_cut_at_any_byte_is_refused_with_the_place() {
    let bytes = good_file();
    let gguf = Gguf::parse(&bytes[..]).expect("a good file");
    let data_end = gguf
        .tensors()
        .iter()
        .map(|tensor| tensor.byte_offset + tensor.byte_len)
        .max();
    let data_end = data_end.expect("it has tensors") as usize;
    for len in 0..data_end {
        let name = format!("cut at {len}");
        let text = refusal(&name, &bytes[..len]);
        assert!(
            text.contains(" at byte ") || text.contains("not a GGUF file"),
            "{name}: {text}"
        );
    }
    for len in data_end..=bytes.len() {
        assert!(
            Gguf::parse(&bytes[..len]).is_ok(),
            "only padding is missing at {len}"
        );
    }
}

#[test]
fn bytes_after_the_last_tensor_are_ignored() {
    let bytes = good_file();
    let padded = [bytes.as_slice(), &[0xa5; 1001]].concat();
    let (gguf, padded) = (Gguf::parse(bytes), Gguf::parse(padded));
    let (gguf, padded) = (gguf.expect("a good file"), padded.expect("padding is fine"));
    assert!(padded.tensors().iter().eq(gguf.tensors().iter()));
}

/// Files made to cost the most memory per byte: nothing but the smallest entries, tensors or strings.
#[test]
fn the_densest_files_stay_within_the_bound() {
    const COUNT: u32 = 20_000;
    let entries = (0..COUNT).fold(Raw::header(0, COUNT.into()), |raw, i| {
        raw.str(&format!("{i:x}")).u32(7).raw(&[1])
    });
    let tensors = (0..COUNT).fold(Raw::header(COUNT.into(), 0), |raw, i| {
        raw.tensor(&format!("{i:x}"), &[1])
            .data(24, u64::from(i) * 32)
    });
    let strings = Raw::array("k", 8, COUNT.into()).raw(&[0; 8 * COUNT as usize]);
    let bools = Raw::array("k", 7, COUNT.into()).raw(&[1; COUNT as usize]);
    let files = [
        ("entries", entries),
        ("tensors", tensors.section(32 * COUNT as usize)),
        ("empty strings", strings),
        ("bools", bools),
    ];
    for (name, file) in files {
        check_survives(name, &file.bytes);
        Gguf::parse(&file.bytes[..]).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

const EXTREMES: [u64; 12] = [
    0,
    1,
    5,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 40,
    1 << 60,
    1 << 61,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

#[test]
fn an_extreme_number_at_any_byte_is_survived() {
    let bytes = good_file();
    for at in 0..bytes.len() - 8 {
        for extreme in EXTREMES {
            for width in [1, 4, 8] {
                let mut damaged = bytes.clone();
                damaged[at..at + width].copy_from_slice(&extreme.to_le_bytes()[..width]);
                check_survives(&format!("{extreme:#x} of {width} bytes at {at}"), &damaged);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bits_are_survived(flips in prop::collection::vec((any::<Index>(), 0..8_u8), 1..16)) {
        let mut bytes = good_file();
        for (at, bit) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        check_survives("flipped bits", &bytes);
    }

    #[test]
    fn spliced_files_are_survived(from in any::<Index>(), to in any::<Index>(), len in 1..200_usize, cut in any::<Index>()) {
        let mut bytes = good_file();
        let from = from.index(bytes.len());
        let piece = bytes[from..bytes.len().min(from + len)].to_vec();
        let to = to.index(bytes.len());
        bytes.splice(to..to, piece);
        bytes.truncate(cut.index(bytes.len()) + 1);
        check_survives("spliced", &bytes);
    }

    #[test]
    fn noise_after_the_version_is_survived(noise in prop::collection::vec(any::<u8>(), 0..300), entries in 0..4_u8) {
        let mut bytes = b"GGUF\x03\0\0\0\x01\0\0\0\0\0\0\0".to_vec();
        bytes.extend_from_slice(&u64::from(entries).to_le_bytes());
        bytes.extend_from_slice(&noise);
        check_survives("noise", &bytes);
    }
}

#[test]
fn the_fuzzer_s_committed_files_are_survived() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/gguf");
    let mut num_files = 0;
    for entry in fs::read_dir(folder).expect("the committed corpus") {
        let path = entry.expect("a readable folder").path();
        check_survives(
            &path.display().to_string(),
            &fs::read(&path).expect("a readable file"),
        );
        num_files += 1;
    }
    assert!(num_files >= 20, "{num_files} files");
}
