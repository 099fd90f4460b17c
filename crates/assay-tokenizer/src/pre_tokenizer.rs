//! The declared pre-tokenizer: how text is cut into words before byte-pair merging.
//!
//! Each name stands for a list of patterns; every pattern in turn cuts the pieces left by the one before
//! into matches and the text between them. Patterns are the published ones of the model families, in
//! linear-time syntax: the usual `\s+(?!\S)` is `\s+` with [`Blanks::LeaveLast`]. A name that is not
//! listed is refused, since any other cut gives other ids.

use regex::Regex;

use crate::error::TokenizerError;

/// What happens to a run of blanks that text follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blanks {
    /// The match stands.
    Whole,
    /// The run's last blank is left for the next match.
    LeaveLast,
    /// As `LeaveLast`, except for a run that ends its line.
    LeaveLastInLine,
}

type Pattern = (&'static str, Blanks);

/// GPT-2.
const GPT2: Pattern = (
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+",
    Blanks::LeaveLast,
);

const EACH_DIGIT: Pattern = (r"\p{N}", Blanks::Whole);

const LLAMA3: Pattern = (
    r"'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+",
    Blanks::LeaveLastInLine,
);

const QWEN2: Pattern = (
    r"'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+",
    Blanks::LeaveLastInLine,
);

const QWEN35: Pattern = (
    r"'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+",
    Blanks::LeaveLastInLine,
);

const GPT4O: Pattern = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?:'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?:'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+",
    Blanks::LeaveLastInLine,
);

const TEKKEN: Pattern = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+",
    Blanks::LeaveLastInLine,
);

const EACH_LINE_END: Pattern = (r"[\r\n]", Blanks::Whole);

/// The CJK and Hangul blocks as DeepSeek's first models list them.
const CJK_BLOCKS: Pattern = (
    r"[\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+",
    Blanks::Whole,
);

const DEEPSEEK_V3_HAN_KANA: Pattern = (
    r"[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+",
    Blanks::Whole,
);

const DEEPSEEK_V3: Pattern = (
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+"##,
    Blanks::LeaveLastInLine,
);

/// The letters of scripts with case, as DeepSeek LLM lists them.
const DEEPSEEK_LLM_CASED: Pattern = (
    "\\s?[A-Za-z\u{B5}\u{C0}-\u{D6}\u{D8}-\u{F6}\u{F8}-\u{1BA}\u{1BC}-\u{1BF}\u{1C4}-\u{293}\
     \u{295}-\u{2AF}\u{370}-\u{373}\u{376}\u{377}\u{37B}-\u{37D}\u{37F}\u{386}\u{388}-\u{38A}\
     \u{38C}\u{38E}-\u{3A1}\u{3A3}-\u{3F5}\u{3F7}-\u{481}\u{48A}-\u{52F}\u{531}-\u{556}\
     \u{10A0}-\u{10C5}\u{13A0}-\u{13F5}\u{13F8}-\u{13FD}\u{1C90}-\u{1CBA}\u{1CBD}-\u{1CBF}\
     \u{1D00}-\u{1D2B}\u{1D6B}-\u{1D77}\u{1D79}-\u{1D9A}\u{1E00}-\u{1F15}\u{1F18}-\u{1F1D}\
     \u{1F20}-\u{1F45}\u{1F48}-\u{1F4D}\u{1F50}-\u{1F57}\u{1F59}\u{1F5B}\u{1F5D}\u{1F5F}-\
     \u{1F7D}\u{1F80}-\u{1FB4}\u{1FB6}-\u{1FBC}\u{1FBE}\u{1FC2}-\u{1FC4}\u{1FC6}-\u{1FCC}\
     \u{1FD0}-\u{1FD3}\u{1FD6}-\u{1FDB}\u{1FE0}-\u{1FEC}\u{1FF2}-\u{1FF4}\u{1FF6}-\u{1FFC}\
     \u{2102}\u{2107}\u{210A}-\u{2113}\u{2115}\u{2119}-\u{211D}\u{2124}\u{2126}\u{2128}\
     \u{212A}-\u{212D}\u{212F}-\u{2134}\u{2139}\u{213C}-\u{213F}\u{2145}-\u{2149}\u{214E}\
     \u{2183}\u{2184}\u{2C00}-\u{2C7B}\u{2C7E}-\u{2CE4}\u{2CEB}-\u{2CEE}\u{2CF2}\u{2CF3}\
     \u{A640}-\u{A66D}\u{A680}-\u{A69B}\u{A722}-\u{A76F}\u{A771}-\u{A787}\u{A78B}-\u{A78E}\
     \u{AB70}-\u{ABBF}\u{FB00}-\u{FB06}\u{FB13}-\u{FB17}\u{FF21}-\u{FF3A}\u{FF41}-\u{FF5A}\
     \u{10400}-\u{1044F}\u{104B0}-\u{104D3}\u{104D8}-\u{104FB}\u{10C80}-\u{10CB2}\u{10CC0}-\
     \u{10CF2}\u{118A0}-\u{118DF}\u{1E900}-\u{1E943}]+",
    Blanks::Whole,
);

