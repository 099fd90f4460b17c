//! Where it serves, and where it writes: settings, port, log, cache, ledger, connections.

use std::fs;
use std::io::{self, IsTerminal};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use assay_server::ledger::LedgerReader;

use crate::config::ServeConfig;
use crate::system;

use super::Check;

/// Files that are open beside connections: the model, the ledger, the library of a device.
const OTHER_FILES: usize = 64;

pub(super) fn settings(config: &ServeConfig) -> Check {
    let from = match &config.file {
        Some(path) => format!("flags, variables and {}", path.display()),
        None => "flags and variables; no configuration file".to_owned(),
    };
    Check::ok("settings", from)
}

pub(super) fn checks(config: &ServeConfig) -> Vec<Check> {
    let mut checks = vec![
        cache(&config.model.cache_dir),
        port(SocketAddr::new(config.host, config.port)),
        log(),
        connections(system::max_open_files(), config.limits.num_connections),
    ];
    if !config.host.is_loopback() {
        checks.push(network(config));
    }
    if let Some(path) = &config.ledger {
        checks.push(ledger(path));
    }
    checks
}

fn cache(folder: &Path) -> Check {
    let shown = folder.display().to_string();
    // What is not there yet is made in the nearest folder that is.
    let there = folder.ancestors().find(|folder| folder.exists());
    let written = there.map(|folder| tempfile::tempfile_in(nonempty(folder)));
    match written {
        Some(Ok(_)) => Check::ok("cache", shown),
        Some(Err(error)) => Check::warn(
            "cache",
            format!("{shown}: {error}"),
            "models cannot be fetched into it; make it writable, or give another --cache-dir",
        ),
        None => Check::warn(
            "cache",
            format!("{shown} is nowhere"),
            "give another --cache-dir",
        ),
    }
}

fn port(address: SocketAddr) -> Check {
    match TcpListener::bind(address) {
        Ok(_) if address.port() == 0 => Check::ok("port", format!("{address}: a free one")),
        Ok(_) => Check::ok("port", format!("{address} is free")),
        Err(error) => Check::fail(
            "port",
            format!("{address}: {error}"),
            match error.kind() {
                io::ErrorKind::AddrInUse => "stop what listens there, or give another --port",
                io::ErrorKind::PermissionDenied => {
                    "ports below 1024 want privileges: give another --port"
                }
                _ => "give an address of this machine with --host, and another --port",
            },
        ),
    }
}

fn log() -> Check {
    let stderr = fs::read_link("/proc/self/fd/2").unwrap_or_default();
    let shown = stderr.to_string_lossy();
    let found = if io::stderr().is_terminal() {
        "the error stream, a terminal".to_owned()
    } else if shown.starts_with("pipe:") || shown.starts_with("socket:") {
        "the error stream, a pipe: lines that nobody reads are dropped and counted".to_owned()
    } else if shown == "/dev/null" {
        let found = "the error stream goes nowhere: faults will not be seen";
        return Check::warn("log", found, "let a file or a log collector have it");
    } else if shown.is_empty() {
        "the error stream".to_owned()
    } else {
        format!("the error stream, {shown}")
    };
    Check::ok("log", found)
}

fn connections(max_open: Option<usize>, wanted: usize) -> Check {
    match max_open {
        None => Check::ok("open files", "this system does not tell"),
        Some(usize::MAX) => Check::ok("open files", "no limit"),
        Some(limit) if limit < wanted + OTHER_FILES => Check::warn(
            "open files",
            format!("{limit} at most, and {wanted} connections may come"),
            format!(
                "`ulimit -n {}` before the start, or LimitNOFILE= of the service",
                wanted + OTHER_FILES
            ),
        ),
        Some(limit) => Check::ok("open files", format!("{limit} at most")),
    }
}

fn network(config: &ServeConfig) -> Check {
    let host = config.host;
    if config.api_keys.is_empty() {
        let found = format!("{host} is open to whoever reaches it, without a key");
        return Check::warn(
            "network",
            found,
            "set ASSAY_API_KEY and leave --insecure out",
        );
    }
    Check::ok("network", format!("{host}, with a key"))
        .with_advice("keys and texts travel as they are: put a proxy with TLS in front")
}

fn ledger(path: &Path) -> Check {
    let shown = path.display().to_string();
    let advice = "give a path in a folder that can be written with --ledger";
    if path.exists() {
        return match LedgerReader::open(path) {
            Ok(_) => Check::ok("ledger", shown),
            Err(error) => Check::fail("ledger", format!("{shown}: {error}"), advice),
        };
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    match tempfile::tempfile_in(nonempty(folder)) {
        Ok(_) => Check::ok("ledger", format!("{shown}: begun at the start")),
        Err(error) => Check::fail("ledger", format!("{shown}: {error}"), advice),
    }
}

fn nonempty(folder: &Path) -> &Path {
    match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn a_port_that_is_taken_is_named() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let check = port(taken.local_addr().unwrap());
        assert_eq!(check.level, Level::Fail, "{check:?}");
        assert!(check.advice.unwrap().contains("--port"));
        assert_eq!(port(SocketAddr::from(([127, 0, 0, 1], 0))).level, Level::Ok);
        // An address of documents, so of no machine.
        let check = port(SocketAddr::from(([192, 0, 2, 1], 8080)));
        assert_eq!(check.level, Level::Fail, "{check:?}");
        assert!(check.advice.unwrap().contains("--host"));
    }

    #[test]
    fn few_open_files_are_worth_a_word() {
        assert_eq!(connections(Some(1_024), 4_096).level, Level::Warn);
        assert_eq!(connections(Some(8_192), 4_096).level, Level::Ok);
        assert_eq!(connections(Some(usize::MAX), 4_096).level, Level::Ok);
    }

    #[test]
    fn folders_that_are_not_there_are_held_against_those_that_are() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(cache(&dir.path().join("a/b")).level, Level::Ok);
        assert_eq!(ledger(&dir.path().join("x.sqlite")).level, Level::Ok);
        assert_eq!(ledger(&dir.path().join("a/x.sqlite")).level, Level::Fail);
        let other = dir.path().join("other");
        fs::write(&other, "no ledger").unwrap();
        assert_eq!(ledger(&other).level, Level::Fail);
    }
}
