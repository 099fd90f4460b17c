//! A cache hit changes nothing but time: small seeded models with real kernels and real KV blocks, every
//! reply against the same request on an engine without the cache. Each test sees the hit happen.

use assay_engine::{
    EngineConfig, EngineHandle, LogprobsMode, LogprobsParams, PrefixCache, PromptLogprobsParams,
    Request, SamplingParams,
};
use assay_models::TokenId;
use assay_testkit::tiny_model::{TINY_VOCAB, TinyModel};

use crate::collect::{ChoiceReply, Client, request, spawn};
use crate::real_path::{load, token_bytes};

const BLOCK_TOKENS: usize = 16;
/// Prefill chunks: one block, a few, everything.
const BUDGETS: [usize; 3] = [16, 64, 512];

/// A cached engine beside one without, on the same file.
struct Pair {
    cached: EngineHandle,
    cold: EngineHandle,
    at: String,
}

fn pairs(file: &TinyModel, num_kv_blocks: usize) -> impl Iterator<Item = Pair> {
    BUDGETS
        .into_iter()
        .zip([1, 2, 2])
        .map(move |(budget, num_threads)| {
            let config = |prefix_cache| EngineConfig {
                max_num_batched_tokens: budget,
                prefix_cache,
                ..EngineConfig::default()
            };
            let model = load(file, num_threads, num_kv_blocks);
            Pair {
                cached: spawn(model, &token_bytes(), config(PrefixCache::On)),
                cold: spawn(load(file, 1, 64), &token_bytes(), config(PrefixCache::Off)),
                at: format!("budget {budget}, {num_threads} threads, {num_kv_blocks} blocks"),
            }
        })
}

fn scored(prompt: Vec<TokenId>, salt: &str, seed: u64) -> Request {
    Request {
        cache_salt: Some(salt.into()),
        sampling: SamplingParams {
            temperature: 0.9,
            seed,
            ..SamplingParams::greedy()
        },
        logprobs: Some(LogprobsParams {
            top_logprobs: 20,
            mode: LogprobsMode::Raw,
            include_end: false,
        }),
        ..request(prompt, 5)
    }
}

fn tokens(num_tokens: usize, family: u32) -> Vec<TokenId> {
    (0..num_tokens as u32)
        .map(|i| (i * 13 + family * 29 + 5) % TINY_VOCAB as u32)
        .collect()
}

fn submit(engine: &EngineHandle, request: &Request) -> Client {
    Client::submit(engine, request.clone()).expect("a valid request")
}

fn replies(engine: &EngineHandle, request: &Request) -> Vec<ChoiceReply> {
    let num_choices = request.num_choices;
    let replies = submit(engine, request).collect(num_choices);
    replies.expect("no failure")
}

fn cached_tokens(reply: &ChoiceReply) -> usize {
    reply.usage.expect("it finished").cached_tokens as usize
}

impl Pair {
    /// Tokens, scores and text are those of the engine without the cache; `num_cached` is what was spared.
    fn check(&self, request: &Request, num_cached: usize, what: &str) {
        let got = replies(&self.cached, request).remove(0);
        let expected = replies(&self.cold, request).remove(0);
        let at = format!("{what}, {}", self.at);
        assert_eq!(got.bits(), expected.bits(), "{at}");
        assert_eq!(got.entries, expected.entries, "{at}");
        assert_eq!(got.finish, expected.finish, "{at}");
        assert_eq!(cached_tokens(&expected), 0, "{at}");
        assert_eq!(cached_tokens(&got), num_cached, "{at}");
    }
}

