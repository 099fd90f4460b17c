//! Whether a text begins with a tag.

/// How far a text and a tag agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TagMatch {
    /// The text is a proper begin of the tag, or empty.
    Open,
    /// The text begins with the tag.
    Whole,
    /// They differ.
    No,
}

pub(super) fn match_tag<'a>(mut text: impl Iterator<Item = &'a char>, tag: &str) -> TagMatch {
    for expected in tag.chars() {
        match text.next() {
            None => return TagMatch::Open,
            Some(char) if *char == expected => {}
            Some(_) => return TagMatch::No,
        }
    }
    TagMatch::Whole
}
