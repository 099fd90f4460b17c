//! Flags, environment and file together: who wins, and what is refused.

use anyhow::Result;
use assay_engine::{PrefixCache, Speculation};
use assay_models::Numerics;
use clap::Parser;

use super::model::KvType;
use super::{ServeArgs, ServeConfig};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    serve: ServeArgs,
}

fn resolve(args: &[&str]) -> Result<ServeConfig> {
    Cli::try_parse_from([&["assay"], args].concat())?
        .serve
        .resolve()
}

#[test]
fn a_flag_beats_the_file_and_the_file_beats_the_default() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("assay.toml");
    std::fs::write(
        &path,
        "port = 9000\nparallel = 3\nnumerics = \"fast\"\nspeculation = \"off\"\napi-key = [\"k\"]\n",
    )
    .unwrap();
    let config = resolve(&["--config", path.to_str().unwrap(), "--parallel", "5"]).unwrap();
    assert_eq!((config.port, config.model.parallel.get()), (9000, 5));
    assert_eq!(config.model.numerics, Numerics::Fast);
    assert_eq!(config.model.speculation, Speculation::Off);
    assert_eq!(config.api_keys, ["k"]);
    assert_eq!(config.queue.get(), 1024);
    let config = resolve(&[]).unwrap();
    assert_eq!(config.model.speculation, Speculation::Ngram);
}

#[test]
fn limits_are_settled_from_flags_and_the_file() {
    let limits = |args: &[&str]| {
        let config = resolve(args).unwrap();
        let mib = config.max_body_mib.map(std::num::NonZero::get);
        (config.request_timeout_seconds, mib)
    };
    assert_eq!(limits(&[]), (None, None));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("assay.toml");
    std::fs::write(&path, "request-timeout = 20\nmax-body = 8\n").unwrap();
    let file = ["--config", path.to_str().unwrap()];
    assert_eq!(limits(&file), (Some(20), Some(8)));
    let flag = [&file[..], &["--request-timeout", "5"]].concat();
    assert_eq!(limits(&flag), (Some(5), Some(8)));
    for bad in [
        ["--max-body", "1025"],
        ["--max-body", "0"],
        ["--request-timeout", "0"],
    ] {
        assert!(resolve(&bad).is_err(), "{bad:?}");
    }
}

#[test]
fn the_prefix_cache_is_on_unless_a_flag_or_the_file_says_otherwise() {
    let prefix_cache = |args: &[&str]| resolve(args).unwrap().model.prefix_cache;
    assert_eq!(prefix_cache(&[]), PrefixCache::On);
    assert_eq!(prefix_cache(&["--no-prefix-cache"]), PrefixCache::Off);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("assay.toml");
    std::fs::write(&path, "no-prefix-cache = true\n").unwrap();
    let file = ["--config", path.to_str().unwrap()];
    assert_eq!(prefix_cache(&file), PrefixCache::Off);
}

#[test]
fn kv_types_outside_the_contract_are_refused_with_what_there_is() {
    assert_eq!(resolve(&["--kv", "f16"]).unwrap().model.kv, KvType::F16);
    for name in ["f32", "q8_0", "int8", "F16", ""] {
        let error = resolve(&["--kv", name]).unwrap_err().to_string();
        assert!(error.contains("--kv") && error.contains("f16"), "{error}");
    }
}

#[test]
fn a_draft_model_and_no_speculation_contradict_each_other() {
    let both = ["--draft-model", "d.gguf", "--speculation", "off"];
    let error = resolve(&both).unwrap_err().to_string();
    assert!(error.contains("--draft-model"), "{error}");
    let config = resolve(&both[..2]).unwrap();
    assert_eq!(config.model.draft_model, Some("d.gguf".into()));
}

#[test]
fn an_open_address_needs_a_key_or_a_word() {
    let error = resolve(&["--host", "0.0.0.0"]).unwrap_err().to_string();
    assert!(error.contains("--api-key"), "{error}");
    assert!(resolve(&["--host", "0.0.0.0", "--api-key", "k"]).is_ok());
    assert!(resolve(&["--host", "0.0.0.0", "--insecure"]).is_ok());
    assert!(resolve(&["--host", "::1"]).is_ok());
    for key in ["", "a b", "ключ", "a\n"] {
        assert!(resolve(&["--api-key", key]).is_err(), "{key:?}");
    }
}

#[test]
fn values_that_mean_nothing_are_refused_by_flag() {
    let cases = [
        ["--cors-origin", "nonsense"],
        ["--cors-origin", "https://example.org/path"],
        ["--kv-memory", "0"],
        ["--kv-memory", "99999999999999999"],
        ["--threads", "100000"],
        ["--context", "0"],
        ["--config", "/dev/zero"],
    ];
    for args in cases {
        let error = format!("{:#}", resolve(&args).map(|_| ()).unwrap_err());
        assert!(error.contains(args[0]), "{args:?}: {error}");
    }
    assert!(resolve(&["--cors-origin", "http://localhost:3000"]).is_ok());
}

#[test]
fn unknown_keys_and_bad_values_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("assay.toml");
    for (text, expected) in [
        ("prot = 1", "prot"),
        ("port = 70000", "port"),
        ("numerics = \"wild\"", "wild"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = format!(
            "{:#}",
            resolve(&["--config", path.to_str().unwrap()]).unwrap_err()
        );
        assert!(error.contains(expected), "{text}: {error}");
    }
    for date in [
        "2025-02-29",
        "2025-13-01",
        "25-01-01",
        "2025-1-1",
        "tomorrow",
        "2025-01-011",
    ] {
        assert!(resolve(&["--template-date", date]).is_err(), "{date}");
    }
    assert!(resolve(&["--template-date", "2024-02-29"]).is_ok());
    assert!(
        resolve(&["--isa", "sse9"])
            .unwrap_err()
            .to_string()
            .contains("scalar")
    );
}
