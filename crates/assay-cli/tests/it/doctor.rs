//! `assay doctor`: what it looks at, what it says of faults, and which of three places a setting comes from.

use std::fs;
use std::net::TcpListener;

use serde_json::Value;

use crate::binary::{assay, output};
use crate::tiny::Tiny;

/// The report of a run that ends with `code`.
#[track_caller]
fn report(args: &[String], variables: &[(&str, &str)], code: i32) -> Value {
    let mut command = assay(args);
    command.arg("--json").envs(variables.iter().copied());
    let output = output(command, "");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

#[track_caller]
fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().expect("a list");
    let found = checks.iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("no {name}: {report}"))
}

#[test]
fn a_machine_that_serves_is_found_fit() {
    let tiny = Tiny::new();
    let args = tiny.with_model(&["doctor", "--port", "0"]);
    let found = report(&args, &[], 0);
    assert_ne!(found["level"], "fail");
    for name in [
        "build",
        "settings",
        "cpu",
        "numerics",
        "threads",
        "huge pages",
        "gpu",
        "model",
        "identity",
        "memory",
        "cache",
        "port",
        "log",
        "open files",
    ] {
        let check = check(&found, name);
        assert_ne!(check["level"], "fail", "{check}");
        assert!(
            check["level"] == "ok" || check["advice"].is_string(),
            "{check}"
        );
    }
    let text = output(assay(&args), "");
    let text = String::from_utf8(text.stdout).expect("text");
    assert!(
        !text.contains('\x1b'),
        "colours go to terminals only: {text}"
    );
    let sha256 = check(&found, "identity")["found"].as_str().expect("text");
    assert!(text.contains(sha256), "{text}");
}

/// A fault that must be found, by its check, with what to do.
#[track_caller]
fn check_fault(args: &[String], name: &str, advice: &str) {
    let found = report(args, &[], 1);
    assert_eq!(found["level"], "fail", "{found}");
    let check = check(&found, name);
    assert_eq!(check["level"], "fail", "{check}");
    let said = format!("{} {}", check["found"], check["advice"]);
    assert!(said.contains(advice), "{check}");
}

#[test]
fn faults_are_found_before_the_server_starts() {
    let tiny = Tiny::new();
    let with = |more: &[&str]| tiny.with_model(&[&["doctor", "--port", "0"], more].concat());
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    check_fault(
        &tiny.with_model(&["doctor", "--port", &port]),
        "port",
        "--port",
    );
    let nowhere = tiny.arg("nowhere/ledger.sqlite");
    check_fault(&with(&["--ledger", &nowhere]), "ledger", "--ledger");
    let misspelt = tiny.write("misspelt.toml", "prot = 1\n");
    check_fault(&with(&["--config", &misspelt]), "settings", "line 1");
    check_fault(&with(&["--host", "0.0.0.0"]), "settings", "--api-key");
    check_fault(
        &with(&["--draft-model", &nowhere]),
        "draft model",
        "--draft-model",
    );

    let plain = |model: &str| -> Vec<String> {
        let cache = tiny.arg("cache");
        let args = [
            "doctor",
            "--port",
            "0",
            "--cache-dir",
            &cache,
            "--model",
            model,
        ];
        args.map(str::to_owned).to_vec()
    };
    check_fault(&plain("none/such.gguf"), "model", "no file");
    check_fault(&plain("no-such-model"), "model", "known models");
    let whole = fs::read(tiny.path("tiny.gguf")).expect("there");
    let cut = tiny.arg("cut.gguf");
    fs::write(&cut, &whole[..whole.len() / 2]).expect("written");
    check_fault(&plain(&cut), "model", "assay inspect");
}

#[test]
fn a_named_model_is_held_against_its_checksum_and_not_fetched() {
    let tiny = Tiny::new();
    let bytes = fs::metadata(tiny.path("tiny.gguf")).expect("there").len();
    let zeros = "0".repeat(64);
    let config = tiny.write(
        "assay.toml",
        &format!(
            "model = \"listed\"\nport = 0\n[[models]]\nname = \"listed\"\nfile = \"listed.gguf\"\nbytes = {bytes}\n\
             sha256 = \"{zeros}\"\n[[models.source]]\nurl = \"http://127.0.0.1:9/none\"\n"
        ),
    );
    let cache = tiny.arg("cache");
    let args = ["doctor", "--config", &config, "--cache-dir", &cache].map(str::to_owned);
    let found = report(&args, &[], 0);
    assert_eq!(check(&found, "model")["level"], "warn");
    assert!(!tiny.path("cache").exists(), "nothing is fetched or made");
    fs::create_dir(tiny.path("cache")).expect("made");
    fs::copy(
        tiny.path("tiny.gguf"),
        tiny.path("cache").join("listed.gguf"),
    )
    .expect("copied");
    check_fault(&args, "identity", "assay pull listed");
}

#[test]
fn a_flag_beats_a_variable_beats_the_file_beats_the_default() {
    let tiny = Tiny::new();
    let config = tiny.write("assay.toml", "host = \"127.0.0.3\"\nport = 0\n");
    let with = |more: &[&str]| tiny.with_model(&[&["doctor"], more].concat());
    for (args, variables, expected) in [
        (with(&["--port", "0"]), vec![], "127.0.0.1:0"),
        (with(&["--config", &config]), vec![], "127.0.0.3:0"),
        (
            with(&[]),
            vec![("ASSAY_CONFIG", config.as_str())],
            "127.0.0.3:0",
        ),
        (
            with(&["--config", &config]),
            vec![("ASSAY_HOST", "127.0.0.2")],
            "127.0.0.2:0",
        ),
        (
            with(&["--config", &config, "--host", "127.0.0.1"]),
            vec![("ASSAY_HOST", "127.0.0.2")],
            "127.0.0.1:0",
        ),
    ] {
        let found = report(&args, &variables, 0);
        let port = check(&found, "port")["found"]
            .as_str()
            .expect("text")
            .to_owned();
        assert!(port.starts_with(expected), "{args:?} {variables:?}: {port}");
    }
}
