//! What submit and spawn refuse, and that they say why.

use assay_engine::{
    EngineConfig, EngineHandle, FinishReason, LogprobsMode, LogprobsParams, PromptLogprobsParams,
    Request, SpawnError, SubmitError, TokenBytes,
};
use assay_testkit::scripted::{ScriptedModel, ScriptedVocab, background_row};

use crate::collect::{Client, request, spawn};

fn vocab() -> ScriptedVocab {
    ScriptedVocab::new(["ab"])
}

fn model() -> ScriptedModel {
    let vocab_size = vocab().vocab_size();
    ScriptedModel::new(vocab_size, move |history| {
        background_row(vocab_size, history)
    })
}

fn submit(engine: &EngineHandle, request: Request) -> Client {
    Client::submit(engine, request).expect("a valid request")
}

#[test]
fn fault_161_fault_163_what_cannot_fit_is_refused_with_the_counts() {
    let engine = |num_kv_blocks| {
        let model = model()
            .with_kv_pool(num_kv_blocks, 8)
            .with_context_length(100);
        spawn(model, vocab().token_bytes(), EngineConfig::default())
    };
    let too_long = |limit_tokens| {
        Some(SubmitError::TooLong {
            prompt_tokens: 60,
            max_tokens: 41,
            limit_tokens,
        })
    };
    let long = request(vec![1; 60], 41);
    assert_eq!(
        Client::submit(&engine(1000), long.clone()).err(),
        too_long(100)
    );
    assert_eq!(Client::submit(&engine(5), long).err(), too_long(40));
    let reply = submit(&engine(1000), request(vec![1; 60], 40))
        .collect(1)
        .expect("it fits to the token");
    assert_eq!(reply[0].entries.len(), 40);
    let reply = submit(&engine(5), request(vec![1; 20], 20))
        .collect(1)
        .expect("it fits the pool to the token");
    assert_eq!(reply[0].finish, Some(FinishReason::Length));
}

fn scores_from(request: &mut Request, first_position: u32) {
    request.prompt_logprobs = Some(PromptLogprobsParams {
        first_position,
        top_logprobs: 0,
    });
}

/// A field, and how to spoil it given the first id past the vocabulary.
type BadField = (&'static str, fn(&mut Request, u32));

#[test]
fn bad_fields_are_refused_by_name() {
    let engine = spawn(model(), vocab().token_bytes(), EngineConfig::default());
    let past_vocab = vocab().vocab_size() as u32;
    let cases: [BadField; 21] = [
        ("prompt_token_ids", |r, _| r.prompt_token_ids.clear()),
        ("prompt_token_ids", |r, past| r.prompt_token_ids.push(past)),
        ("num_choices", |r, _| r.num_choices = 0),
        ("max_tokens", |r, _| r.max_tokens = 0),
        ("stop", |r, _| r.stop.push(String::new())),
        ("logprobs.top_logprobs", |r, _| {
            r.logprobs = Some(LogprobsParams {
                top_logprobs: 21,
                mode: LogprobsMode::Raw,
                include_end: false,
            });
        }),
        ("prompt_logprobs.first_position", |r, _| {
            scores_from(r, 0);
        }),
        ("prompt_logprobs.first_position", |r, _| {
            scores_from(r, 1);
        }),
        ("prompt_logprobs.first_position", |r, _| {
            scores_from(r, u32::MAX);
        }),
        ("prompt_logprobs.top_logprobs", |r, _| {
            r.prompt_token_ids.push(0);
            r.prompt_logprobs = Some(PromptLogprobsParams {
                first_position: 1,
                top_logprobs: 21,
            });
        }),
        ("num_choices", |r, _| {
            scores_from(r, 1);
            (r.max_tokens, r.num_choices) = (0, 2);
        }),
        ("sampling.logit_bias", |r, past| {
            r.sampling.logit_bias = vec![(past, 1.0)];
        }),
        ("sampling.logit_bias", |r, _| {
            r.sampling.logit_bias = vec![(0, f64::NAN)];
        }),
        ("sampling.repetition_penalty", |r, _| {
            r.sampling.repetition_penalty = 0.0;
        }),
        ("sampling.presence_penalty", |r, _| {
            r.sampling.presence_penalty = 2.1;
        }),
        ("sampling.frequency_penalty", |r, _| {
            r.sampling.frequency_penalty = f64::NAN;
        }),
        ("sampling.temperature", |r, _| r.sampling.temperature = -0.1),
        ("sampling.top_k", |r, _| r.sampling.top_k = Some(0)),
        ("sampling.top_p", |r, _| r.sampling.top_p = 0.0),
        ("sampling.top_p", |r, _| r.sampling.top_p = 1.1),
        ("sampling.min_p", |r, _| r.sampling.min_p = f64::INFINITY),
    ];
    for (field, spoil) in cases {
        let mut request = request(vec![1], 1);
        spoil(&mut request, past_vocab);
        match Client::submit(&engine, request).err() {
            Some(SubmitError::Invalid(invalid)) => assert_eq!(invalid.field, field),
            other => panic!("{field}: {other:?}"),
        }
    }
    submit(&engine, request(vec![1], 1))
        .collect(1)
        .expect("the engine lives");
}

#[test]
fn impossible_limits_do_not_start() {
    let spawn = |config| {
        let table = std::sync::Arc::new(TokenBytes::new(vocab().token_bytes()));
        assay_engine::Engine::spawn(Box::new(model()), table, config).err()
    };
    let config = EngineConfig {
        max_num_seqs: 9,
        max_num_batched_tokens: 8,
        ..EngineConfig::default()
    };
    match spawn(config) {
        Some(SpawnError::InvalidConfig { field, .. }) => {
            assert_eq!(field, "max_num_batched_tokens");
        }
        other => panic!("{other:?}"),
    }
    assert!(spawn(EngineConfig::default()).is_none());
}
