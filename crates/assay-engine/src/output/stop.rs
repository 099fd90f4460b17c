//! Finds stop strings in text that arrives in pieces.
//!
//! The match that ends first wins, however the text was split into tokens; of matches that end
//! together, the longest. Knuth–Morris–Pratt per stop, over the bytes of valid UTF-8, so a match
//! always begins and ends between characters.

/// A stop string and how much of it the end of the text matches.
#[derive(Clone, Debug)]
struct Pattern {
    stop: String,
    /// `[len]` length of the longest proper border of each prefix.
    borders: Vec<usize>,
    num_matched_bytes: usize,
}

/// All stop strings of one choice.
#[derive(Clone, Debug)]
pub(super) struct StopMatcher {
    patterns: Vec<Pattern>,
}

impl StopMatcher {
    /// A matcher at the begin of a text; no stop is empty.
    pub(super) fn new(stops: &[String]) -> Self {
        let patterns = stops
            .iter()
            .map(|stop| Pattern {
                borders: borders(stop.as_bytes()),
                stop: stop.clone(),
                num_matched_bytes: 0,
            })
            .collect();
        Self { patterns }
    }

    /// Reads one more character; the longest stop that ends with it, if one does.
    pub(super) fn push(&mut self, char: char) -> Option<&str> {
        let mut utf8 = [0; 4];
        for &byte in char.encode_utf8(&mut utf8).as_bytes() {
            for pattern in &mut self.patterns {
                pattern.push(byte);
            }
        }
        self.patterns
            .iter()
            .filter(|pattern| pattern.num_matched_bytes == pattern.stop.len())
            .map(|pattern| pattern.stop.as_str())
            .max_by_key(|stop| stop.len())
    }

    /// Forgets what came: no stop begins before here.
    pub(super) fn reset(&mut self) {
        for pattern in &mut self.patterns {
            pattern.num_matched_bytes = 0;
        }
    }

    /// Bytes at the end of the text that may be the begin of a stop.
    pub(super) fn num_held_bytes(&self) -> usize {
        self.patterns
            .iter()
            .map(|pattern| pattern.num_matched_bytes)
            .max()
            .unwrap_or(0)
    }
}

impl Pattern {
    fn push(&mut self, byte: u8) {
        let stop = self.stop.as_bytes();
        // A full match ends the text, so `num_matched_bytes` is inside the stop here.
        while self.num_matched_bytes > 0 && stop.get(self.num_matched_bytes) != Some(&byte) {
            self.num_matched_bytes = self.borders[self.num_matched_bytes - 1];
        }
        if stop.get(self.num_matched_bytes) == Some(&byte) {
            self.num_matched_bytes += 1;
        }
    }
}

/// Length of the longest proper prefix of each prefix that is also its suffix.
fn borders(bytes: &[u8]) -> Vec<usize> {
    let mut borders = vec![0; bytes.len()];
    let mut length = 0;
    for index in 1..bytes.len() {
        while length > 0 && bytes[index] != bytes[length] {
            length = borders[length - 1];
        }
        if bytes[index] == bytes[length] {
            length += 1;
        }
        borders[index] = length;
    }
    borders
}
