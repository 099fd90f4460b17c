//! The part of the compiler's Lark dialect that describes texts and nothing else.

use std::fmt::Write as _;

/// Directives that only name what is matched.
const PLAIN_DIRECTIVES: [&str; 2] = ["%ignore", "%import"];

/// Why [`has_stop_group`] refuses.
pub(super) const STOP_GROUP: &str = "a group named `stop`";

/// Whether a regular expression stands here with a group of that name: the compiler reads it as "what
/// follows, but is not spelt".
pub(super) fn has_stop_group(text: &str) -> bool {
    text.contains("(?P<stop>") || text.contains("(?<stop>")
}

/// Why a grammar is more than a plain language of texts; `None` if it is not. Errors of syntax are
/// left to the compiler.
pub(super) fn not_plain(grammar: &str) -> Option<String> {
    let Some(bare) = without_literals(grammar) else {
        return Some("a regular expression over several lines".to_owned());
    };
    if has_stop_group(grammar) {
        return Some(STOP_GROUP.to_owned());
    }
    if let Some(name) =
        names_after(&bare, '%').find(|name| !PLAIN_DIRECTIVES.contains(&name.as_str()))
    {
        return Some(format!("the directive `{name}`"));
    }
    if bare.contains('@') {
        return Some("a reference to another grammar (`@`)".to_owned());
    }
    if bare.contains('<') {
        return Some("a special token (`<...>`): constraints are on text".to_owned());
    }
    bare.lines().find_map(|line| {
        let attributes = attributes(line)?;
        Some(format!("attributes of a rule (`{attributes}`)"))
    })
}

/// `[...]` between a rule's name and its colon.
fn attributes(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let name_end = line.find(|c: char| !(c.is_ascii_alphanumeric() || "_-?!:".contains(c)))?;
    let rest = line[name_end..].trim_start();
    if name_end == 0 || !rest.starts_with('[') {
        return None;
    }
    let end = rest.find(']')? + 1;
    rest[end..]
        .trim_start()
        .starts_with(':')
        .then_some(&rest[..end])
}

fn names_after(text: &str, mark: char) -> impl Iterator<Item = String> + '_ {
    text.match_indices(mark).map(move |(start, _)| {
        let rest = &text[start + mark.len_utf8()..];
        let name = rest
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_');
        std::iter::once(mark).chain(name).collect()
    })
}

/// Stands for a string or a regular expression.
pub(super) const LITERAL: char = '\u{1}';

/// The grammar without comments, each string and regular expression a [`LITERAL`], their flags with them; lines stay
/// lines. `None` where a regular
/// expression does not end on its line: what follows it could be read in two ways.
pub(super) fn without_literals(grammar: &str) -> Option<String> {
    let mut bare = String::with_capacity(grammar.len());
    let mut rest = grammar.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '/' if rest.peek() == Some(&'/') => while rest.next_if(|c| *c != '\n').is_some() {},
            '"' | '/' => {
                let mut is_closed = false;
                while let Some(inner) = rest.next_if(|c| *c != '\n') {
                    match inner {
                        '\\' => drop(rest.next_if(|c| *c != '\n')),
                        _ if inner == c => {
                            is_closed = true;
                            break;
                        }
                        _ => {}
                    }
                }
                if c == '/' && !is_closed {
                    return None;
                }
                while is_closed && rest.next_if(|c| "imslux".contains(*c)).is_some() {}
                bare.push(LITERAL);
            }
            _ => bare.push(c),
        }
    }
    Some(bare)
}

/// A grammar of one terminal: any of `options`.
pub(super) fn choice(options: &[String]) -> String {
    let mut grammar = "start: OPTION\nOPTION: ".to_owned();
    for (index, option) in options.iter().enumerate() {
        let separator = if index == 0 { "" } else { " | " };
        write!(grammar, "{separator}{}", literal(option))
            .expect("writing to a string does not fail");
    }
    grammar
}

/// Exactly `text`, as the dialect writes it.
pub(super) fn literal(text: &str) -> String {
    let literal = serde_json::Value::from(text).to_string();
    // The dialect's strings are JSON's, but for this character.
    literal.replace('\u{7f}', "\\u007f")
}
