//! Progress bars for long work: drawn on a terminal, silent elsewhere.

use assay_models::LoadProgress;
use indicatif::{ProgressBar, ProgressStyle};

/// A bar over bytes, on the error stream.
pub(crate) fn bytes_bar(label: &str, total_bytes: u64) -> ProgressBar {
    let bar = ProgressBar::new(total_bytes);
    let style = ProgressStyle::with_template(
        "{msg:.bold} {bar:32.cyan} {bytes}/{total_bytes} {bytes_per_sec} {eta}",
    )
    .expect("the template names only known fields");
    bar.set_style(style);
    bar.set_message(label.to_owned());
    bar
}

/// Moves a bar over bytes to where a model's loading is.
pub(crate) fn follow_load(bar: &ProgressBar, progress: LoadProgress) {
    bar.set_length(progress.total_bytes);
    bar.set_position(progress.done_bytes);
}

/// A bar over tokens, on the error stream.
pub(crate) fn tokens_bar(label: &str, num_tokens: u64) -> ProgressBar {
    counted_bar(
        label,
        num_tokens,
        "{msg:.bold} {bar:32.cyan} {pos}/{len} tokens {per_sec} {eta}",
    )
}

/// A bar over rows of a file, on the error stream.
pub(crate) fn rows_bar(num_rows: u64) -> ProgressBar {
    counted_bar(
        "deciding",
        num_rows,
        "{msg:.bold} {bar:32.cyan} {pos}/{len} rows {per_sec} {eta}",
    )
}

/// A bar over decisions about one set of questions, on the error stream.
pub(crate) fn decisions_bar(label: &str, num_decisions: u64) -> ProgressBar {
    counted_bar(
        label,
        num_decisions,
        "{msg:.bold} {bar:32.cyan} {pos}/{len} decisions {per_sec} {eta}",
    )
}

/// A bar over pieces of work, on the error stream; the label may change.
pub(crate) fn steps_bar(label: &str, num_steps: u64) -> ProgressBar {
    counted_bar(
        label,
        num_steps,
        "{bar:32.cyan} {pos}/{len} {eta} {msg:.bold}",
    )
}

fn counted_bar(label: &str, length: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::new(length);
    let style =
        ProgressStyle::with_template(template).expect("the template names only known fields");
    bar.set_style(style);
    bar.set_message(label.to_owned());
    bar
}
