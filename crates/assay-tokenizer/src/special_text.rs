//! Cutting special and added tokens out of text before anything else sees it.
//!
//! The leftmost match wins, the longest on a tie; one pass whatever the text. User-defined tokens always
//! match; control tokens only when the caller says the text is structure rather than words.

use aho_corasick::{AhoCorasick, Input, MatchKind};

use crate::error::TokenizerError;
use crate::vocab::{TokenKind, Vocab};

/// Which blanks next to a matched token belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strip {
    /// None.
    Neither,
    /// Those after it.
    Right,
}

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fragment<'t> {
    /// A token that was written out.
    Token(u32),
    /// Ordinary text, never empty.
    Text(&'t str),
}

#[derive(Debug)]
struct Pattern {
    id: u32,
    strip: Strip,
}

impl Pattern {
    /// Where what belongs to the token ends, whose text ends at `end`.
    fn end(&self, text: &str, end: usize) -> usize {
        let rest = text.get(end..).unwrap_or_default();
        let behind = match self.strip {
            Strip::Neither => rest,
            Strip::Right => {
                rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b')
            }
        };
        end + rest.len() - behind.len()
    }
}

/// A searcher for a set of tokens' texts.
#[derive(Debug)]
pub(crate) struct SpecialMatcher {
    automaton: AhoCorasick,
    patterns: Vec<Pattern>,
}

impl SpecialMatcher {
    /// A searcher for the tokens of `vocab` whose kind passes `wanted`.
    pub(crate) fn new(
        vocab: &Vocab,
        wanted: impl Fn(TokenKind) -> bool,
        strip: impl Fn(&str) -> Strip,
    ) -> Result<SpecialMatcher, TokenizerError> {
        let special = || {
            vocab
                .iter()
                .filter(|(_, text, kind)| wanted(*kind) && !text.is_empty())
        };
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(special().map(|(_, text, _)| text))?;
        let patterns = special()
            .map(|(id, text, _)| Pattern {
                id,
                strip: strip(text),
            })
            .collect();
        Ok(SpecialMatcher {
            automaton,
            patterns,
        })
    }

    /// Where in `text` a token begins whose id passes `wanted`, in bytes, ascending; those inside others too.
    pub(crate) fn begins<'t>(
        &'t self,
        text: &'t str,
        wanted: impl Fn(u32) -> bool + 't,
    ) -> impl Iterator<Item = usize> + 't {
        let mut at = 0;
        std::iter::from_fn(move || {
            loop {
                let found = self.automaton.find(Input::new(text).range(at..))?;
                let first = text.get(found.start()..)?.chars().next()?;
                at = found.start() + first.len_utf8();
                let pattern = self.patterns.get(found.pattern().as_usize())?;
                if wanted(pattern.id) {
                    return Some(found.start());
                }
            }
        })
    }

    /// Where the last token of `text` ends whose id passes `wanted`, in bytes; 0 if there is none.
    pub(crate) fn end_of_last(&self, text: &str, wanted: impl Fn(u32) -> bool) -> usize {
        self.automaton
            .find_iter(text)
            .filter_map(|found| {
                let pattern = self.patterns.get(found.pattern().as_usize())?;
                wanted(pattern.id).then(|| pattern.end(text, found.end()))
            })
            .last()
            .unwrap_or(0)
    }

    /// The parts of `text`, in order.
    pub(crate) fn split<'t>(&self, text: &'t str) -> Vec<Fragment<'t>> {
        let mut fragments = Vec::new();
        let mut done = 0;
        for found in self.automaton.find_iter(text) {
            let Some(pattern) = self.patterns.get(found.pattern().as_usize()) else {
                continue;
            };
            let before = text.get(done..found.start()).unwrap_or_default();
            if !before.is_empty() {
                fragments.push(Fragment::Text(before));
            }
            fragments.push(Fragment::Token(pattern.id));
            done = pattern.end(text, found.end());
        }
        let rest = text.get(done..).unwrap_or_default();
        if !rest.is_empty() {
            fragments.push(Fragment::Text(rest));
        }
        fragments
    }
}
