//! `system_fingerprint`: a short hash of everything that can change a bit of a reply, and nothing else.

use assay_kernels::numerics::CONTRACT_VERSION;
use sha2::{Digest, Sha256};

/// Hex digits shown.
const DIGITS: usize = 16;

/// What goes into the hash. Threads, batch, context limit and instruction set do not: they change no bit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ingredients<'a> {
    /// Hash of the model file.
    pub(crate) weights_sha256: &'a str,
    /// Hash of the tokenizer's definition.
    pub(crate) tokenizer: &'a str,
    /// Source of the chat template, where there is one.
    pub(crate) template: Option<&'a str>,
    /// Date that templates see.
    pub(crate) template_date: &'a str,
    /// `exact` or `fast`.
    pub(crate) profile: &'a str,
    /// Type of keys and values in the cache.
    pub(crate) kv: &'a str,
}

/// `fp_` and 16 hex digits.
pub(crate) fn fingerprint(of: &Ingredients<'_>) -> String {
    let mut hasher = Sha256::new();
    let template = of.template.unwrap_or_default();
    let parts = [
        CONTRACT_VERSION,
        of.weights_sha256,
        of.tokenizer,
        template,
        of.template_date,
        of.profile,
        of.kv,
    ];
    for part in parts {
        // Lengths keep neighbouring parts from running into each other.
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let digits = crate::digest::hex(&hasher.finalize());
    format!("fp_{}", &digits[..DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ingredient_changes_it() {
        let base = Ingredients {
            weights_sha256: "w",
            tokenizer: "t",
            template: Some("c"),
            template_date: "2025-01-01",
            profile: "exact",
            kv: "f16",
        };
        let variants = [
            Ingredients {
                weights_sha256: "x",
                ..base
            },
            Ingredients {
                tokenizer: "x",
                ..base
            },
            Ingredients {
                template: None,
                ..base
            },
            Ingredients {
                template_date: "2026-01-01",
                ..base
            },
            Ingredients {
                profile: "fast",
                ..base
            },
            Ingredients { kv: "int8", ..base },
            Ingredients {
                weights_sha256: "wt",
                tokenizer: "",
                ..base
            },
        ];
        let mut seen = vec![fingerprint(&base)];
        for variant in &variants {
            let next = fingerprint(variant);
            assert!(!seen.contains(&next), "{variant:?}");
            seen.push(next);
        }
        assert_eq!(fingerprint(&base), seen[0]);
    }
}
