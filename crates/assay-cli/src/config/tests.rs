//! Flags, environment and file together: who wins, and what is refused.

use std::collections::BTreeSet;

use anyhow::Result;
use assay_engine::{PrefixCache, Speculation};
use assay_models::Numerics;
use clap::{CommandFactory, Parser};

use super::file::EXAMPLE;
use super::model::KvType;
use super::{ServeArgs, ServeConfig};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    serve: ServeArgs,
}

fn resolve(args: &[&str]) -> Result<ServeConfig> {
    let serve = Cli::try_parse_from([&["assay"], args].concat())?.serve;
    Ok(serve.resolve()?)
}

/// The settings of a file of this text, with these flags.
fn resolve_file(text: &str, flags: &[&str]) -> Result<ServeConfig> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("assay.toml");
    std::fs::write(&path, text).unwrap();
    resolve(&[&["--config", path.to_str().unwrap()], flags].concat())
}

/// Lines of the example file that have no default: an example behind a `#`.
fn with_examples() -> String {
    let lines = EXAMPLE.lines().map(|line| match line.strip_prefix('#') {
        Some(rest)
            if rest.starts_with(|first: char| first.is_ascii_lowercase() || first == '[') =>
        {
            rest
        }
        _ => line,
    });
    lines.collect::<Vec<&str>>().join("\n")
}

#[test]
fn the_example_file_is_the_defaults() {
    let defaults = format!("{:#?}", resolve(&[]).unwrap());
    let example = ServeConfig {
        file: None,
        ..resolve_file(EXAMPLE, &[]).unwrap()
    };
    let example = format!("{example:#?}");
    assert_eq!(example, defaults);
}

#[test]
fn the_example_file_has_every_flag_and_no_other() {
    // What only the file has, and what it cannot have: its own name, and a switch for tests.
    let (only_in_file, only_flags) = (["models"], ["config", "help", "isa"]);
    let command = Cli::command();
    let flags = command.get_arguments().filter_map(|flag| flag.get_long());
    let flags = flags.filter(|flag| !only_flags.contains(flag));
    let expected: BTreeSet<&str> = flags.chain(only_in_file).collect();
    let examples = with_examples();
    let table: toml::Table = examples.parse().unwrap();
    let keys: BTreeSet<&str> = table.keys().map(String::as_str).collect();
    assert_eq!(keys, expected);
}

#[test]
fn the_examples_are_values_that_are_taken() {
    let config = resolve_file(&with_examples(), &[]).unwrap();
    assert_eq!(config.model.context, Some(4096));
    assert!(config.model.catalog.find("my-model").is_ok());
}

#[test]
fn a_flag_turns_off_what_the_file_turns_on_and_lists_are_not_added_up() {
    let file = "receipts = true\nno-prefix-cache = true\nalias = [\"a\"]\n";
    let config = resolve_file(file, &[]).unwrap();
    assert!(config.receipts);
    assert_eq!(config.aliases, ["a"]);
    let flags = ["--receipts=false", "--no-prefix-cache=no", "--alias", "b"];
    let config = resolve_file(file, &flags).unwrap();
    assert!(!config.receipts);
    assert_eq!(config.model.prefix_cache, PrefixCache::On);
    assert_eq!(config.aliases, ["b"]);
    assert!(resolve(&["--receipts=perhaps"]).is_err());
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
        (
            config.request_timeout_seconds,
            config.limits.body_bytes >> 20,
        )
    };
    assert_eq!(limits(&[]), (None, 32));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("assay.toml");
    std::fs::write(&path, "request-timeout = 20\nmax-body = 8\n").unwrap();
    let file = ["--config", path.to_str().unwrap()];
    assert_eq!(limits(&file), (Some(20), 8));
    let flag = [&file[..], &["--request-timeout", "5"]].concat();
    assert_eq!(limits(&flag), (Some(5), 8));
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
    for (text, expected) in [
        (
            "# x\n\nprot = 1",
            ["line 3, `prot = 1`", "unknown field `prot`"],
        ),
        ("port = 70000", ["line 1, `port = 70000`", "u16"]),
        (
            "kv = \"f16\"\nnumerics = \"wild\"",
            ["line 2, `numerics", "wild"],
        ),
        ("api-key = \"k\"", ["line 1, `api-key", "a sequence"]),
        (
            "port = 1\nport = 2",
            ["line 2, `port = 2`", "duplicate key"],
        ),
        ("queue = 0", ["line 1, `queue = 0`", "nonzero"]),
        (
            "[serve]\nport = 1",
            ["line 1, `[serve]`", "unknown field `serve`"],
        ),
        (
            "[[models]]\nname = \"x\"\nfile = \"x\"",
            ["line 1, `[[models]]`", "missing field `bytes`"],
        ),
        ("port = ", ["line 1, `port =`", "value"]),
    ] {
        let error = format!("{:#}", resolve_file(text, &[]).unwrap_err());
        for expected in expected {
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(error.contains("--config"), "{text}: {error}");
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
