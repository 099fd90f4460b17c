//! Writes the OpenAPI document to the standard output; with `--markdown` the page for readers.
#![forbid(unsafe_code)]

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let api = match assay_openapi::document() {
        Ok(api) => api,
        Err(faults) => {
            eprintln!(
                "error: the document cannot be made:\n  {}",
                faults.join("\n  ")
            );
            return ExitCode::FAILURE;
        }
    };
    let text = match std::env::args().nth(1).as_deref() {
        None => api.text(),
        Some("--markdown") => api.markdown(),
        Some(other) => {
            eprintln!("error: {other} is not known; say --markdown or nothing");
            return ExitCode::FAILURE;
        }
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
