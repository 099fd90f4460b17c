//! The project's tasks. `cargo xtask test` runs every test and sets up what they need;
//! `cargo xtask check` is what a change must pass before it is merged.

mod check;
mod console;
mod cuda;
mod faults;
mod fixtures;
mod openapi;
mod python;
mod run;
mod soak;
mod test;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "The project's tasks")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Format, lint, documentation, dependency and tidiness checks, then every test
    Check,
    /// Every test, clients included; fetches what they need
    Test(test::TestArgs),
    /// Compile the device kernels; needed after a change of a `.cu` file
    Cuda,
    /// Build the browser console into the server's assets; needed after a change in `console/`
    Console,
    /// Write the OpenAPI document; needed after a change of requests, replies or routes
    Openapi,
    /// Mixed traffic and sampled cells of the invariance matrix, every bit against the same request alone
    #[command(disable_help_flag = true)]
    Soak(soak::SoakArgs),
    /// Fetch the models and vectors that tests read
    Fixtures,
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Check => check::run(),
        Task::Test(args) => test::run(args),
        Task::Cuda => cuda::build(),
        Task::Console => console::build(),
        Task::Openapi => openapi::write(),
        Task::Soak(args) => soak::run(args),
        Task::Fixtures => fixtures::run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
