//! Where the text comes from: a file, standard input, or the argument itself.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Longest text read. No model's context holds a hundredth of it; a device or a wrong file must not fill the memory.
const MAX_TEXT_BYTES: u64 = 64 << 20;

/// A text and what it is called.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Text {
    /// The file's name, `standard input` or `argument`.
    pub(super) name: String,
    pub(super) text: String,
}

/// Reads what `argument` names.
///
/// # Errors
/// If it cannot be read, is too long, or is no UTF-8.
pub(super) fn read(argument: &str) -> Result<Text> {
    if argument == "-" {
        return read_all("standard input", std::io::stdin().lock());
    }
    // Any string may be a text, so only what exists is a file; the report says which it was.
    if Path::new(argument).exists() {
        let file =
            File::open(argument).with_context(|| format!("--text: cannot read {argument}"))?;
        return read_all(argument, file);
    }
    Ok(Text {
        name: "argument".to_owned(),
        text: argument.to_owned(),
    })
}

fn read_all(name: &str, reader: impl Read) -> Result<Text> {
    let mut bytes = Vec::new();
    reader
        .take(MAX_TEXT_BYTES + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("--text: cannot read {name}"))?;
    if bytes.len() as u64 > MAX_TEXT_BYTES {
        bail!("--text: {name} is longer than {MAX_TEXT_BYTES} bytes; score it in parts");
    }
    let text = String::from_utf8(bytes)
        .ok()
        .with_context(|| format!("--text: {name} is not UTF-8; convert it first"))?;
    Ok(Text {
        name: name.to_owned(),
        text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_and_other_words_are_the_text() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        std::fs::write(&path, "one\n").unwrap();
        let name = path.to_str().unwrap();
        let file = read(name).unwrap();
        assert_eq!((file.name.as_str(), file.text.as_str()), (name, "one\n"));
        let words = read("no such file").unwrap();
        assert_eq!(words.text, "no such file");
        assert_eq!(words.name, "argument");
    }

    #[test]
    fn what_is_no_text_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.bin");
        std::fs::write(&path, [0xFF, 0xFE]).unwrap();
        let cases = [
            (path.to_str().unwrap(), "UTF-8"),
            (dir.path().to_str().unwrap(), "cannot read"),
            ("/dev/zero", "longer"),
        ];
        for (argument, expected) in cases {
            let error = format!("{:#}", read(argument).unwrap_err());
            assert!(
                error.contains(expected) && error.contains("--text"),
                "{error}"
            );
        }
    }
}
