//! Ctrl-C: every long command ends with status 130, and nothing is left half written.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::binary::{assay, output};
use crate::tiny::Tiny;

/// Longer than anything here takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(120);

/// Sends `INT` or `TERM`.
pub(crate) fn signal(child: &Child, name: &str) {
    let kill = format!("kill -{name} {}", child.id());
    let status = Command::new("sh").args(["-c", &kill]).status();
    assert!(status.expect("a shell").success(), "{kill}");
}

/// Waits for the end of `child` and asserts its status.
#[track_caller]
pub(crate) fn ends_with(child: &mut Child, code: i32) {
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a status") {
            break status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("it does not end");
        }
        thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(status.code(), Some(code));
}

/// Waits until `is_so`.
#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn spawn(args: &[String]) -> Child {
    assay(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary is built")
}

/// What the ended process said.
fn said(child: &mut Child) -> String {
    let mut text = String::new();
    let stderr = child.stderr.as_mut().expect("piped");
    stderr.read_to_string(&mut text).expect("text");
    text
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |meta| meta.len())
}

#[test]
fn a_server_drains_and_tells_ctrl_c_from_a_manager() {
    for (name, code) in [("INT", 130), ("TERM", 0)] {
        let tiny = Tiny::new();
        let mut server = spawn(&tiny.with_model(&["serve", "--port", "0"]));
        let mut log = BufReader::new(server.stderr.take().expect("piped")).lines();
        assert!(log.any(|line| line.expect("text").contains("serving on")));
        signal(&server, name);
        assert!(log.any(|line| line.expect("text").contains("all work is done")));
        ends_with(&mut server, code);
    }
}

#[test]
fn commands_that_wait_or_compute_end_at_once() {
    let tiny = Tiny::new();
    let cases: [&[&str]; 3] = [
        &["chat"],
        &["score", "--text", "-"],
        // So many samples that nobody waits for them.
        &[
            "bench",
            "--force",
            "--prompt",
            "8",
            "--gen",
            "8",
            "--repeats",
            "1000000",
        ],
    ];
    for args in cases {
        let mut child = spawn(&tiny.with_model(args));
        // It listens for signals before it does anything; a moment later it is at work.
        thread::sleep(Duration::from_millis(500));
        assert!(child.try_wait().expect("a status").is_none(), "{args:?}");
        signal(&child, "INT");
        ends_with(&mut child, 130);
        assert_eq!(said(&mut child).trim(), "interrupted", "{args:?}");
    }
}

/// Interrupts a run that writes lines to `answers`, lets it go on, and holds the result against one that ran through.
fn check_goes_on(tiny: &Tiny, args: &[&str], whole: &str) {
    let (kept, through) = (tiny.path("kept.jsonl"), tiny.arg("through.jsonl"));
    let out = tiny.arg("kept.jsonl");
    let first = [args, &["--out", &out]].concat();
    let mut child = spawn(&tiny.with_model(&first));
    wait_until("lines are written", || size(&kept) > 1_000);
    signal(&child, "INT");
    ends_with(&mut child, 130);
    let words = said(&mut child);
    assert!(
        words.contains(whole) && words.contains("--resume"),
        "{words}"
    );
    let text = fs::read_to_string(&kept).expect("text");
    assert!(text.ends_with('\n'), "a line is not whole");
    for line in text.lines() {
        let _: Value = serde_json::from_str(line).expect("JSON");
    }
    let again = [&first[..], &["--resume"]].concat();
    let resumed = output(assay(&tiny.with_model(&again)), "");
    assert!(resumed.status.success(), "{resumed:?}");
    let at_once = [args, &["--out", &through]].concat();
    let at_once = output(assay(&tiny.with_model(&at_once)), "");
    assert!(at_once.status.success(), "{at_once:?}");
    let lines = |path: &Path| fs::read_to_string(path).expect("text").lines().count();
    assert_eq!(lines(&kept), lines(&tiny.path("through.jsonl")));
    assert!(
        lines(&kept) > text.lines().count(),
        "it was not interrupted"
    );
}

