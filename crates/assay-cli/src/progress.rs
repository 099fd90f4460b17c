//! Progress bars for long work: drawn on a terminal, silent elsewhere.

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
