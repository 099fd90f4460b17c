//! Touches everything that an accepted GGUF header promises, so that fuzzing and property tests see a false promise.
//!
//! It asserts what [`Header::parse`] guarantees: ranges inside the file, aligned and apart; look-ups that find what
//! iteration shows; typed reads that answer or refuse but never panic.

use assay_formats::gguf::{Array, Header, Value};
use assay_formats::quant::{QuantError, dequantize};

/// Reads all metadata in every type and one block of every tensor of `header`, parsed from the file `bytes`.
///
/// # Panics
/// When the header promises something that is not so.
pub fn read_everything(header: &Header, bytes: &[u8]) {
    assert_eq!(header.version, 3, "version");
    assert!(
        header.alignment.is_power_of_two(),
        "alignment {}",
        header.alignment
    );
    for (key, value) in header.metadata.iter() {
        read_value(header, key, value);
    }
    let mut ranges = Vec::with_capacity(header.tensors.len());
    for tensor in &header.tensors {
        let name = &tensor.name;
        assert!(
            !name.is_empty() && (1..=4).contains(&tensor.shape.len()),
            "tensor {name:?}"
        );
        assert_eq!(
            tensor.rows() * tensor.columns(),
            tensor.num_elements(),
            "elements of {name:?}"
        );
        assert_eq!(
            (tensor.byte_offset - header.data_offset) % u64::from(header.alignment),
            0,
            "{name:?}"
        );
        let range = tensor.byte_offset as usize..(tensor.byte_offset + tensor.byte_len) as usize;
        let data = bytes
            .get(range.clone())
            .expect("tensor data lies inside the file");
        let block = data
            .get(..tensor.dtype.block_bytes())
            .expect("a tensor has at least a block");
        let mut values = vec![0.0; tensor.dtype.block_len()];
        match dequantize(tensor.dtype, block, &mut values) {
            Ok(()) | Err(QuantError::Unsupported { .. }) => {}
            Err(error) => panic!("tensor {name:?}: {error}"),
        }
        ranges.push(range);
    }
    ranges.sort_by_key(|range| range.start);
    for pair in ranges.windows(2) {
        assert!(
            pair[0].end <= pair[1].start,
            "tensor data overlaps: {pair:?}"
        );
    }
}

fn read_value(header: &Header, key: &str, value: &Value) {
    let metadata = &header.metadata;
    assert!(!key.is_empty(), "a key is empty");
    let found = metadata.get(key).expect("a listed key is found");
    assert!(std::ptr::eq(found, value), "{key:?} occurs once");
    let answers = [
        metadata.str(key).is_ok(),
        metadata.bool(key).is_ok(),
        metadata.f32(key).is_ok(),
        metadata.u32(key).is_ok() || metadata.i32(key).is_ok() || metadata.u64(key).is_ok(),
        metadata.str_array(key).is_ok(),
        metadata.f32_array(key).is_ok(),
        metadata.bool_array(key).is_ok(),
        metadata.i32_array(key).is_ok()
            || metadata.u32_array(key).is_ok()
            || metadata.byte_array(key).is_ok(),
    ];
    let num_answers = answers.iter().filter(|&&answered| answered).count();
    assert!(
        num_answers <= 1,
        "{key:?} of type {} reads as several types",
        value.type_name()
    );
    if let Value::Array(Array::String(strings)) = value {
        assert_eq!(strings.iter().count(), strings.len(), "strings of {key:?}");
        assert!(
            (0..strings.len()).all(|i| strings.get(i).is_some()),
            "strings of {key:?}"
        );
    }
}
