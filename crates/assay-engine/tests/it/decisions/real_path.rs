//! Decisions on the real code path: small seeded models with real kernels and real KV blocks.

use assay_engine::decision::LabelQuestion;
use assay_engine::{EngineConfig, PrefixCache};
use assay_models::TokenId;
use assay_testkit::tiny_model::{TINY_VOCAB, TinyModel};

use super::support::{Asker, check_forced, decide, decision, without_cached_tokens};
use crate::collect::{Client, spawn};
use crate::real_path::{load, requests, token_bytes};

/// Labels over few tokens behind prompts that end on both sides of block edges and windows.
fn questions() -> Vec<LabelQuestion> {
    [15_u32, 16, 17, 40, 63]
        .into_iter()
        .map(|num_prompt| LabelQuestion {
            prompt_token_ids: (0..num_prompt).map(|i| (i * 13 + 5) % 90).collect(),
            labels: (0..30_u32)
                .map(|label| {
                    let length = 1 + label % 5;
                    (0..length)
                        .map(|i| 40 + (label >> i) % 2)
                        .chain([label])
                        .collect()
                })
                .collect::<std::collections::BTreeSet<Vec<TokenId>>>()
                .into_iter()
                .collect(),
            end_token_ids: vec![91, 95, TINY_VOCAB as u32 - 1],
            healed_bytes: Vec::new(),
        })
        .collect()
}

fn check_model(file: &TinyModel) {
    let alone = spawn(load(file, 1, 256), &token_bytes(), EngineConfig::default());
    let asked = questions();
    let expected = decide(&alone, decision(asked.clone()));
    for (one, read) in asked.iter().zip(&expected.questions) {
        check_forced(&alone, one, read);
    }
    let expected = without_cached_tokens(expected);
    for (prefix_cache, num_kv_blocks) in [
        (PrefixCache::On, 256),
        (PrefixCache::Off, 256),
        (PrefixCache::On, 24),
    ] {
        let config = EngineConfig {
            prefix_cache,
            max_num_batched_tokens: 48,
            ..EngineConfig::default()
        };
        let engine = spawn(load(file, 2, num_kv_blocks), &token_bytes(), config);
        let others: Vec<Client> = requests()
            .into_iter()
            .map(|request| Client::submit(&engine, request).expect("a sound request"))
            .collect();
        let askers: Vec<Asker> = (0..3)
            .map(|_| Asker::ask(&engine, decision(asked.clone())).expect("a sound request"))
            .collect();
        for asker in askers {
            let reading = asker.outcome().expect("finite rows");
            assert_eq!(without_cached_tokens(reading), expected);
        }
        for other in others {
            other.collect(1).expect("finite rows");
        }
    }
}

#[test]
fn a_llama_reads_paths_as_it_scores_them() {
    check_model(&TinyModel::llama());
}

#[test]
fn a_gemma_with_windows_reads_paths_as_it_scores_them() {
    check_model(&TinyModel::gemma3());
}
