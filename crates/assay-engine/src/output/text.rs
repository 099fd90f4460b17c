//! The text pipeline of one choice: tokens with their scores in, entries with their text out.
//!
//! Detokenizer, stop matcher and release gate in one, because text and token outputs travel
//! together: what is held back is held with its entries, what is cut is cut with them. Every entry
//! leaves once, whole, in order, as soon as nothing later can change it:
//! - all its bytes are decoded (the halves of a split character leave together), and
//! - none of its text may still turn out to be the begin of a stop string.
//!
//! A character's text belongs to the entry that completed it, or that proved its bytes invalid.

use std::collections::VecDeque;

use super::stop::StopMatcher;
use super::utf8::{DecodedChar, Utf8Decoder};
use super::{Entry, TokenOutput};

/// What a token did to the text.
#[derive(Clone, Debug, PartialEq)]
pub enum Pushed {
    /// The text goes on; entries that are final now.
    Continues(Vec<Entry>),
    /// A stop string is complete; the last entries, cut before it.
    Stopped {
        /// The last entries.
        entries: Vec<Entry>,
        /// The stop string.
        stop: String,
    },
}

/// Why no more tokens come, as far as text is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextEnd {
    /// The model ended the text: an unfinished character is invalid and becomes U+FFFD.
    Complete,
    /// The text was cut by a limit: an unfinished character stays unspelled, its bytes are kept.
    Truncated,
}

/// A character that is decoded but not released.
#[derive(Clone, Copy, Debug)]
struct HeldChar {
    decoded: DecodedChar,
    /// Running number of the entry that its text belongs to.
    entry_number: usize,
}

/// Text and entries of one choice that are not final yet.
///
/// The held entries' bytes are exactly the bytes of the held characters followed by those in the
/// decoder: entries and characters are only released where both end at the same byte.
#[derive(Clone, Debug)]
pub struct TextPipeline {
    decoder: Utf8Decoder,
    stops: StopMatcher,
    /// Entries not released; their texts stay empty until then.
    entries: VecDeque<Entry>,
    /// Running number of the first of `entries`.
    first_entry_number: usize,
    /// Characters not released.
    chars: VecDeque<HeldChar>,
}

impl TextPipeline {
    /// The begin of a reply that ends at any of `stops`; none is empty.
    pub fn new(stops: &[String]) -> Self {
        Self {
            decoder: Utf8Decoder::default(),
            stops: StopMatcher::new(stops),
            entries: VecDeque::new(),
            first_entry_number: 0,
            chars: VecDeque::new(),
        }
    }

    /// Takes a token that spells `bytes`.
    pub fn push(&mut self, output: TokenOutput, bytes: &[u8]) -> Pushed {
        let entry_number = self.first_entry_number + self.entries.len();
        self.entries.push_back(Entry {
            output,
            bytes: bytes.to_vec(),
            text: String::new(),
        });
        for decoded in self.decoder.push(bytes) {
            if let Some(stopped) = self.push_char(decoded, entry_number) {
                return stopped;
            }
        }
        Pushed::Continues(self.release_final())
    }

    /// Ends the text and releases what is left. A last U+FFFD can still complete a stop string.
    pub fn finish(&mut self, end: TextEnd) -> Pushed {
        if end == TextEnd::Complete
            && let Some(decoded) = self.decoder.finish()
        {
            // No later token proved it invalid: it goes to the last entry that has a part in it.
            let last_with_bytes = self
                .entries
                .iter()
                .rposition(|entry| !entry.bytes.is_empty())
                .expect("bytes held by the decoder belong to a held entry");
            let entry_number = self.first_entry_number + last_with_bytes;
            if let Some(stopped) = self.push_char(decoded, entry_number) {
                return stopped;
            }
        }
        let entries = self.release(self.entries.len(), self.chars.len());
        Pushed::Continues(entries)
    }

    /// Appends a character; the end of the text if it completes a stop string.
    fn push_char(&mut self, decoded: DecodedChar, entry_number: usize) -> Option<Pushed> {
        self.chars.push_back(HeldChar {
            decoded,
            entry_number,
        });
        let stop = self.stops.push(decoded.char)?.to_owned();
        let entries = self.cut_before(stop.len());
        Some(Pushed::Stopped { entries, stop })
    }

    /// Drops the last `num_text_bytes` of the text and all that spells them; releases the rest.
    fn cut_before(&mut self, num_text_bytes: usize) -> Vec<Entry> {
        let num_chars = self.num_chars_before(num_text_bytes);
        self.chars.truncate(num_chars);
        let mut num_visible_bytes: usize =
            self.chars.iter().map(|held| held.decoded.num_bytes).sum();

        let mut num_entries = 0;
        for entry in &mut self.entries {
            if entry.bytes.len() > num_visible_bytes {
                entry.bytes.truncate(num_visible_bytes);
                num_entries += usize::from(num_visible_bytes > 0);
                break;
            }
            num_visible_bytes -= entry.bytes.len();
            num_entries += 1;
        }
        // An invalid sequence proved so by a token that is cut: its U+FFFD goes to its own bytes.
        let last_entry_number = (self.first_entry_number + num_entries).saturating_sub(1);
        for held in &mut self.chars {
            held.entry_number = held.entry_number.min(last_entry_number);
        }
        self.release(num_entries, num_chars)
    }

    /// Releases every entry that nothing later can change.
    fn release_final(&mut self) -> Vec<Entry> {
        let num_final_chars = self.num_chars_before(self.stops.num_held_bytes());
        let mut num_entries = 0;
        let mut num_entry_bytes = 0;
        let mut num_chars = 0;
        let mut num_char_bytes = 0;
        let mut last_entry_number = None;
        let mut released = (0, 0);
        // Walks entries and characters in step; every byte where both end, and where all text so
        // far belongs to the entries so far, is a place to release up to.
        for entry in &self.entries {
            num_entries += 1;
            num_entry_bytes += entry.bytes.len();
            while num_char_bytes < num_entry_bytes && num_chars < num_final_chars {
                let held = self.chars[num_chars];
                num_chars += 1;
                num_char_bytes += held.decoded.num_bytes;
                last_entry_number = last_entry_number.max(Some(held.entry_number));
            }
            let owns_its_text = last_entry_number < Some(self.first_entry_number + num_entries);
            if num_char_bytes == num_entry_bytes && owns_its_text {
                released = (num_entries, num_chars);
            }
        }
        self.release(released.0, released.1)
    }

    /// Characters before the last `num_text_bytes` of the held text, which end between characters.
    fn num_chars_before(&self, num_text_bytes: usize) -> usize {
        let mut num_chars = self.chars.len();
        let mut num_bytes_left = num_text_bytes;
        while num_bytes_left > 0 {
            let Some(held) = num_chars
                .checked_sub(1)
                .and_then(|index| self.chars.get(index))
            else {
                break;
            };
            num_chars -= 1;
            num_bytes_left = num_bytes_left.saturating_sub(held.decoded.char.len_utf8());
        }
        num_chars
    }

    /// Hands out the first `num_entries` entries with the first `num_chars` characters.
    fn release(&mut self, num_entries: usize, num_chars: usize) -> Vec<Entry> {
        let mut released: Vec<Entry> = self.entries.drain(..num_entries).collect();
        for held in self.chars.drain(..num_chars) {
            released[held.entry_number - self.first_entry_number]
                .text
                .push(held.decoded.char);
        }
        self.first_entry_number += num_entries;
        released
    }
}
