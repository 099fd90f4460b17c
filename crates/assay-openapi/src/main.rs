//! Writes the OpenAPI document to the standard output.
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
    match std::io::stdout().write_all(api.text().as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
