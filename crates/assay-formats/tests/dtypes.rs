//! Type numbers, names and block sizes equal those of the PyPI package `gguf` (recorded by `tools/record_dequant.py`).

use assay_formats::DType;
use assay_formats::dtype::never_stored;

/// In the package's table but never in model files: ggml keeps them in memory only.
const NEVER_STORED: [&str; 2] = ["Q8_1", "Q8_K"];

#[test]
fn the_table_equals_the_recorded_one() {
    let mut num_known = 0;
    for line in include_str!("data/types.txt").lines() {
        let [id, name, block_len, block_bytes]: [&str; 4] = line
            .split(' ')
            .collect::<Vec<_>>()
            .try_into()
            .expect("four fields");
        let number = |text: &str| text.parse::<usize>().expect("a number");
        let dtype = DType::from_ggml(number(id) as u32);
        if NEVER_STORED.contains(&name) {
            assert_eq!(dtype, None, "{name}");
            assert_eq!(never_stored(number(id) as u32), Some(name));
            continue;
        }
        let dtype = dtype.unwrap_or_else(|| panic!("type {id} ({name}) is unknown"));
        assert_eq!(
            (
                dtype.name(),
                dtype.block_len(),
                dtype.block_bytes(),
                dtype.ggml_id() as usize
            ),
            (name, number(block_len), number(block_bytes), number(id)),
            "{line}"
        );
        num_known += 1;
    }
    assert_eq!(
        num_known,
        DType::ALL.len(),
        "types outside the recorded table"
    );
}

/// A number is a type of files, or was, or means nothing.
#[test]
fn no_type_is_both_stored_and_never_stored() {
    for id in 0..64 {
        assert!(
            DType::from_ggml(id).is_none() || never_stored(id).is_none(),
            "type {id}"
        );
    }
}

#[test]
fn row_bytes_are_whole_blocks_or_nothing() {
    for &dtype in DType::ALL {
        let (len, bytes) = (dtype.block_len(), dtype.block_bytes());
        assert_eq!(dtype.row_bytes(0), Some(0), "{dtype}");
        assert_eq!(dtype.row_bytes(3 * len), Some(3 * bytes), "{dtype}");
        if len > 1 {
            assert_eq!(dtype.row_bytes(len + 1), None, "{dtype}");
            assert_eq!(dtype.row_bytes(len / 2), None, "{dtype}");
        }
    }
    assert_eq!(DType::F32.row_bytes(usize::MAX / 4 + 1), None, "wraps to 0");
    assert_eq!(DType::F64.row_bytes(usize::MAX), None, "wraps");
}
