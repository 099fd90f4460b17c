//! A small table of a reply's tokens: text, probability and the other candidates, coloured on a terminal.

use std::fmt::Write;

use crate::terminal::Colour;

/// Colour follows the probability of the token that was chosen.
const LEVELS: [(f64, &str); 4] = [(0.9, "32"), (0.5, "36"), (0.2, "33"), (0.0, "31")];
const TEXT_COLUMNS: usize = 16;
const BAR_COLUMNS: usize = 20;

impl Colour {
    /// `text` in the colour of `probability`.
    pub(crate) fn paint(self, text: &str, probability: f64) -> String {
        let code = LEVELS
            .iter()
            .find(|(floor, _)| probability >= *floor)
            .map_or("31", |(_, code)| code);
        match self {
            Self::On => format!("\x1b[{code}m{text}\x1b[0m"),
            Self::Off => text.to_owned(),
        }
    }
}

/// One token of a reply with its scores.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TokenRow {
    /// The token as text.
    pub(crate) token: String,
    /// Natural log of its probability.
    pub(crate) logprob: f64,
    /// Other candidates, most likely first.
    pub(crate) others: Vec<(String, f64)>,
}

/// One line a token: its text, its probability with a bar, and the other candidates.
pub(crate) fn render(rows: &[TokenRow], colour: Colour) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "  {:<TEXT_COLUMNS$} {:>8}  {:<BAR_COLUMNS$}  instead",
        "token", "prob", ""
    );
    for row in rows {
        let probability = percent(row.logprob) / 100.0;
        let filled = (probability * BAR_COLUMNS as f64).round() as usize;
        let bar = pad(&"█".repeat(filled.min(BAR_COLUMNS)), BAR_COLUMNS);
        let others: Vec<String> = row
            .others
            .iter()
            .map(|(token, logprob)| format!("{} {:.1}%", quote(token), percent(*logprob)))
            .collect();
        let _ = writeln!(
            out,
            "  {} {:>7.2}%  {}  {}",
            colour.paint(&pad(&quote(&row.token), TEXT_COLUMNS), probability),
            percent(row.logprob),
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

/// `text` on one line: control characters, backslashes and double quotes escaped.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            // `escape_debug` escapes it for a character literal, which nobody reads here.
            '\'' => shown.push(character),
            _ => shown.extend(character.escape_debug()),
        }
    }
    shown
}

/// Text in quotes with its control characters made visible, cut to the column.
fn quote(text: &str) -> String {
    let escaped = visible(text);
    let shown: String = escaped.chars().take(TEXT_COLUMNS - 3).collect();
    let cut = if shown.len() < escaped.len() {
        "…"
    } else {
        ""
    };
    format!("\"{shown}{cut}\"")
}

fn pad(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(text.chars().count());
    format!("{text}{}", " ".repeat(missing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_has_a_line_with_its_probability_and_the_others() {
        let row = TokenRow {
            token: "Hi\n".to_owned(),
            logprob: -0.0,
            others: vec![("Yo".to_owned(), -3.0)],
        };
        let plain = render(std::slice::from_ref(&row), Colour::Off);
        assert!(
            plain.contains("\"Hi\\n\"")
                && plain.contains("100.00%")
                && plain.contains("\"Yo\" 5.0%"),
            "{plain}"
        );
        assert!(!plain.contains('\x1b'));
        assert!(render(&[row], Colour::On).contains("\x1b[32m"));
    }
}
