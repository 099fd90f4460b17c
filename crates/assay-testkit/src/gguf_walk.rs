//! Touches everything that an accepted GGUF header promises, so that fuzzing and property tests see a false promise.
//!
//! It asserts what [`Gguf::parse`] guarantees: ranges inside the file, aligned and apart; look-ups that find what
//! iteration shows; typed reads that answer or refuse but never panic.

use assay_formats::gguf::{Gguf, Value};
use assay_formats::quant::{QuantError, dequantize};

/// Reads all metadata in every type and one block of every tensor of `gguf`.
///
/// # Panics
/// When the header promises something that is not so.
pub fn read_everything(gguf: &Gguf<&[u8]>) {
    assert_eq!(gguf.version(), 3, "version");
    assert!(
        gguf.alignment().is_power_of_two(),
        "alignment {}",
        gguf.alignment()
    );
    let entries = gguf.metadata().iter();
    assert_eq!(entries.count(), gguf.metadata().len(), "entries");
    for (key, value) in gguf.metadata().iter() {
        read_value(gguf, key, value);
    }
    let mut ranges = Vec::with_capacity(gguf.tensors().len());
    for tensor in gguf.tensors().iter() {
        let name = tensor.name;
        assert!(
            !name.is_empty() && (1..=4).contains(&tensor.shape.len()),
            "tensor {name:?}"
        );
        assert_eq!(gguf.tensor(name), Some(tensor), "look-up of {name:?}");
        assert_eq!(
            tensor.rows() * tensor.columns(),
            tensor.num_elements(),
            "elements of {name:?}"
        );
        assert_eq!(
            (tensor.byte_offset - gguf.data_offset()) % u64::from(gguf.alignment()),
            0,
            "{name:?}"
        );
        let range = tensor.byte_offset as usize..(tensor.byte_offset + tensor.byte_len) as usize;
        let block = gguf
            .tensor_bytes(&tensor)
            .get(..tensor.dtype.block_bytes())
            .expect("a tensor has at least a block");
        let mut values = vec![0.0; tensor.dtype.block_len()];
        match dequantize(tensor.dtype, block, &mut values) {
            Ok(()) | Err(QuantError::Unsupported { .. }) => {}
            Err(error) => panic!("tensor {name:?}: {error}"),
        }
        ranges.push(range);
    }
    assert_eq!(ranges.len(), gguf.tensors().len(), "tensors");
    ranges.sort_by_key(|range| range.start);
    for pair in ranges.windows(2) {
        assert!(
            pair[0].end <= pair[1].start,
            "tensor data overlaps: {pair:?}"
        );
    }
}

fn read_value(gguf: &Gguf<&[u8]>, key: &str, value: Value<'_>) {
    let metadata = gguf.metadata();
    assert!(!key.is_empty(), "a key is empty");
    let found = metadata.get(key).expect("a listed key is found");
    let same = match (found, value) {
        // A NaN does not equal itself.
        (Value::F32(found), Value::F32(value)) => found.to_bits() == value.to_bits(),
        (Value::F64(found), Value::F64(value)) => found.to_bits() == value.to_bits(),
        (found, value) => found == value,
    };
    assert!(same, "{key:?} occurs once");
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
    if let Value::Array(array) = value {
        let counts = [
            array.strings().map(Iterator::count),
            array.bools().map(Iterator::count),
            array.f32s().map(Iterator::count),
            array.f64s().map(Iterator::count),
            array.integers().map(Iterator::count),
        ];
        let found: Vec<usize> = counts.into_iter().flatten().collect();
        assert_eq!(found, [array.len()], "elements of {key:?}");
    }
}
