//! The text pipeline against a reference that sees the whole text at once.

use assay_engine::output::{Pushed, TextEnd, TextPipeline};
use assay_engine::{Entry, TokenOutput};
use proptest::prelude::*;

/// Bytes that make and break characters: letters, parts of é € 😀 and of U+FFFD, never-valid ones.
const BYTES: [u8; 16] = [
    b'a', b'a', b'b', b'b', 0xC3, 0xA9, 0xE2, 0x82, 0xAC, 0xF0, 0x9F, 0x98, 0x80, 0xEF, 0xBF, 0xFF,
];
const STOP_CHARS: [char; 6] = ['a', 'a', 'b', 'é', '€', '\u{FFFD}'];

fn any_token() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => prop::collection::vec(prop::sample::select(&BYTES[..]), 0..4),
        1 => prop::sample::select(vec!["é", "€", "😀", "ab", "a€b", "\u{FFFD}"])
            .prop_map(|text| text.as_bytes().to_vec()),
    ]
}

fn any_stop() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&STOP_CHARS[..]), 1..4)
        .prop_map(|chars| chars.into_iter().collect())
}

/// The whole reply, and what the stop strings leave of it.
struct Reference {
    content: String,
    stop: Option<String>,
    /// Bytes of an unfinished character at the end of a truncated reply.
    unspelled: Vec<u8>,
}

fn reference(bytes: &[u8], stops: &[String], end: TextEnd) -> Reference {
    let num_spelled = match end {
        TextEnd::Complete => bytes.len(),
        TextEnd::Truncated => num_spelled_bytes(bytes),
    };
    let (spelled, unspelled) = bytes.split_at(num_spelled);
    let text = String::from_utf8_lossy(spelled).into_owned();
    // The match that ends first; of those, the longest.
    let first_match = text
        .char_indices()
        .map(|(begin, char)| &text[..begin + char.len_utf8()])
        .find_map(|prefix| {
            stops
                .iter()
                .filter(|stop| prefix.ends_with(stop.as_str()))
                .max_by_key(|stop| stop.len())
                .map(|stop| (prefix.len() - stop.len(), stop.clone()))
        });
    match first_match {
        Some((begin, stop)) => Reference {
            content: text[..begin].to_owned(),
            stop: Some(stop),
            unspelled: Vec::new(),
        },
        None => Reference {
            content: text,
            stop: None,
            unspelled: unspelled.to_vec(),
        },
    }
}

/// Length without an unfinished character at the end.
fn num_spelled_bytes(bytes: &[u8]) -> usize {
    let unfinished = (1..=3.min(bytes.len())).find(|&num_bytes| {
        let tail = &bytes[bytes.len() - num_bytes..];
        std::str::from_utf8(tail)
            .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    });
    bytes.len() - unfinished.unwrap_or(0)
}

fn output(token_id: u32) -> TokenOutput {
    TokenOutput {
        token_id,
        logprobs: None,
    }
}

fn check_chunk(chunk: &[Entry], unspelled: &[u8]) {
    let text: String = chunk.iter().map(|entry| entry.text.as_str()).collect();
    let bytes: Vec<u8> = chunk.iter().flat_map(|e| e.bytes.iter().copied()).collect();
    let spelled = bytes.strip_suffix(unspelled).unwrap_or(&bytes);
    assert_eq!(text, String::from_utf8_lossy(spelled), "chunk {chunk:?}");
}

/// Whether something of `bytes` may still change: an unfinished character or the begin of a stop.
fn is_open(bytes: &[u8], stops: &[String]) -> bool {
    let spelled = num_spelled_bytes(bytes);
    let text = String::from_utf8_lossy(&bytes[..spelled]).into_owned();
    let is_begin_of_stop = stops.iter().any(|stop| {
        stop.char_indices()
            .skip(1)
            .any(|(end, _)| text.ends_with(&stop[..end]))
    });
    spelled < bytes.len() || is_begin_of_stop
}

fn check_pipeline(tokens: &[Vec<u8>], stops: &[String], end: TextEnd) {
    let mut pipeline = TextPipeline::new(stops);
    let mut entries: Vec<Entry> = Vec::new();
    let mut stopped = None;
    let mut bytes = Vec::new();
    for (token_id, token) in (0..).zip(tokens) {
        bytes.extend_from_slice(token);
        match pipeline.push(output(token_id), token) {
            Pushed::Continues(chunk) => {
                check_chunk(&chunk, &[]);
                entries.extend(chunk);
                if !is_open(&bytes, stops) {
                    assert_eq!(entries.len(), token_id as usize + 1, "held for nothing");
                }
            }
            Pushed::Stopped {
                entries: chunk,
                stop,
            } => {
                check_chunk(&chunk, &[]);
                entries.extend(chunk);
                stopped = Some(stop);
                break;
            }
        }
    }
    let whole: Vec<u8> = tokens.concat();
    let expected = reference(&whole, stops, end);
    if stopped.is_none() {
        let (chunk, stop) = match pipeline.finish(end) {
            Pushed::Continues(chunk) => (chunk, None),
            Pushed::Stopped { entries, stop } => (entries, Some(stop)),
        };
        check_chunk(&chunk, &expected.unspelled);
        entries.extend(chunk);
        stopped = stop;
    }

    assert_eq!(stopped, expected.stop, "stop");
    let text: String = entries.iter().map(|entry| entry.text.as_str()).collect();
    assert_eq!(text, expected.content, "content");
    let joined: Vec<u8> = entries
        .iter()
        .flat_map(|e| e.bytes.iter().copied())
        .collect();
    let spelled = joined
        .strip_suffix(expected.unspelled.as_slice())
        .expect("the bytes of an unfinished character are kept");
    assert_eq!(String::from_utf8_lossy(spelled), expected.content, "bytes");
    for (index, entry) in entries.iter().enumerate() {
        assert_eq!(entry.output.token_id as usize, index, "order");
        let is_cut = expected.stop.is_some() && index + 1 == entries.len();
        if is_cut {
            assert!(tokens[index].starts_with(&entry.bytes), "entry {index}");
            assert!(
                !entry.bytes.is_empty() || tokens[index].is_empty(),
                "entry {index} is all cut and still there"
            );
        } else {
            assert_eq!(entry.bytes, tokens[index], "entry {index}");
        }
    }
    if expected.stop.is_none() {
        assert_eq!(entries.len(), tokens.len(), "every token has its entry");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn any_split_and_any_stops_agree_with_the_whole_text(
        tokens in prop::collection::vec(any_token(), 0..14),
        stops in prop::collection::vec(any_stop(), 0..4),
        end in prop::sample::select(vec![TextEnd::Complete, TextEnd::Truncated]),
    ) {
        check_pipeline(&tokens, &stops, end);
    }
}
