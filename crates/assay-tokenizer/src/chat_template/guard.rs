//! Rewrites a template so that no value can outgrow the output limit unseen.
//!
//! The engine counts steps, but `x ~ x` in a loop doubles a text with each step, and text between tags is
//! copied by the kilobyte for one step. So the operands of `~`, `+` and `*` pass through filters that check
//! and account for their size, and long stretches of text become printed strings, which are counted too.
//! Nothing else changes: a template within its limits renders the same bytes.
//!
//! It knows tokens, not grammar; what it does not understand it leaves to the engine's parser to refuse.

use std::ops::Range;

/// Checks an operand of `+`.
pub(super) const ADD: &str = "assay_add_operand";
/// Checks an operand of `~`, which becomes text.
pub(super) const CONCAT: &str = "assay_concat_operand";
/// Checks the left operand of `*` against the right one.
pub(super) const REPEAT: &str = "assay_repeat_operand";

/// Bytes of text that one engine step may print uncounted.
const UNCOUNTED_BYTES_MAX: usize = 512;

/// Most operators in one tag: each may hold a value of the largest size at once.
const OPERATORS_MAX: usize = 256;

/// Why a template cannot be guarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unguardable {
    /// Where, in bytes from the start.
    pub(super) at: usize,
    pub(super) problem: &'static str,
}

/// The rewritten source.
pub(super) fn guard(source: &str) -> Result<String, Unguardable> {
    let mut guarded = String::with_capacity(source.len() + source.len() / 4);
    let mut at = 0;
    let mut in_raw = false;
    while at < source.len() {
        let rest = source.get(at..).unwrap_or_default();
        let open = find_tag(rest, in_raw).map_or(rest.len(), |open| open);
        let text = rest.get(..open).unwrap_or_default();
        push_text(&mut guarded, text, at, in_raw)?;
        at += open;
        let tag = source.get(at..).unwrap_or_default();
        if tag.is_empty() {
            break;
        }
        let tag = tag.get(..tag_len(tag)).unwrap_or(tag);
        match tag_name(tag) {
            "raw" => in_raw = true,
            "endraw" => in_raw = false,
            _ => {}
        }
        if tag.starts_with("{#") {
            guarded.push_str(tag);
        } else {
            push_tag(&mut guarded, tag, at)?;
        }
        at += tag.len();
    }
    Ok(guarded)
}

/// Where the next tag opens; inside a raw block, only its end does.
fn find_tag(text: &str, in_raw: bool) -> Option<usize> {
    let mut from = 0;
    while let Some(brace) = text.get(from..)?.find('{').map(|brace| from + brace) {
        let tag = text.get(brace..)?;
        let opens =
            tag.starts_with("{%") || !in_raw && (tag.starts_with("{{") || tag.starts_with("{#"));
        if opens && (!in_raw || tag_name(tag) == "endraw") {
            return Some(brace);
        }
        from = brace + 1;
    }
    None
}

/// The first word of a block tag.
fn tag_name(tag: &str) -> &str {
    let Some(inner) = tag.strip_prefix("{%") else {
        return "";
    };
    let inner = inner.trim_start_matches(['-', '+']).trim_start();
    let end = inner
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(inner.len());
    inner.get(..end).unwrap_or_default()
}

