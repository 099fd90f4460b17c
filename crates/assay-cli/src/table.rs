//! A small table of a reply's tokens: text, probability and the runners-up, coloured on a terminal.

use std::fmt::Write;

use assay_engine::{Entry, TopLogprob};

/// Colour follows the probability of the token that was chosen.
const LEVELS: [(f64, &str); 4] = [(0.9, "32"), (0.5, "36"), (0.2, "33"), (0.0, "31")];
const TEXT_COLUMNS: usize = 16;
const BAR_COLUMNS: usize = 20;

/// Whether to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    /// Escape sequences for a terminal.
    On,
    /// Plain text.
    Off,
}

impl Colour {
    /// On for a terminal, off for a file or a pipe.
    pub(crate) fn for_stdout() -> Self {
        use std::io::IsTerminal;
        if std::io::stdout().is_terminal() { Self::On } else { Self::Off }
    }

    /// `text` in the colour of `probability`.
    pub(crate) fn paint(self, text: &str, probability: f64) -> String {
        let code = LEVELS.iter().find(|(floor, _)| probability >= *floor).map_or("31", |(_, code)| code);
        match self {
            Self::On => format!("\x1b[{code}m{text}\x1b[0m"),
            Self::Off => text.to_owned(),
        }
    }
}

/// One line a token: its text, its probability with a bar, and up to `num_others` other candidates.
///
/// `display` turns a token id into readable text.
pub(crate) fn render(
    entries: &[Entry],
    num_others: usize,
    colour: Colour,
    display: &dyn Fn(u32) -> String,
) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "  {:<TEXT_COLUMNS$} {:>8}  {:<BAR_COLUMNS$}  instead", "token", "prob", "");
    for entry in entries {
        let Some(scores) = &entry.output.logprobs else { continue };
        let probability = percent(scores.logprob) / 100.0;
        let filled = (probability * BAR_COLUMNS as f64).round() as usize;
        let bar = format!("{:<BAR_COLUMNS$}", "█".repeat(filled.min(BAR_COLUMNS)));
        let others: Vec<String> = scores
            .top_logprobs
            .iter()
            .filter(|top| top.token_id != entry.output.token_id)
            .take(num_others)
            .map(|top: &TopLogprob| format!("{} {:.1}%", quote(&display(top.token_id)), percent(top.logprob)))
            .collect();
        let text = pad(&quote(&display(entry.output.token_id)), TEXT_COLUMNS);
        let _ = writeln!(
            out,
            "  {} {:>7.2}%  {}  {}",
            colour.paint(&text, probability),
            percent(scores.logprob),
            colour.paint(&bar, probability),
            others.join("  ")
        );
    }
    out
}

/// Display only: no reported number passes through here.
fn percent(logprob: f64) -> f64 {
    logprob.exp() * 100.0
}

/// Text in quotes with its control characters made visible, cut to the column.
fn quote(text: &str) -> String {
    let escaped: String = text.chars().flat_map(char::escape_debug).collect();
    let shown: String = escaped.chars().take(TEXT_COLUMNS - 3).collect();
    let cut = if shown.len() < escaped.len() { "…" } else { "" };
    format!("\"{shown}{cut}\"")
}

fn pad(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(text.chars().count());
    format!("{text}{}", " ".repeat(missing))
}

#[cfg(test)]
mod tests {
    use assay_engine::{TokenLogprobs, TokenOutput};

    use super::*;

    #[test]
    fn each_scored_token_has_a_line_with_its_probability_and_the_others() {
        let top = |token_id, logprob| TopLogprob { token_id, logprob };
        let logprobs = TokenLogprobs { logprob: -0.0, top_logprobs: vec![top(1, -0.0), top(2, -3.0)] };
        let output = TokenOutput { token_id: 1, logprobs: Some(logprobs) };
        let entry = Entry { output, bytes: b"Hi\n".to_vec(), text: "Hi\n".to_owned() };
        let display = |id| if id == 1 { "Hi\n".to_owned() } else { "Yo".to_owned() };
        let plain = render(std::slice::from_ref(&entry), 2, Colour::Off, &display);
        assert!(plain.contains("\"Hi\\n\"") && plain.contains("100.00%") && plain.contains("\"Yo\" 5.0%"), "{plain}");
        assert!(!plain.contains('\x1b'));
        assert!(render(&[entry], 2, Colour::On, &display).contains("\x1b[32m"));
    }
}