const DEEPSEEK_LLM_PUNCTUATION: Pattern = (
    r"\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+",
    Blanks::Whole,
);

/// The patterns of `tokenizer.ggml.pre`, or `None` for a name we do not know.
fn patterns(pre: &str) -> Option<&'static [Pattern]> {
    Some(match pre {
        "gpt-2" | "mpt" | "olmo" | "phi-2" => &[GPT2],
        "smollm" | "starcoder" | "refact" | "command-r" | "codeshell" | "exaone" => {
            &[EACH_DIGIT, GPT2]
        }
        "llama3" | "llama-v3" | "llama-bpe" | "falcon3" | "lfm2" | "dbrx" | "smaug-bpe"
        | "glm4" | "chatglm-bpe" => &[LLAMA3],
        "qwen2" | "deepseek-r1-qwen" | "stablelm2" | "megrez" | "hunyuan" => &[QWEN2],
        "qwen35" => &[QWEN35],
        "gpt-4o" | "llama4" => &[GPT4O],
        "tekken" => &[TEKKEN],
        "deepseek-v3" | "hunyuan-dense" => &[
            (r"\p{N}{1,3}", Blanks::Whole),
            DEEPSEEK_V3_HAN_KANA,
            DEEPSEEK_V3,
        ],
        "deepseek-coder" => &[
            EACH_LINE_END,
            (r"\s?\p{L}+", Blanks::Whole),
            (r"\s?\p{P}+", Blanks::Whole),
            CJK_BLOCKS,
            (r"\p{N}", Blanks::Whole),
        ],
        "deepseek-llm" => &[
            EACH_LINE_END,
            DEEPSEEK_LLM_CASED,
            DEEPSEEK_LLM_PUNCTUATION,
            (r"\s+$", Blanks::Whole),
            CJK_BLOCKS,
            (r"\p{N}+", Blanks::Whole),
        ],
        "falcon" => &[
            (r"[\p{P}$+<=>^~|`]+", Blanks::Whole),
            GPT2,
            (r"[0-9][0-9][0-9]", Blanks::Whole),
        ],
        "gemma4" => &[(r"[^\n]+|\n+", Blanks::Whole)],
        _ => return None,
    })
}

/// Whether the family of `pre` takes a word that is a token as it stands, without merging.
pub(crate) fn takes_whole_words(pre: &str) -> bool {
    matches!(
        pre,
        "llama3" | "llama-v3" | "llama-bpe" | "falcon3" | "lfm2" | "glm4" | "tekken"
    )
}

/// Whether the family of `pre` begins every text with BOS when the file does not say.
pub(crate) fn begins_with_bos(pre: &str) -> bool {
    matches!(
        pre,
        "llama3" | "llama-v3" | "llama-bpe" | "falcon3" | "lfm2" | "tekken"
    )
}

#[derive(Debug)]
struct Cut {
    regex: Regex,
    blanks: Blanks,
}

/// A compiled pre-tokenizer.
#[derive(Debug)]
pub(crate) struct PreTokenizer {
    cuts: Vec<Cut>,
}