/// Prompts that leave a cached one after L tokens, for L around every block edge and inside blocks.
fn check_hits_of_every_length(file: &TinyModel) {
    let whole = tokens(68, 0);
    let edges = (1..=4).map(|block| block * BLOCK_TOKENS);
    let lengths = edges
        .flat_map(|edge| [edge - 1, edge, edge + 1])
        .chain([1, 8, 40]);
    let lengths: Vec<usize> = lengths.collect();
    for pair in pairs(file, 64) {
        for &num_shared in &lengths {
            let salt = num_shared.to_string();
            pair.check(&scored(whole.clone(), &salt, 1), 0, "the first");
            let mut branch = whole[..num_shared].to_vec();
            branch.push((whole[num_shared] + 1) % TINY_VOCAB as u32);
            branch.extend(tokens(11, 3));
            let what = format!("leaves after {num_shared}");
            pair.check(&scored(branch.clone(), &salt, 2), num_shared, &what);
            // The last token is computed again: its row is wanted.
            let what = format!("ends after {num_shared}");
            let end = whole[..num_shared].to_vec();
            pair.check(&scored(end, &salt, 3), num_shared - 1, &what);
            let num_branch = branch.len();
            pair.check(
                &scored(branch, &salt, 2),
                num_branch - 1,
                "the branch again",
            );
        }
        pair.check(&scored(whole.clone(), "other", 1), 0, "another salt");
    }
}

#[test]
fn fault_206_fault_207_fault_209_llama_hits_of_every_length_move_no_bit() {
    check_hits_of_every_length(&TinyModel::llama());
}

#[test]
fn fault_206_fault_207_fault_209_gemma3_hits_of_every_length_move_no_bit() {
    check_hits_of_every_length(&TinyModel::gemma3());
}

/// A conversation: each turn's prompt holds the turn before and its reply, which is cached as well.
#[test]
fn replies_stay_for_the_next_turn() {
    for pair in pairs(&TinyModel::llama(), 64) {
        let mut prompt = tokens(21, 1);
        let mut num_computed = 0;
        for turn in 0..4 {
            let request = scored(prompt.clone(), "chat", turn);
            pair.check(&request, num_computed, &format!("turn {turn}"));
            let reply = replies(&pair.cold, &request).remove(0).token_ids();
            // The last token drawn was never computed.
            num_computed = prompt.len() + reply.len() - 1;
            prompt.extend(reply);
            prompt.extend(tokens(9, turn as u32));
        }
    }
}

/// R8: the choices' streams are those of separate prompts, and the prompt is computed once.
#[test]
fn choices_share_their_prompt_and_keep_their_streams() {
    for num_prompt in [1, 15, 16, 17, 40, 64] {
        for pair in pairs(&TinyModel::llama(), 64) {
            let at = format!("{num_prompt} tokens, {}", pair.at);
            let mut request = scored(tokens(num_prompt, 2), "n", 7);
            request.num_choices = 6;
            let got = replies(&pair.cached, &request);
            let expected = replies(&pair.cold, &request);
            let mut num_rows = num_prompt as u64;
            for (index, (got, expected)) in got.iter().zip(&expected).enumerate() {
                assert_eq!(got.bits(), expected.bits(), "choice {index}, {at}");
                let num_cached = if index == 0 { 0 } else { num_prompt - 1 };
                assert_eq!(cached_tokens(got), num_cached, "choice {index}, {at}");
                num_rows += (got.entries.len() - 1) as u64 + u64::from(index > 0);
            }
            let stats = pair.cached.stats();
            assert_eq!(stats.num_computed_tokens, num_rows, "{at}: {stats:?}");
        }
    }
}

/// Requests that arrive together and begin alike: one computes the start, all get their own bits.
#[test]
fn simultaneous_requests_share_a_start() {
    for file in [TinyModel::llama(), TinyModel::gemma3()] {
        for pair in pairs(&file, 64) {
            let requests: Vec<Request> = (0..8)
                .map(|index| {
                    let mut prompt = tokens(50, 0);
                    prompt.extend(tokens(3 + index, 10 + index as u32));
                    scored(prompt, "burst", index as u64)
                })
                .collect();
            let clients: Vec<Client> = requests
                .iter()
                .map(|request| submit(&pair.cached, request))
                .collect();
            let mut num_cached = 0;
            for (index, client) in clients.into_iter().enumerate() {
                let got = client.collect(1).expect("no failure").remove(0);
                let expected = replies(&pair.cold, &requests[index]).remove(0);
                assert_eq!(got.bits(), expected.bits(), "request {index}, {}", pair.at);
                num_cached += cached_tokens(&got);
            }
            // At the worst, a second one computes the start beside the first: the oldest waits for nobody.
            assert!(num_cached >= 6 * 48, "{num_cached}, {}", pair.at);
        }
    }
}

