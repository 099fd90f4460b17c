//! A scored text as a page: each token coloured and underlined by its log-probability, its figures beside it and in a table.
//!
//! One file that loads nothing. Whatever the text says is text: no character of it is markup, and control characters, those of
//! the writing direction among them, are shown instead of obeyed.

use std::fmt::Write;

use assay_kernels::exp64::exp64;

use super::report::{Report, Token};

/// The page around its parts: title, facts, legend, text, further column heads, rows.
const PAGE: &str = include_str!("heat_map.html");
const PART: &str = "%%";

/// From which probability on a token has which heat, and what the legend says.
const HEATS: [(f64, &str); 6] = [
    (0.5, "50 % and more"),
    (0.1, "10 to 50 %"),
    (0.01, "1 to 10 %"),
    (1e-3, "0.1 to 1 %"),
    (1e-4, "0.01 to 0.1 %"),
    (0.0, "less"),
];

/// The page of `report`.
pub(super) fn page(report: &Report) -> String {
    let heads = if report.tokens.iter().any(|token| !token.top.is_empty()) {
        "<th scope=\"col\" class=\"t\">most likely</th>"
    } else {
        ""
    };
    let parts = [
        escape(&report.source),
        facts(report),
        legend(),
        report.tokens.iter().map(text_token).collect(),
        heads.to_owned(),
        report.tokens.iter().map(table_row).collect(),
    ];
    let mut frame = PAGE.split(PART);
    let mut page = frame.next().unwrap_or_default().to_owned();
    for (part, after) in parts.iter().zip(frame) {
        page.push_str(part);
        page.push_str(after);
    }
    page
}

fn facts(report: &Report) -> String {
    let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| value.to_string());
    let facts = [
        ("text", report.source.clone()),
        ("model", report.model.clone()),
        ("arithmetic", report.numerics.to_owned()),
        ("fingerprint", report.system_fingerprint.clone()),
        ("tokens", report.tokens.len().to_string()),
        ("scored", report.num_scored.to_string()),
        ("sum", number(report.sum)),
        ("perplexity", number(report.perplexity)),
    ];
    let shown = facts
        .iter()
        .map(|(name, value)| format!("<div><dt>{name}</dt><dd>{}</dd></div>", escape(value)));
    shown.collect()
}

fn legend() -> String {
    let shown = HEATS
        .iter()
        .enumerate()
        .map(|(heat, (_, range))| format!("<li><span class=\"h{heat}\">{range}</span></li>"));
    shown.collect()
}

fn text_token(token: &Token) -> String {
    let class = match token.logprob {
        Some(logprob) => format!("h{}", heat(logprob)),
        None => "none".to_owned(),
    };
    let (title, text) = (escape(&figures(token)), shown_text(&token.text));
    format!("<i class=\"{class}\" title=\"{title}\">{text}</i>")
}

fn heat(logprob: f64) -> usize {
    let probability = exp64(logprob);
    let found = HEATS.iter().position(|(from, _)| probability >= *from);
    found.unwrap_or(HEATS.len() - 1)
}

/// All of a token's figures, in words.
fn figures(token: &Token) -> String {
    let mut out = format!("{:?}, token {}", token.token, token.position);
    match (token.logprob, token.rank) {
        (Some(logprob), Some(rank)) => {
            let _ = write!(
                out,
                ": {}, log-probability {logprob}, rank {rank}",
                percent(logprob)
            );
        }
        _ => out.push_str(": no score, nothing stands before it"),
    }
    for other in &token.top {
        let _ = write!(out, "\n{} {:?}", percent(other.logprob), other.token);
    }
    out
}

fn table_row(token: &Token) -> String {
    let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| value.to_string());
    let tops: Vec<String> = token
        .top
        .iter()
        .map(|other| format!("{:?} {}", other.token, percent(other.logprob)))
        .collect();
    let top = if tops.is_empty() {
        String::new()
    } else {
        format!("<td class=\"t\">{}</td>", escape(&tops.join("  ")))
    };
    format!(
        "<tr><td>{}</td><td>{}</td><td class=\"t\">{}</td><td>{}</td><td>{}</td><td>{}</td>{top}</tr>\n",
        token.position,
        token.token_id,
        escape(&format!("{:?}", token.token)),
        number(token.logprob),
        token.logprob.map_or("–".to_owned(), percent),
        token.rank.map_or("–".to_owned(), |rank| rank.to_string()),
    )
}

/// For people; the log-probability beside it is the figure.
fn percent(logprob: f64) -> String {
    let percent = 100.0 * exp64(logprob);
    if percent >= 0.01 {
        format!("{percent:.2} %")
    } else {
        format!("{percent:.1e} %")
    }
}

/// A token in the running text. Line feeds and tabs are shown and done, other control characters only shown; a token that
/// only begins a character is a dot.
fn shown_text(text: &str) -> String {
    if text.is_empty() {
        return "<b>·</b>".to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => shown.push_str("<b>↵</b>\n"),
            '\t' => shown.push_str("<b>→</b>\t"),
            other => push_escaped(&mut shown, other),
        }
    }
    shown
}

/// `text` as HTML's text or attribute.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        push_escaped(&mut escaped, character);
    }
    escaped
}

fn push_escaped(out: &mut String, character: char) {
    match character {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '"' => out.push_str("&quot;"),
        '\'' => out.push_str("&#39;"),
        '\n' => out.push_str("&#10;"),
        // What turns the direction of writing would turn all that stands behind it.
        '\u{200e}'
        | '\u{200f}'
        | '\u{061c}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}' => {
            let _ = write!(out, "⟨U+{:04X}⟩", u32::from(character));
        }
        control if control.is_control() => {
            let _ = write!(out, "⟨U+{:04X}⟩", u32::from(control));
        }
        other => out.push(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_text_says_is_markup() {
        let hostile = "</i><script>alert(1)</script>\" onclick='x' &amp; \u{202e}\u{0}%%";
        for written in [escape(hostile), shown_text(hostile)] {
            assert!(
                !written.contains(['<', '>', '"', '\'', '\u{202e}', '\0']),
                "{written}"
            );
            assert!(written.contains("&lt;script&gt;") && written.contains("&amp;amp;"));
            assert!(written.contains("⟨U+202E⟩⟨U+0000⟩"));
        }
        assert_eq!(shown_text("a\n"), "a<b>↵</b>\n");
        assert_eq!(shown_text(""), "<b>·</b>");
    }

    #[test]
    fn the_page_has_a_place_for_each_part() {
        assert_eq!(PAGE.split(PART).count(), 7);
        for outside in ["http:", "https:", "src=", "@import", "url("] {
            assert!(!PAGE.contains(outside), "{outside}");
        }
    }

    #[test]
    fn heat_grows_as_probability_falls() {
        let heats: Vec<usize> = [0.0, -0.5, -1.0, -3.0, -6.0, -8.0, -12.0, -800.0]
            .into_iter()
            .map(heat)
            .collect();
        assert_eq!(heats, [0, 0, 1, 2, 3, 4, 5, 5]);
        assert_eq!(percent(0.0), "100.00 %");
        assert_eq!(percent(-12.0), "6.1e-4 %");
    }
}
