//! A server in a process of its own, asked over HTTP.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::binary::assay;

/// Killed when it is dropped, without a chance to tidy up.
pub(crate) struct Serving {
    child: Child,
    url: String,
    /// What it logs beyond the address goes nowhere, but must not fill a pipe.
    _log: std::thread::JoinHandle<()>,
}

impl Serving {
    /// Starts `assay serve` with `args` on a free port.
    pub(crate) fn start(args: &[&str]) -> Self {
        let mut child = assay(&[&["serve", "--port", "0"], args].concat())
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("the binary is built");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let mut seen = String::new();
        let url = loop {
            let line = lines.next().unwrap_or_else(|| panic!("it ended: {seen}"));
            let line = line.expect("text");
            if let Some((_, address)) = line.split_once("serving on ") {
                break address.trim().to_owned();
            }
            seen.push_str(&line);
            seen.push('\n');
        };
        let log = std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self {
            child,
            url,
            _log: log,
        }
    }

    /// The reply to a request, if a whole one came with status 200.
    pub(crate) fn ask(&self, path: &str, body: &Value) -> Option<Value> {
        ask(&self.url, path, body)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// As `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it has ended");
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn ask(url: &str, path: &str, body: &Value) -> Option<Value> {
    let mut response = ureq::post(format!("{url}{path}"))
        .header("content-type", "application/json")
        .send(body.to_string())
        .ok()?;
    let text = response.body_mut().read_to_string().ok()?;
    serde_json::from_str(&text).ok()
}
