//! Downloads from a server of this process: whole, damaged, broken off, gone on with.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc;

use sha2::{Digest, Sha256};

use super::*;
use crate::digest::hex;

const BODY: &[u8] = b"GGUF not really";

/// Answers one request after another with these replies; what range each asked for comes through the channel.
fn serve(replies: Vec<Vec<u8>>) -> (String, mpsc::Receiver<Option<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, ranges) = mpsc::channel();
    std::thread::spawn(move || {
        for reply in replies {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let head: Vec<String> = lines
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .collect();
            let range = head.iter().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("range").then(|| value.to_owned())
            });
            // Not every test asks.
            let _ = sender.send(range);
            stream.write_all(&reply).unwrap();
        }
    });
    (format!("http://{address}/model.gguf"), ranges)
}

/// A reply that announces `length` bytes and has `body`.
fn reply(status: &str, headers: &str, length: usize, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn whole(body: &[u8]) -> Vec<u8> {
    reply("200 OK", "", body.len(), body)
}

fn model(url: String) -> CatalogModel {
    CatalogModel {
        name: "test".into(),
        file: "test.gguf".into(),
        bytes: BODY.len() as u64,
        sha256: hex(&Sha256::digest(BODY)),
        license: None,
        source: vec![Source::Url { url }],
    }
}

fn fetch(model: &CatalogModel, dir: &Path) -> Result<Pulled> {
    pull(model, dir, &Interrupt::default())
}

/// What is in the cache beside the lock and the remembered hashes.
fn left_in(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let names = names.map(|entry| entry.file_name().into_string().unwrap());
    let known = [LOCK_NAME, "digests.json"];
    names
        .filter(|name| !known.contains(&name.as_str()))
        .collect()
}

#[test]
fn a_download_is_kept_only_when_size_and_hash_match() {
    let dir = tempfile::tempdir().unwrap();
    let good = model(serve(vec![whole(BODY)]).0);
    let pulled = fetch(&good, dir.path()).unwrap();
    assert_eq!(fs::read(&pulled.path).unwrap(), BODY);
    assert!(pulled.is_new);
    // Now it is there: the dead server is not asked again.
    assert!(!fetch(&good, dir.path()).unwrap().is_new);
    assert_eq!(left_in(dir.path()), ["test.gguf"]);

    for (other, expected) in [
        (&b"GGUF not reallx"[..], "failed its check"),
        (b"GGUF not really!", "more than"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let bad = model(serve(vec![whole(other)]).0);
        let error = format!("{:#}", fetch(&bad, dir.path()).unwrap_err());
        assert!(error.contains(expected), "{error}");
        assert!(left_in(dir.path()).is_empty(), "{:?}", left_in(dir.path()));
    }
}

#[test]
fn a_damaged_file_in_the_cache_is_fetched_again() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("test.gguf"), b"GGUF not realXX").unwrap();
    let pulled = fetch(&model(serve(vec![whole(BODY)]).0), dir.path()).unwrap();
    assert_eq!(fs::read(pulled.path).unwrap(), BODY);
}

/// A first attempt that breaks off behind seven bytes, and what the second is answered.
fn check_goes_on(second: Vec<u8>, fetched: &str) {
    let dir = tempfile::tempdir().unwrap();
    let broken = reply("200 OK", "", BODY.len(), &BODY[..7]);
    let (url, ranges) = serve(vec![broken, second]);
    let model = model(url);
    let error = format!("{:#}", fetch(&model, dir.path()).unwrap_err());
    assert!(error.contains("cannot download"), "{error}");
    assert!(!dir.path().join("test.gguf").exists());
    let pulled = fetch(&model, dir.path());
    assert_eq!(ranges.recv().unwrap(), None);
    assert_eq!(ranges.recv().unwrap().as_deref(), Some("bytes=7-"));
    let pulled = pulled.unwrap_or_else(|error| panic!("{fetched}: {error:#}"));
    assert_eq!(fs::read(pulled.path).unwrap(), BODY, "{fetched}");
    assert_eq!(left_in(dir.path()), ["test.gguf"], "{fetched}");
}

#[test]
fn a_download_that_broke_off_goes_on() {
    let rest = &BODY[7..];
    let range = "Content-Range: bytes 7-14/15\r\n";
    check_goes_on(
        reply("206 Partial Content", range, rest.len(), rest),
        "the rest",
    );
    check_goes_on(whole(BODY), "all of it again");
}

#[test]
fn parts_that_are_whole_are_not_fetched_again() {
    let dir = tempfile::tempdir().unwrap();
    let refused = reply("503 Service Unavailable", "", 0, b"");
    let (first, asked_first) = serve(vec![whole(&BODY[..4])]);
    let (second, asked_second) = serve(vec![refused, whole(&BODY[4..])]);
    let mut model = model(first);
    model.source.push(Source::Url { url: second });
    let error = format!("{:#}", fetch(&model, dir.path()).unwrap_err());
    assert!(error.contains("503"), "{error}");
    let pulled = fetch(&model, dir.path()).unwrap();
    assert_eq!(fs::read(pulled.path).unwrap(), BODY);
    assert_eq!(asked_first.iter().count(), 1);
    assert_eq!(asked_second.iter().count(), 2);
}

#[test]
fn two_at_once_fetch_it_once() {
    let dir = tempfile::tempdir().unwrap();
    let (url, asked) = serve(vec![whole(BODY)]);
    let model = model(url);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| fetch(&model, dir.path()).unwrap());
        }
    });
    assert_eq!(asked.iter().count(), 1);
}
