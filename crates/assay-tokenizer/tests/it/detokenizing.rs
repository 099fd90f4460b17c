//! The detokenizer against the standard library's decoder, over arbitrary bytes in arbitrary pieces.

use assay_tokenizer::{Detokenizer, display_token};
use proptest::collection::vec;
use proptest::prelude::*;

/// Pushes each piece and returns the texts and the tail.
fn push_all(pieces: &[&[u8]]) -> (Vec<String>, Vec<u8>) {
    let mut detokenizer = Detokenizer::new();
    let texts = pieces.iter().map(|piece| detokenizer.push(piece)).collect();
    (texts, detokenizer.finish())
}

fn check_pushes(pieces: &[&[u8]], texts: &[&str], tail: &[u8]) {
    let (found, found_tail) = push_all(pieces);
    assert_eq!(
        (
            found.iter().map(String::as_str).collect::<Vec<_>>(),
            &*found_tail
        ),
        (texts.to_vec(), tail),
        "{pieces:x?}"
    );
}

#[test]
fn a_split_character_comes_with_its_last_byte() {
    check_pushes(&[b"\xf0\x9f", b"\xa6", b"\x80!"], &["", "", "🦀!"], b"");
    check_pushes(&[b"a\xe6\x97", b"\xa5b"], &["a", "日b"], b"");
}

#[test]
fn invalid_bytes_belong_to_the_push_that_proves_it() {
    // The lead byte is only wrong once something else follows it.
    check_pushes(&[b"x\xe6\x97", b"y"], &["x", "\u{fffd}y"], b"");
    check_pushes(&[b"\xff", b"\x80"], &["\u{fffd}", "\u{fffd}"], b"");
    check_pushes(
        &[b"\xf0\x9f\xa6", b"\xf0\x9f\xa6\x80"],
        &["", "\u{fffd}🦀"],
        b"",
    );
    // Three maximal subparts: a surrogate's bytes are each invalid.
    check_pushes(&[b"\xed\xa0\x80"], &["\u{fffd}\u{fffd}\u{fffd}"], b"");
}

#[test]
fn an_unfinished_character_is_the_tail() {
    check_pushes(&[b"ok\xf0\x9f", b"\xa6"], &["ok", ""], b"\xf0\x9f\xa6");
    check_pushes(&[], &[], b"");
}

#[test]
fn alternatives_that_are_no_text_alone_are_escaped() {
    for (bytes, expected) in [
        (b"the".as_slice(), "the"),
        (b"", ""),
        ("é".as_bytes(), "é"),
        (b"\xc3", "bytes:\\xc3"),
        (b"a\xf0\x9f", "bytes:\\x61\\xf0\\x9f"),
    ] {
        assert_eq!(display_token(bytes), expected, "{bytes:x?}");
    }
}

/// Bytes in which broken and whole characters are common.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        any::<u8>(),
        proptest::sample::select(b"a \x80\x8f\xbf\xc0\xc3\xe0\xed\xe6\xf0\xf4\xf5\xff".to_vec()),
    ];
    let piece = prop_oneof![
        vec(byte, 0..4),
        any::<char>().prop_map(|c| c.to_string().into_bytes())
    ];
    vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn pieces_join_to_the_decoding_of_the_whole(bytes in bytes(), cuts in vec(any::<prop::sample::Index>(), 0..8)) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        let (texts, tail) = push_all(&pieces);
        let complete = &bytes[..bytes.len() - tail.len()];
        prop_assert_eq!(texts.concat(), String::from_utf8_lossy(complete));
        // The tail is what could still become a character: incomplete, not invalid.
        prop_assert!(tail.len() < 4);
        if let Err(error) = std::str::from_utf8(&tail) {
            prop_assert_eq!(error.error_len(), None);
        } else {
            prop_assert!(tail.is_empty());
        }
        // No push waits longer than it must.
        let mut whole = Detokenizer::new();
        prop_assert_eq!(whole.push(&bytes), texts.concat());
    }
}