#[test]
fn decide_keeps_its_rows_whole_and_goes_on() {
    let tiny = Tiny::new();
    let questions = tiny.write(
        "questions.json",
        r#"[{"type": "predicate", "instructions": "?"}]"#,
    );
    let rows: String = (0..400).map(|row| format!("\"row {row}\"\n")).collect();
    let rows = tiny.write("rows.jsonl", &rows);
    let args = ["decide", "--questions", &questions, &rows];
    check_goes_on(&tiny, &args, "the answers so far are in");
    let text = |name| fs::read_to_string(tiny.path(name)).expect("text");
    assert_eq!(text("kept.jsonl"), text("through.jsonl"));
}

#[test]
fn eval_keeps_its_readings_whole_and_goes_on() {
    let tiny = Tiny::new();
    let question = r#"{"question": {"type": "predicate", "instructions": "?"}}"#;
    let rows: String = (0..100)
        .map(|row| format!("\n{{\"input\": \"row {row}\", \"answer\": true}}"))
        .collect();
    let set = tiny.write("set.jsonl", &format!("{question}{rows}"));
    let args = [
        "eval",
        "decisions",
        "--data",
        &set,
        "--timed",
        "0",
        "--readout",
        "label",
    ];
    check_goes_on(&tiny, &args, "what was read is in");
}

const BODY: &[u8] = b"GGUF not really, but long enough to be cut in two";

/// Sends half of the body and holds the line until it is let go; then answers the rest.
fn stalling_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let lines = BufReader::new(stream.try_clone().expect("a clone")).lines();
            let head: Vec<String> = lines
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .collect();
            let range = head
                .iter()
                .any(|line| line.to_ascii_lowercase().starts_with("range: "));
            let (half, length) = (BODY.len() / 2, BODY.len());
            let reply = if range {
                let rest = length - half;
                let range = format!("bytes {half}-{}/{length}", length - 1);
                format!(
                    "HTTP/1.1 206 Partial Content\r\nContent-Length: {rest}\r\nContent-Range: {range}\r\n\r\n"
                )
            } else {
                format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n")
            };
            let body = if range { &BODY[half..] } else { &BODY[..half] };
            let _ = stream.write_all(&[reply.as_bytes(), body].concat());
            held.push(stream);
        }
    });
    format!("http://{address}/model.gguf")
}

#[test]
fn pull_keeps_what_came_and_goes_on() {
    let tiny = Tiny::new();
    let hash = Sha256::digest(BODY);
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let config = tiny.write(
        "assay.toml",
        &format!(
            "[[models]]\nname = \"slow\"\nfile = \"slow.gguf\"\nbytes = {}\nsha256 = \"{hash}\"\n[[models.source]]\nurl = \"{}\"\n",
            BODY.len(),
            stalling_server(),
        ),
    );
    let cache = tiny.arg("cache");
    let args = [
        "pull",
        "slow",
        "--json",
        "--config",
        &config,
        "--cache-dir",
        &cache,
    ];
    let args = args.map(str::to_owned);
    let mut child = spawn(&args);
    let part = tiny
        .path("cache")
        .join(format!(".pull-{}", &hash[..16]))
        .join("assembled");
    let half = u64::try_from(BODY.len() / 2).expect("small");
    wait_until("half is there", || size(&part) == half);
    signal(&child, "INT");
    ends_with(&mut child, 130);
    let words = said(&mut child);
    assert!(words.contains("the same command goes on"), "{words}");
    let again = output(assay(&args), "");
    assert!(again.status.success(), "{again:?}");
    let pulled: Value = serde_json::from_slice(&again.stdout).expect("JSON");
    assert_eq!(pulled["fetched"], true);
    let path = pulled["path"].as_str().expect("a path");
    assert_eq!(fs::read(path).expect("there"), BODY);
}
