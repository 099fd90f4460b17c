//! `cargo xtask test`: fixtures, the Rust suite, then the real clients and the documentation's pages against a real
//! server.

use anyhow::Result;
use clap::Args;

use crate::python::ClientPython;
use crate::run::{cargo, command, run as execute, succeeds};

#[derive(Args, Default)]
pub(crate) struct TestArgs {
    /// Leave out the real models, the clients and the pages; needs no network
    #[arg(long)]
    quick: bool,
    /// Only the clients and the pages
    #[arg(long, conflicts_with = "quick")]
    clients: bool,
}

/// Runs the tests.
///
/// # Errors
/// If anything fails; later parts are not run then.
pub(crate) fn run(args: TestArgs) -> Result<()> {
    if !args.quick {
        crate::fixtures::run()?;
    }
    if !args.clients {
        run_rust_tests(args.quick)?;
        execute(cargo(&["test", "--workspace", "--doc", "--quiet"]))?;
    }
    if args.quick {
        return Ok(());
    }
    execute(cargo(&["build", "--package", "assay-cli"]))?;
    run_clients()
}

/// Folders of tests by clients, with the names of their environments.
const CLIENTS: [(&str, &str); 4] = [
    ("clients", "tests/clients"),
    ("instructor", "tests/clients/instructor"),
    ("structured-logprobs", "tests/clients/structured_logprobs"),
    ("docs", "tests/docs"),
];
const NODE_CLIENTS: [&str; 2] = ["tests/clients/node", "tests/docs/node"];

fn run_clients() -> Result<()> {
    if succeeds(command_of("npm", &["--version"])) {
        for folder in NODE_CLIENTS {
            execute(command_of("npm", &["ci", "--silent", "--prefix", folder]))?;
        }
        crate::console::check()?;
    } else {
        eprintln!("npm is not installed: the Node clients and the console's tests are left out");
    }
    for (name, tests) in CLIENTS {
        let python = ClientPython::set_up(name, tests)?;
        let mut clients = python.command();
        clients.args(["-m", "pytest", "-q", tests]);
        let others = CLIENTS.iter().map(|(_, other)| *other);
        for inner in others.filter(|other| *other != tests && other.starts_with(tests)) {
            clients.arg(format!("--ignore={inner}"));
        }
        execute(clients)?;
    }
    Ok(())
}

fn command_of(program: &str, args: &[&str]) -> std::process::Command {
    let mut command = command(program);
    command.args(args);
    command
}

/// nextest where it is installed (it kills hangs and runs each test alone), else cargo's own runner.
fn run_rust_tests(quick: bool) -> Result<()> {
    let nextest = succeeds(cargo(&["nextest", "--version"]));
    let command = if nextest {
        let profile = if std::env::var_os("CI").is_some() {
            "ci"
        } else {
            "default"
        };
        let mut command = cargo(&["nextest", "run", "--workspace", "--profile", profile]);
        if quick {
            command.args(["-E", "not test(real_model)"]);
        }
        command
    } else {
        eprintln!("cargo-nextest is not installed; using cargo test");
        let mut command = cargo(&["test", "--workspace", "--tests", "--lib", "--bins"]);
        if quick {
            command.args(["--", "--skip", "real_model"]);
        }
        command
    };
    execute(command)
}
