//! Who answers: everything that can change a bit of a reply, and its short hash.

use serde::{Deserialize, Serialize};

use crate::canonical::sha256_hex;
use crate::hex_values::Sha256Hex;

/// Hex digits of a fingerprint.
const DIGITS: usize = 16;

/// A model as it is served. Threads, instruction set, device, batch, cache, drafts and the length of the context are not
/// here: they change no bit.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    /// Version of the numerics contract.
    pub numerics: String,
    /// `exact` or `fast`.
    pub profile: String,
    /// Type of keys and values in the cache.
    pub kv: String,
    /// The model's file.
    pub model: ModelFacts,
    /// Of the tokenizer's definition.
    pub tokenizer_sha256: Sha256Hex,
    /// Of the chat template's text, where there is one.
    pub template_sha256: Option<Sha256Hex>,
    /// Name and version of the way that typed questions are put.
    pub prompt_format: String,
    /// What was set otherwise than the file says.
    pub overrides: Overrides,
}

/// A model's file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFacts {
    /// Of the whole file.
    pub sha256: Sha256Hex,
    /// What it is served as.
    pub name: String,
    /// Its architecture.
    pub architecture: String,
}

/// What was set otherwise than the file says, and the clock of templates. Null where nothing was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overrides {
    /// Scaling of rotary positions.
    pub rope: Option<String>,
    /// Longest prompt and reply together, in tokens. It bounds a reply and changes no number.
    pub context: Option<u32>,
    /// Block format that weights were brought to at load.
    pub quantisation: Option<String>,
    /// Date that templates see.
    pub template_date: String,
    /// How reasoning is told from content: it decides what a budget or a constraint sees.
    pub reasoning_parser: Option<String>,
    /// How tool calls are told from content: the same.
    pub tool_parser: Option<String>,
}

impl Identity {
    /// `system_fingerprint`: `fp_` and 16 hex digits.
    pub fn fingerprint(&self) -> String {
        let overrides = &self.overrides;
        let template = self.template_sha256.as_ref().map(Sha256Hex::as_str);
        let parts = [
            Some(self.numerics.as_str()),
            Some(&self.profile),
            Some(&self.kv),
            Some(self.model.sha256.as_str()),
            Some(self.tokenizer_sha256.as_str()),
            template,
            Some(&overrides.template_date),
            Some(&self.prompt_format),
            overrides.rope.as_deref(),
            overrides.quantisation.as_deref(),
            overrides.reasoning_parser.as_deref(),
            overrides.tool_parser.as_deref(),
        ];
        let mut text = Vec::new();
        for part in parts {
            // Lengths keep neighbouring parts from running into each other; none is longer than what is not there.
            let length = part.map_or(u64::MAX, |part| part.len() as u64);
            text.extend(length.to_le_bytes());
            text.extend(part.unwrap_or_default().as_bytes());
        }
        format!("fp_{}", &sha256_hex(&text)[..DIGITS])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Identity {
        Identity {
            numerics: "n1".to_owned(),
            profile: "exact".to_owned(),
            kv: "f16".to_owned(),
            model: ModelFacts {
                sha256: Sha256Hex::of_bytes(b"weights"),
                name: "m".to_owned(),
                architecture: "llama".to_owned(),
            },
            tokenizer_sha256: Sha256Hex::of_bytes(b"tokenizer"),
            template_sha256: Some(Sha256Hex::of_bytes(b"template")),
            prompt_format: "assay-1".to_owned(),
            overrides: Overrides {
                template_date: "2025-01-01".to_owned(),
                ..Overrides::default()
            },
        }
    }

    /// Each row: what is changed, how, and whether a bit can follow it.
    #[test]
    fn what_can_change_a_bit_changes_it_and_nothing_else() {
        type Change = fn(&mut Identity);
        let rows: [(&str, Change, bool); 15] = [
            ("numerics", |of| of.numerics = "n2".to_owned(), true),
            ("profile", |of| of.profile = "fast".to_owned(), true),
            ("kv", |of| of.kv = "int8".to_owned(), true),
            (
                "weights",
                |of| of.model.sha256 = Sha256Hex::of_bytes(b"x"),
                true,
            ),
            (
                "tokenizer",
                |of| of.tokenizer_sha256 = Sha256Hex::of_bytes(b"x"),
                true,
            ),
            (
                "template",
                |of| of.template_sha256 = Some(Sha256Hex::of_bytes(b"x")),
                true,
            ),
            ("no template", |of| of.template_sha256 = None, true),
            (
                "template's clock",
                |of| of.overrides.template_date = "2026-01-01".to_owned(),
                true,
            ),
            (
                "prompt format",
                |of| of.prompt_format = "assay-2".to_owned(),
                true,
            ),
            (
                "rope",
                |of| of.overrides.rope = Some("linear:2".to_owned()),
                true,
            ),
            (
                "quantisation",
                |of| of.overrides.quantisation = Some("Q8_0".to_owned()),
                true,
            ),
            (
                "reasoning parser",
                |of| of.overrides.reasoning_parser = Some("none".to_owned()),
                true,
            ),
            (
                "tool parser",
                |of| of.overrides.tool_parser = Some("none".to_owned()),
                true,
            ),
            ("name", |of| of.model.name = "other".to_owned(), false),
            ("context", |of| of.overrides.context = Some(7), false),
        ];
        let mut seen = vec![base().fingerprint()];
        for (what, change, is_seen) in rows {
            let mut changed = base();
            change(&mut changed);
            let fingerprint = changed.fingerprint();
            if is_seen {
                assert!(!seen.contains(&fingerprint), "{what}");
                seen.push(fingerprint);
            } else {
                assert_eq!(fingerprint, seen[0], "{what}");
            }
        }
    }

    #[test]
    fn it_has_its_form() {
        let fingerprint = base().fingerprint();
        let digits = fingerprint.strip_prefix("fp_").expect("its prefix");
        assert_eq!(digits.len(), DIGITS);
    }
}
