//! A log that nobody reads holds nothing up.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::binary::assay;
use crate::signals::{ends_with, signal};
use crate::tiny::Tiny;

/// More lines than wait in the queue of the log, one for each request.
const NUM_REQUESTS: usize = 2_500;

/// A pipe that takes no byte more.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut filling = writer.try_clone().expect("a clone");
    let (wrote, is_written) = mpsc::channel();
    // Ends with an error when the reader is dropped.
    thread::spawn(move || while filling.write_all(b".").is_ok() && wrote.send(()).is_ok() {});
    while is_written.recv_timeout(Duration::from_millis(200)).is_ok() {}
    (reader, writer)
}

/// A server on a port that was free a moment ago, with `log` as its error stream.
fn serve(tiny: &Tiny, log: &PipeWriter) -> (Child, String) {
    for _ in 0..5 {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = free.local_addr().expect("an address");
        drop(free);
        let port = address.port().to_string();
        let mut server = assay(&tiny.with_model(&["serve", "--port", &port]))
            .stdout(Stdio::null())
            .stderr(log.try_clone().expect("a clone"))
            .spawn()
            .expect("the binary is built");
        let deadline = Instant::now() + Duration::from_secs(60);
        let url = format!("http://{address}");
        while server.try_wait().expect("a status").is_none() {
            if is_healthy(&url) {
                return (server, url);
            }
            assert!(Instant::now() < deadline, "the server does not answer");
            thread::sleep(Duration::from_millis(20));
        }
        // Somebody else took the port.
    }
    panic!("no port stays free");
}

fn is_healthy(url: &str) -> bool {
    let asked = ureq::get(format!("{url}/health"))
        .config()
        .timeout_global(Some(Duration::from_secs(20)))
        .build()
        .call();
    asked.is_ok_and(|reply| reply.status() == 200)
}

#[test]
fn a_server_whose_log_nobody_reads_answers_and_ends() {
    let tiny = Tiny::new();
    let (reader, log) = full_pipe();
    let (mut server, url) = serve(&tiny, &log);
    let agent = ureq::Agent::new_with_defaults();
    for number in 0..NUM_REQUESTS {
        let reply = agent
            .get(format!("{url}/v1/models"))
            .config()
            .timeout_global(Some(Duration::from_secs(20)))
            .build()
            .call();
        assert!(reply.is_ok(), "request {number}: {reply:?}");
    }
    // It waits a second for a reader of its last lines, and then for none.
    signal(&server, "TERM");
    ends_with(&mut server, 0);
    drop(reader);
}

#[test]
fn a_log_that_is_read_late_says_how_many_lines_are_missing() {
    let tiny = Tiny::new();
    let (reader, log) = full_pipe();
    let (mut server, url) = serve(&tiny, &log);
    let agent = ureq::Agent::new_with_defaults();
    for _ in 0..NUM_REQUESTS {
        agent
            .get(format!("{url}/v1/models"))
            .call()
            .expect("answered");
    }
    drop(log);
    let (line, lines) = mpsc::channel();
    thread::spawn(move || {
        let read = BufReader::new(reader).lines().map_while(Result::ok);
        read.for_each(|read| drop(line.send(read)));
    });
    // A line that comes when there is room brings the notice with it.
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        agent
            .get(format!("{url}/v1/models"))
            .call()
            .expect("answered");
        let mut seen = lines.try_iter();
        if seen.any(|line| line.contains("log lines dropped") && line.contains("num_dropped=")) {
            break;
        }
        assert!(
            Instant::now() < deadline,
            "no word of lines that are missing"
        );
    }
    signal(&server, "TERM");
    ends_with(&mut server, 0);
    let rest: Vec<String> = lines.iter().collect();
    assert!(
        rest.iter().any(|line| line.contains("all work is done")),
        "the last lines are written before the end: {rest:?}"
    );
}
