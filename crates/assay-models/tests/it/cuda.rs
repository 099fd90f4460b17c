//! A CUDA device against the CPU, bit for bit: every architecture and block format, prompts whole and cut at every chunk
//! edge, sequences side by side, copied blocks. Skipped, with the reason, where there is no device.

use std::sync::Arc;

use assay_formats::DType;
use assay_kernels::cuda::Cuda;
use assay_kernels::testing::check_bits_equal;
use assay_models::{
    ForwardModel, KvBlockCopy, LoadOptions, Model, ModelConfig, ModelError, Numerics, Stage,
};
use assay_testkit::tiny_model::TinyModel;

use crate::support::{Chunk, Setup, batch, blocks, chunked_prompt, whole_prompt};

/// The first device, if there is one that can be used.
fn device(test: &str) -> Option<Arc<Cuda>> {
    match Cuda::open(0) {
        Ok(cuda) => Some(cuda),
        Err(error) => {
            eprintln!("{test} is skipped: {error}");
            None
        }
    }
}

fn load(setup: &Setup, cuda: &Arc<Cuda>) -> Model {
    let file = setup.open();
    let config = ModelConfig::from_gguf(&file).unwrap();
    Model::load_on_cuda(&file, config, setup.options(), Arc::clone(cuda))
        .unwrap_or_else(|error| panic!("{error}"))
}

fn prompt(num_tokens: u32) -> Vec<u32> {
    (0..num_tokens).map(|i| (i * 37 + i * i) % 100).collect()
}

fn check_same(what: &str, expected: &[Vec<f32>], found: &[Vec<f32>]) {
    assert_eq!(expected.len(), found.len(), "{what}: rows");
    for (position, (expected, found)) in expected.iter().zip(found).enumerate() {
        check_bits_equal(
            &format!("{what}, row {position}"),
            &[found.len()],
            expected,
            found,
        );
    }
}

#[test]
fn both_architectures_give_the_cpus_bits() {
    let Some(cuda) = device("both_architectures_give_the_cpus_bits") else {
        return;
    };
    for (name, model) in [
        ("llama", TinyModel::llama()),
        ("gemma3", TinyModel::gemma3()),
    ] {
        let setup = Setup::tiny(&model);
        let token_ids = prompt(300);
        let expected = whole_prompt(&mut setup.load(), &token_ids);
        let mut model = load(&setup, &cuda);
        check_same(name, &expected, &whole_prompt(&mut model, &token_ids));
        // Every cut around the edge of the 256-key chunk, and one token at a time.
        for chunk_len in [1, 5, 16, 255, 256, 257] {
            let found = chunked_prompt(&mut model, &token_ids, chunk_len);
            check_same(&format!("{name} by {chunk_len}"), &expected, &found);
        }
    }
}

#[test]
fn every_block_format_gives_the_cpus_bits() {
    let Some(cuda) = device("every_block_format_gives_the_cpus_bits") else {
        return;
    };
    for dtype in [
        DType::Q8_0,
        DType::Q4_0,
        DType::Q4_1,
        DType::Q5_0,
        DType::Q5_1,
        DType::Q2K,
        DType::Q3K,
        DType::Q4K,
        DType::Q5K,
        DType::Q6K,
        DType::IQ4NL,
        DType::IQ4XS,
        DType::MXFP4,
    ] {
        let setup = Setup::tiny(&TinyModel::llama().with_matrices_of(dtype));
        let token_ids = prompt(40);
        let expected = whole_prompt(&mut setup.load(), &token_ids);
        let found = whole_prompt(&mut load(&setup, &cuda), &token_ids);
        check_same(dtype.name(), &expected, &found);
    }
    let setup = Setup::tiny(&TinyModel::llama().dequantized());
    let expected = whole_prompt(&mut setup.load(), &prompt(40));
    let found = whole_prompt(&mut load(&setup, &cuda), &prompt(40));
    check_same("F32", &expected, &found);
}

