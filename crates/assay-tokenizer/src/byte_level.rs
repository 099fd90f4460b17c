//! The 256 letters that byte-level BPE vocabularies write bytes with.
//!
//! Printable Latin-1 characters stand for themselves; the other 68 bytes, in order, are U+0100 onwards
//! (GPT-2's `bytes_to_unicode`).

/// First code point used for bytes that have no printable Latin-1 character.
const SHIFTED: u32 = 0x100;

/// Whether `byte` is written as the Latin-1 character of the same number.
const fn is_printable(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff)
}

/// The letter of each byte.
const LETTERS: [char; 256] = letters();

const fn letters() -> [char; 256] {
    let mut letters = ['\0'; 256];
    let mut byte = 0;
    let mut next = SHIFTED;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "byte is below 256")]
        let code = if is_printable(byte as u8) {
            byte as u32
        } else {
            next += 1;
            next - 1
        };
        letters[byte] = match char::from_u32(code) {
            Some(letter) => letter,
            None => panic!("every code below 0x144 is a character"),
        };
        byte += 1;
    }
    letters
}

/// The letter that stands for `byte`.
pub(crate) fn letter(byte: u8) -> char {
    LETTERS[usize::from(byte)]
}

/// The byte that `letter` stands for, or `None` if it is no such letter.
pub(crate) fn byte(letter: char) -> Option<u8> {
    match u8::try_from(letter) {
        Ok(byte) => is_printable(byte).then_some(byte),
        Err(_) => (0..=u8::MAX).find(|&byte| LETTERS[usize::from(byte)] == letter),
    }
}

/// The bytes that `text` spells, or `None` if a character of it is no byte letter.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    text.chars().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_bytes_are_a_bijection() {
        for expected in 0..=u8::MAX {
            assert_eq!(
                byte(letter(expected)),
                Some(expected),
                "byte {expected:#04x}"
            );
        }
        assert_eq!(byte(' '), None);
        assert_eq!(byte('\u{144}'), None);
        assert_eq!(letter(b' '), 'Ġ');
        assert_eq!(letter(b'\n'), 'Ċ');
    }
}