impl PreTokenizer {
    pub(crate) fn new(pre: &str) -> Result<PreTokenizer, TokenizerError> {
        let patterns = patterns(pre).ok_or_else(|| TokenizerError::UnknownPreTokenizer {
            pre: pre.to_owned(),
        })?;
        let cuts = patterns.iter().map(|&(pattern, blanks)| Cut {
            regex: Regex::new(pattern).expect("every pattern in the table is compiled by a test"),
            blanks,
        });
        Ok(PreTokenizer {
            cuts: cuts.collect(),
        })
    }

    /// The words of `text`, in order; together they are `text`.
    pub(crate) fn split<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let mut pieces = vec![text];
        for cut in &self.cuts {
            let mut next = Vec::with_capacity(pieces.len() + text.len() / 4);
            for piece in pieces {
                cut.split(piece, &mut next);
            }
            pieces = next;
        }
        pieces
    }
}

impl Cut {
    fn split<'t>(&self, text: &'t str, pieces: &mut Vec<&'t str>) {
        let mut push =
            |piece: Option<&'t str>| pieces.extend(piece.filter(|piece| !piece.is_empty()));
        let mut done = 0;
        while let Some(found) = self.regex.find_at(text, done) {
            let end = self.end(text, found.start(), found.end());
            push(text.get(done..found.start()));
            push(text.get(found.start()..end));
            done = end;
        }
        push(text.get(done..));
    }

    /// Where a match ends once its last blank is left to the text that follows.
    fn end(&self, text: &str, start: usize, end: usize) -> usize {
        let found = text.get(start..end).unwrap_or_default();
        let ends_line = found.ends_with(['\r', '\n']);
        let keeps_all = match self.blanks {
            Blanks::Whole => true,
            Blanks::LeaveLast => false,
            Blanks::LeaveLastInLine => ends_line,
        };
        if keeps_all || end == text.len() || !found.chars().all(char::is_whitespace) {
            return end;
        }
        match found.char_indices().next_back() {
            Some((last, _)) if last > 0 => start + last,
            _ => end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 32] = [
        "gpt-2",
        "mpt",
        "olmo",
        "phi-2",
        "smollm",
        "starcoder",
        "refact",
        "command-r",
        "codeshell",
        "exaone",
        "llama3",
        "llama-v3",
        "llama-bpe",
        "falcon3",
        "lfm2",
        "dbrx",
        "smaug-bpe",
        "glm4",
        "chatglm-bpe",
        "qwen2",
        "deepseek-r1-qwen",
        "stablelm2",
        "megrez",
        "hunyuan",
        "qwen35",
        "gpt-4o",
        "llama4",
        "tekken",
        "deepseek-v3",
        "deepseek-coder",
        "deepseek-llm",
        "falcon",
    ];

    fn check_split(pre: &str, text: &str, expected: &[&str]) {
        let split = PreTokenizer::new(pre).unwrap();
        assert_eq!(split.split(text), expected, "{pre}: {text:?}");
    }

    #[test]
    fn every_pattern_compiles_and_loses_nothing() {
        let text = "Hello  WORLD's 12345 \n\n  \t x=1;\r\n ﻿日本語ｶﾅ 한국 ÀÉ! 🦀 \u{3000}q  ";
        for pre in NAMES.iter().chain(&["gemma4", "hunyuan-dense"]) {
            let words = PreTokenizer::new(pre).unwrap().split(text).concat();
            assert_eq!(words, text, "{pre}");
        }
    }

    #[test]
    fn blanks_before_text_keep_one_back() {
        check_split(
            "gpt-2",
            "a   b\n\nc  ",
            &["a", "  ", " b", "\n", "\n", "c", "  "],
        );
        check_split(
            "llama-bpe",
            "a   b\n\n c \n  d",
            &["a", "  ", " b", "\n\n", " c", " \n", " ", " d"],
        );
        check_split("smollm", "n  42", &["n", "  ", "4", "2"]);
        check_split("qwen2", "I'LL 1234", &["I", "'LL", " ", "1", "2", "3", "4"]);
    }

    #[test]
    fn unknown_names_are_refused_by_name() {
        for pre in ["", "default", "gpt2", "GPT-2", "llama-bpe "] {
            let error = PreTokenizer::new(pre).unwrap_err();
            assert!(error.to_string().contains(&format!("`{pre}`")), "{error}");
        }
    }
}