#[test]
fn neighbours_and_copied_blocks_move_no_bit() {
    let Some(cuda) = device("neighbours_and_copied_blocks_move_no_bit") else {
        return;
    };
    let setup = Setup::tiny(&TinyModel::gemma3());
    let token_ids = prompt(70);
    let expected = whole_prompt(&mut setup.load(), &token_ids);
    let mut model = load(&setup, &cuda);
    let (first, second) = (blocks(0, 70), blocks(20, 70));
    let chunk = |blocks| Chunk {
        token_ids: &token_ids,
        first_position: 0,
        blocks,
    };
    let logits = model
        .forward(&batch(&[chunk(&first), chunk(&second)]))
        .unwrap();
    let rows: Vec<Vec<f32>> = (0..140).map(|row| logits.row(row).to_vec()).collect();
    check_same("beside its twin, first", &expected, &rows[..70]);
    check_same("beside its twin, second", &expected, &rows[70..]);

    // The last token again, over copies of the blocks.
    let copies = blocks(40, 70);
    let last = Chunk {
        token_ids: &token_ids[69..],
        first_position: 69,
        blocks: &copies,
    };
    let mut copied = batch(&[last]);
    let pairs = first.iter().zip(&copies);
    copied.block_copies = pairs.map(|(&from, &to)| KvBlockCopy { from, to }).collect();
    let logits = model.forward(&copied).unwrap();
    check_same("over copies", &expected[69..], &[logits.row(0).to_vec()]);
}

/// Prompts whole and token by token, over every way to cut `model`'s layers between `devices` and the CPU.
fn check_splits(name: &str, model: &TinyModel, devices: &[Arc<Cuda>]) {
    let setup = Setup::tiny(model);
    let token_ids = prompt(70);
    let expected = whole_prompt(&mut setup.load(), &token_ids);
    let file = setup.open();
    let config = ModelConfig::from_gguf(&file).unwrap();
    let num_layers = config.num_hidden_layers;
    for gpu_layers in 0..=num_layers {
        let stages = Stage::split(num_layers, devices, Some(gpu_layers));
        let split = Model::load_staged(&file, config.clone(), setup.options(), &stages);
        let mut split = split.unwrap_or_else(|error| panic!("{name}: {error}"));
        for chunk_len in [70, 1, 16] {
            let found = chunked_prompt(&mut split, &token_ids, chunk_len);
            let what = format!("{name}, {gpu_layers} layers on devices, by {chunk_len}");
            check_same(&what, &expected, &found);
        }
    }
}

#[test]
fn where_layers_are_computed_moves_no_bit() {
    let Some(first) = device("where_layers_are_computed_moves_no_bit") else {
        return;
    };
    // A device may be named twice; where there is a second, it takes part.
    let second = Cuda::open(1).unwrap_or_else(|_| Cuda::open(0).unwrap());
    let devices = [first, second];
    for (name, model) in [
        ("llama", TinyModel::llama()),
        ("gemma3", TinyModel::gemma3()),
    ] {
        check_splits(name, &model, &devices);
        check_splits(name, &model, &devices[..1]);
    }
}

/// Parts of a network on the CPU: the cut itself, without a device.
#[test]
fn parts_of_a_network_give_the_bits_of_the_whole() {
    for model in [TinyModel::llama(), TinyModel::gemma3()] {
        let setup = Setup::tiny(&model);
        let token_ids = prompt(40);
        let expected = whole_prompt(&mut setup.load(), &token_ids);
        let file = setup.open();
        let config = ModelConfig::from_gguf(&file).unwrap();
        for cut in 1..config.num_hidden_layers {
            let stages = [0..cut, cut..config.num_hidden_layers];
            let stages = stages.map(|layers| Stage { layers, cuda: None });
            let split = Model::load_staged(&file, config.clone(), setup.options(), &stages);
            let mut split = split.unwrap_or_else(|error| panic!("{error}"));
            let found = chunked_prompt(&mut split, &token_ids, 7);
            check_same(&format!("cut at {cut}"), &expected, &found);
        }
    }
}

#[test]
fn the_fast_profile_is_refused() {
    let Some(cuda) = device("the_fast_profile_is_refused") else {
        return;
    };
    let setup = Setup::tiny(&TinyModel::llama());
    let options = LoadOptions {
        numerics: Numerics::Fast,
        ..setup.options()
    };
    let file = setup.open();
    let config = ModelConfig::from_gguf(&file).unwrap();
    let refused = Model::load_on_cuda(&file, config, options, cuda);
    assert!(matches!(refused, Err(ModelError::FastOnCuda)));
}