/// Bytes from a tag's opening through its end; all that is left if it has none.
fn tag_len(tag: &str) -> usize {
    if tag.starts_with("{#") {
        return tag.find("#}").map_or(tag.len(), |end| end + 2);
    }
    let close = if tag.starts_with("{%") { "%}" } else { "}}" };
    let mut depth = 0_usize;
    let mut at = 2;
    while let Some(rest) = tag.get(at..).filter(|rest| !rest.is_empty()) {
        if depth == 0 && rest.starts_with(close) {
            return at + close.len();
        }
        let token = token_len(rest);
        match rest.as_bytes().first() {
            Some(b'{' | b'[' | b'(') => depth += 1,
            Some(b'}' | b']' | b')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += token;
    }
    tag.len()
}

/// Bytes of the token that `text` begins with: a string, a word or number, blanks, or one character.
fn token_len(text: &str) -> usize {
    let Some(first) = text.chars().next() else {
        return 0;
    };
    if first == '"' || first == '\'' {
        let mut escaped = false;
        for (at, character) in text.char_indices().skip(1) {
            match character {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                c if c == first => return at + 1,
                _ => {}
            }
        }
        return text.len();
    }
    let same = |class: fn(char) -> bool| text.find(|c| !class(c)).unwrap_or(text.len());
    if is_word(first) {
        same(is_word)
    } else if first.is_whitespace() {
        same(char::is_whitespace)
    } else if text.starts_with("**") || text.starts_with("//") {
        2
    } else {
        first.len_utf8()
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Text between tags. Its ends stay as they are, because the engine trims blanks beside tags.
fn push_text(guarded: &mut String, text: &str, at: usize, in_raw: bool) -> Result<(), Unguardable> {
    let trimmed = text.trim();
    let blanks = text.len() - trimmed.len();
    let too_long = trimmed.len() > UNCOUNTED_BYTES_MAX;
    if blanks > UNCOUNTED_BYTES_MAX || in_raw && too_long {
        return Err(Unguardable {
            at,
            problem: "a stretch of blanks or raw text is too long",
        });
    }
    // A brace must not meet the braces put behind it.
    let kept = trimmed.find(|c: char| c != '{').unwrap_or(trimmed.len());
    let first = trimmed.get(kept..).and_then(|rest| rest.chars().next());
    let last = trimmed.chars().next_back();
    let (Some(first), Some(last), true) = (first, last, too_long) else {
        guarded.push_str(text);
        return Ok(());
    };
    let start = text.len() - text.trim_start().len() + kept + first.len_utf8();
    let end = text.trim_end().len() - last.len_utf8();
    guarded.push_str(text.get(..start).unwrap_or_default());
    guarded.push_str("{{ \"");
    for character in text.get(start..end).unwrap_or_default().chars() {
        if matches!(character, '"' | '\\') {
            guarded.push('\\');
        }
        guarded.push(character);
    }
    guarded.push_str("\" }}");
    guarded.push_str(text.get(end..).unwrap_or_default());
    Ok(())
}

/// A tag with a filter behind each operand of a growing operator.
fn push_tag(guarded: &mut String, tag: &str, at: usize) -> Result<(), Unguardable> {
    let mut tokens = Vec::new();
    let mut start = 0;
    while let Some(rest) = tag.get(start..).filter(|rest| !rest.is_empty()) {
        let end = start + token_len(rest);
        if !rest.starts_with(char::is_whitespace) {
            tokens.push(start..end);
        }
        start = end;
    }
    let text = |index: usize| {
        tokens
            .get(index)
            .and_then(|range| tag.get(range.clone()))
            .unwrap_or_default()
    };
    let mut inserts: Vec<(usize, String)> = Vec::new();
    for index in 1..tokens.len() {
        let operator = text(index);
        let filter = match operator {
            "~" => CONCAT,
            "+" => ADD,
            "*" => REPEAT,
            _ => continue,
        };
        let closes = matches!(text(index + 1), "%" | "}") && index + 3 >= tokens.len();
        if closes || !ends_operand(text(index - 1)) {
            continue;
        }
        let Some(right) = operand(&tokens, &text, index + 1) else {
            continue;
        };
        let left_end = tokens.get(index - 1).map_or(0, |token| token.end);
        if filter == REPEAT {
            // The right operand is written twice, so it must not itself hold what is written twice.
            let count = tag.get(right.clone()).filter(|count| !count.contains('*'));
            inserts.push((
                left_end,
                format!("|{filter}({})", count.unwrap_or_default()),
            ));
        } else {
            inserts.push((left_end, format!("|{filter}")));
            inserts.push((right.end, format!("|{filter}")));
        }
    }
    if inserts.len() > OPERATORS_MAX {
        return Err(Unguardable {
            at,
            problem: "a tag has too many operators",
        });
    }
    inserts.sort_by_key(|(at, _)| *at);
    let mut done = 0;
    for (at, filter) in inserts {
        guarded.push_str(tag.get(done..at).unwrap_or_default());
        guarded.push_str(&filter);
        done = at;
    }
    guarded.push_str(tag.get(done..).unwrap_or_default());
    Ok(())
}

/// Whether a binary operator can follow.
fn ends_operand(token: &str) -> bool {
    const KEYWORDS: [&str; 12] = [
        "in", "is", "not", "and", "or", "if", "else", "set", "print", "elif", "return", "do",
    ];
    let is_operand =
        token.starts_with(|c: char| is_word(c) || matches!(c, '"' | '\'' | ')' | ']' | '}'));
    is_operand && !KEYWORDS.contains(&token)
}

/// The bytes of the operand that begins at token `index`: sign, atom, then whatever is attached to it.
fn operand<'t>(
    tokens: &[Range<usize>],
    text: &impl Fn(usize) -> &'t str,
    index: usize,
) -> Option<Range<usize>> {
    let start = tokens.get(index)?.start;
    let mut next = index;
    while matches!(text(next), "-" | "+") {
        next += 1;
    }
    next = after_atom(text, next)?;
    loop {
        next = match text(next) {
            "(" | "[" => after_brackets(text, next)?,
            "." | "|" if text(next + 1).starts_with(is_word) => next + 2,
            string if string.starts_with(['"', '\'']) => next + 1,
            _ => break,
        };
    }
    Some(start..tokens.get(next - 1)?.end)
}

fn after_atom<'t>(text: &impl Fn(usize) -> &'t str, index: usize) -> Option<usize> {
    match text(index) {
        "(" | "[" | "{" => after_brackets(text, index),
        token => ends_operand(token).then_some(index + 1),
    }
}

fn after_brackets<'t>(text: &impl Fn(usize) -> &'t str, index: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut next = index;
    loop {
        match text(next) {
            "" => return None,
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        next += 1;
        if depth == 0 {
            return Some(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_guarded(source: &str, expected: &str) {
        let expected = expected
            .replace("|A", &format!("|{ADD}"))
            .replace("|C", &format!("|{CONCAT}"))
            .replace("|R", &format!("|{REPEAT}"));
        assert_eq!(guard(source), Ok(expected), "{source}");
    }

    #[test]
    fn operands_of_growing_operators_are_checked() {
        check_guarded("{{ a ~ b }}", "{{ a|C ~ b|C }}");
        check_guarded(
            "{% set x = x + 'a+b' + y[1 + 2].z|trim %}",
            "{% set x = x|A + 'a+b'|A|A + y[1|A + 2|A].z|trim|A %}",
        );
        check_guarded(
            "{{ 'ab' * n }}{{ f(-1, +2) }}",
            "{{ 'ab'|R(n) * n }}{{ f(-1, +2) }}",
        );
        check_guarded(
            "{%+ if a +%}~ + *{#- a ~ b #}{% endif +%}",
            "{%+ if a +%}~ + *{#- a ~ b #}{% endif +%}",
        );
        check_guarded(
            "{{ a ~ {'k': b + c}.k ~ ('d' 'e') }}",
            "{{ a|C ~ {'k': b|A + c|A}.k|C|C ~ ('d' 'e')|C }}",
        );
        check_guarded(
            "{% raw %}{{ a ~ b }}{% endraw %}{{ a ** b // c }}",
            "{% raw %}{{ a ~ b }}{% endraw %}{{ a ** b // c }}",
        );
        check_guarded("{{ '%}' ~ \"}}\" }}", "{{ '%}'|C ~ \"}}\"|C }}");
    }

    #[test]
    fn long_text_becomes_a_string_between_its_ends() {
        let middle = "say \"hi\" \\ {\n ".repeat(60);
        let escaped = middle.replace('\\', "\\\\").replace('"', "\\\"");
        check_guarded(
            &format!("{{% if x %}}\n a{middle}z \n{{% endif %}}"),
            &format!("{{% if x %}}\n a{{{{ \"{escaped}\" }}}}z \n{{% endif %}}"),
        );
        let braces = format!("{{a{}", "x".repeat(600));
        check_guarded(&braces, &format!("{{a{{{{ \"{}\" }}}}x", "x".repeat(599)));
        assert!(guard(&" ".repeat(600)).is_err());
        assert!(guard(&format!("{{% raw %}}{}{{% endraw %}}", "x".repeat(600))).is_err());
        assert!(guard(&format!("{{{{ a{} }}}}", " ~ a".repeat(200))).is_err());
    }

    #[test]
    fn broken_templates_are_left_to_the_parser() {
        for source in [
            "{{",
            "{%",
            "{{ a ~",
            "{{ a ~ ( }}",
            "{{ 'a ~ b }}",
            "{# a",
            "{{ ) ~ ( }}",
            "{{ ~ }}",
            "{{ a ~ }}",
            "{",
        ] {
            assert!(guard(source).is_ok(), "{source}");
        }
    }
}
