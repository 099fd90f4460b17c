//! Words inside structure: text that goes into a chat template, and must not become a control token
//! when the rendered whole is encoded.
//!
//! A template gives back one string, in which the conversation's words and the template's own control
//! tokens look alike. So the words are marked before: [`MARK`] parts each control token's text that they
//! hold, and is taken out again after the control tokens were cut from the whole. A mark that the words
//! hold themselves is doubled.

use std::borrow::Cow;

/// A noncharacter: Unicode keeps it for uses inside a program.
pub(crate) const MARK: char = '\u{FDD0}';

/// `words` with every control token's text parted. `control_tokens` is where one
/// begins, in bytes, ascending.
pub(crate) fn marked(words: &str, control_tokens: impl Iterator<Item = usize>) -> Cow<'_, str> {
    let mut starts = control_tokens.peekable();
    if starts.peek().is_none() && !words.contains(MARK) {
        return Cow::Borrowed(words);
    }
    let mut text = String::with_capacity(words.len() + 16);
    for (at, char) in words.char_indices() {
        text.push(char);
        if char == MARK || starts.next_if(|&start| start == at).is_some() {
            text.push(MARK);
        }
    }
    Cow::Owned(text)
}

/// Two texts with marked words, joined so that no control token's text stands across their border.
pub(crate) fn parted(text: &str, words: &str) -> String {
    let mut mark = [0; 4];
    [text, MARK.encode_utf8(&mut mark), words].concat()
}

/// `text` as it was before [`marked`]: of each run of marks half remain, rounded down.
pub(crate) fn unmarked(text: &str) -> Cow<'_, str> {
    if !text.contains(MARK) {
        return Cow::Borrowed(text);
    }
    let mut words = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        if char != MARK {
            words.push(char);
        } else if chars.next_if_eq(&MARK).is_some() {
            words.push(MARK);
        }
    }
    Cow::Owned(words)
}