/// A pool for one and a half: blocks are evicted and computed again, sequences preempted, bits kept.
#[test]
fn evictions_move_no_bit() {
    for pair in pairs(&TinyModel::llama(), 9) {
        for round in 0..3 {
            for family in 0..5 {
                let request = |seed| scored(tokens(60, family), "e", seed);
                let clients = [1, 2].map(|seed| (submit(&pair.cached, &request(seed)), seed));
                for (client, seed) in clients {
                    let got = client.collect(1).expect("no failure").remove(0);
                    let expected = replies(&pair.cold, &request(seed)).remove(0);
                    assert_eq!(got.bits(), expected.bits(), "round {round}, {}", pair.at);
                }
            }
        }
        let stats = pair.cached.stats();
        assert!(stats.num_prefix_cache_evictions > 0, "{stats:?}");
        assert!(stats.num_prefix_cache_hits > 0, "{stats:?}");
        assert_eq!(stats.num_kv_blocks_used, 0, "{stats:?}");
    }
}

/// Rows whose scores are wanted are computed, however much of the prompt is cached.
#[test]
fn fault_81_fault_85_scores_of_a_cached_prompt_are_those_of_a_cold_one() {
    for pair in pairs(&TinyModel::llama(), 64) {
        let prompt = tokens(50, 4);
        pair.check(&scored(prompt.clone(), "p", 1), 0, "the first");
        for first_position in [1, 16, 17, 18, 33, 49] {
            for max_tokens in [0, 2] {
                let mut request = scored(prompt.clone(), "p", 1);
                request.max_tokens = max_tokens;
                request.prompt_logprobs = Some(PromptLogprobsParams {
                    first_position,
                    top_logprobs: 5,
                });
                let got = replies(&pair.cached, &request).remove(0);
                let expected = replies(&pair.cold, &request).remove(0);
                let at = format!("from {first_position}, {max_tokens} tokens, {}", pair.at);
                assert_eq!(got.prompt, expected.prompt, "{at}");
                assert_eq!(got.bits(), expected.bits(), "{at}");
                assert_eq!(cached_tokens(&got), first_position as usize - 1, "{at}");
            }
        }
    }
}

/// One token scored behind a prompt that one was scored behind before: no pass runs, and no bit differs.
#[test]
fn one_token_behind_a_known_prompt_is_scored_without_a_pass() {
    let single = |last: u32, salt: &str| {
        let mut request = scored([tokens(50, 4), vec![last]].concat(), salt, 1);
        request.max_tokens = 0;
        request.prompt_logprobs = Some(PromptLogprobsParams {
            first_position: 50,
            top_logprobs: 5,
        });
        request
    };
    for pair in pairs(&TinyModel::llama(), 64) {
        let check = |last, salt, num_cached, num_hits, what: &str| {
            let before = pair.cached.stats();
            let request = single(last, salt);
            let got = replies(&pair.cached, &request).remove(0);
            let expected = replies(&pair.cold, &request).remove(0);
            let at = format!("{what}, {}", pair.at);
            assert_eq!(got.prompt, expected.prompt, "{at}");
            assert_eq!(got.bits(), expected.bits(), "{at}");
            assert_eq!(cached_tokens(&got), num_cached, "{at}");
            let after = pair.cached.stats();
            let num_steps = after.num_steps - before.num_steps;
            assert_eq!(num_steps == 0, num_hits == 1, "{at}: {num_steps} steps");
            let num_more = after.num_row_cache_hits - before.num_row_cache_hits;
            assert_eq!(num_more, num_hits, "{at}");
            assert_eq!(
                (after.num_waiting, after.num_kv_blocks_used),
                (0, 0),
                "{at}"
            );
        };
        check(7, "r", 0, 0, "the first");
        check(7, "r", 50, 1, "the same again");
        check(9, "r", 50, 1, "another token");
        check(9, "other", 0, 0, "another salt");
        assert_eq!(pair.cold.stats().num_row_cache_hits, 0, "{}", pair.at);
    }
}
