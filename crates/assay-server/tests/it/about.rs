//! What the server tells of itself.

use assay_server::{DeviceFacts, Installed, ModelFacts, WeightFacts};
use axum::http::StatusCode;
use serde_json::json;

use crate::world::{MODEL, Setup, ask};

#[tokio::test]
async fn what_runs_here_is_told_whole() {
    let mut setup = Setup::default();
    setup.config.installed = Installed {
        model: ModelFacts {
            num_layers: 3,
            weights: vec![WeightFacts {
                format: "Q4_1".to_owned(),
                num_tensors: 2,
                num_elements: 64,
                num_bytes: 40,
            }],
            ..ModelFacts::default()
        },
        device: DeviceFacts {
            name: "cpu".to_owned(),
            num_threads: 5,
            ..DeviceFacts::default()
        },
        kv_block_bytes: 4_096,
    };
    let world = setup.build();
    let about = world.get("/v1/about").await;
    let about = about.expect_status(StatusCode::OK).json();
    let reply = world.reply(&ask("x")).await;
    assert_eq!(about["system_fingerprint"], reply["system_fingerprint"]);
    assert_eq!(about["assay_version"], env!("CARGO_PKG_VERSION"));
    let model = &about["model"];
    assert_eq!(model["id"], MODEL);
    assert_eq!(model["aliases"], json!(["alias/of-it"]));
    assert_eq!(model["max_model_len"], 4_096);
    assert_eq!(model["num_layers"], 3);
    assert_eq!(
        model["weights"],
        json!([{"format": "Q4_1", "num_tensors": 2, "num_elements": 64, "num_bytes": 40}])
    );
    assert_eq!(model["sha256"].as_str().map(str::len), Some(64));
    assert_eq!(
        about["kv_cache"],
        json!({"element": "f16", "block_tokens": 16, "num_blocks": 2_048, "block_bytes": 4_096})
    );
    assert_eq!(about["device"]["num_threads"], 5);
    assert_eq!(about["receipts"], false);
    assert_eq!(about["ledger"], false);
}

/// The process's memory is in the metrics, as a number that can be one.
#[tokio::test]
async fn memory_is_told() {
    let metrics = Setup::default().build().get("/metrics").await;
    let text = std::str::from_utf8(&metrics.body)
        .expect("UTF-8")
        .to_owned();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("process_resident_memory_bytes "));
    let bytes: f64 = line.expect("the metric").parse().expect("a number");
    assert!(bytes.is_nan() || bytes > 1e6, "{bytes}");
}
