//! What holds without a device: the committed machine code is that of the sources, and a missing driver is an error.

use std::path::{Path, PathBuf};

use super::{Cuda, CudaError};
use crate::numerics;

/// Lines of `kernels.lock`: a hash and a path, relative to `src`; the last is the machine code itself.
const LOCK: &str = include_str!("kernels.lock");

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every `.cu` and `.cuh`, relative to `src`.
fn sources() -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(src()).unwrap() {
        let folder = entry.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path
                .extension()
                .is_some_and(|ext| ext == "cu" || ext == "cuh")
            {
                let relative = path.strip_prefix(src()).unwrap();
                found.push(relative.to_str().unwrap().replace('\\', "/"));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn the_machine_code_is_that_of_the_sources() {
    let mut expected: Vec<String> = LOCK.lines().map(str::to_owned).collect();
    expected.retain(|line| !line.starts_with('#'));
    let mut files = sources();
    files.push("cuda/kernels.fatbin".into());
    let found: Vec<String> = files
        .iter()
        .map(|file| {
            let hash = blake3::hash(&std::fs::read(src().join(file)).unwrap());
            format!("{} {file}", hash.to_hex())
        })
        .collect();
    assert_eq!(
        found, expected,
        "run `cargo xtask cuda` and commit both files"
    );
}

#[test]
fn a_machine_without_a_driver_says_so() {
    match Cuda::open(0) {
        Err(CudaError::NoDriver) => {
            let message = CudaError::NoDriver.to_string();
            assert!(message.contains("--device cpu"), "{message}");
        }
        Err(CudaError::NoDevice { count: 0, .. }) | Ok(_) => {}
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_device_that_is_not_there_is_an_error() {
    assert!(Cuda::open(usize::MAX).is_err());
}

/// Every constant of the device's header is that of `numerics.rs`.
#[test]
fn constants_are_those_of_the_contract() {
    let header = include_str!("numerics.cuh");
    let mut f32s = vec![
        numerics::F32_ROUND_MAGIC,
        numerics::F32_LOG2_E,
        numerics::F32_LN2_HI,
        numerics::F32_LN2_LO,
    ];
    f32s.extend(numerics::EXP_P);
    for constant in f32s {
        let text = format!("f32(0x{:08X})", constant.to_bits());
        assert!(header.contains(&text), "numerics.cuh lacks {text}");
    }
    let mut f64s = vec![
        numerics::F64_ROUND_MAGIC,
        numerics::F64_LOG2_E,
        numerics::F64_LN2_HI,
        numerics::F64_LN2_LO,
        numerics::EXP64_LN2_HI,
        numerics::EXP64_LN2_LO,
        numerics::F64_SQRT_HALF,
    ];
    f64s.extend(numerics::F64_EXP_TAYLOR);
    f64s.extend(numerics::F64_ATANH_SERIES);
    for constant in f64s {
        let text = format!("0x{:016X}ull", constant.to_bits());
        assert!(header.contains(&text), "numerics.cuh lacks {text}");
    }
    let gelu = include_str!("../gelu_mul/gelu_mul.cu");
    for constant in [numerics::GELU_SLOPE, numerics::GELU_CUBIC] {
        let text = format!("f32(0x{:08X})", constant.to_bits());
        assert!(gelu.contains(&text), "gelu_mul.cu lacks {text}");
    }
}
