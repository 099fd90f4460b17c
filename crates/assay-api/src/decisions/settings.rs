//! How questions are read: the fields that every dialect takes beside its own.

use crate::error::FieldError;
use crate::fields::{Fields, NumberRange};

/// Most rotations of a question's options.
pub const MAX_ROTATIONS: i64 = 255;

/// How questions are read.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionSettings {
    /// What the model answers with.
    pub readout: Readout,
    /// Orders of the options to read and to combine; 1 reads the given one.
    pub rotations: u32,
    /// What the reading is divided by.
    pub prior: Option<Prior>,
    /// A lower `label_mass` refuses the question.
    pub min_label_mass: Option<f64>,
    /// Whether each label's tokens and their values are reported.
    pub diagnostics: bool,
    /// Whether the reply carries its receipt.
    pub receipt: bool,
    /// Keeps what the prefix cache learns to requests of the same salt; never empty.
    pub cache_salt: Option<String>,
}

/// What the model answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Readout {
    /// The caller's words.
    #[default]
    Label,
    /// Short codes that stand for the options.
    Code,
}

/// What a reading is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prior {
    /// What the same question answers about an empty state.
    ContentFree,
}

impl Default for DecisionSettings {
    fn default() -> Self {
        Self {
            readout: Readout::default(),
            rotations: 1,
            prior: None,
            min_label_mass: None,
            diagnostics: false,
            receipt: false,
            cache_salt: None,
        }
    }
}

impl DecisionSettings {
    /// Takes the settings from a body.
    ///
    /// # Errors
    /// A wrong type, a value out of range, an unknown member of `debias`, or one that is not done.
    pub fn read(body: &mut Fields) -> Result<Self, FieldError> {
        let readouts = [("label", Readout::Label), ("code", Readout::Code)];
        let readout = body.choice("readout", &readouts)?.unwrap_or_default();
        let rotations = match body.object("debias")? {
            None => 1,
            Some(mut debias) => {
                let rotations = debias.integer("rotations", 1..=MAX_ROTATIONS)?;
                check_untaken(&debias)?;
                rotations
                    .and_then(|count| u32::try_from(count).ok())
                    .unwrap_or(1)
            }
        };
        Ok(Self {
            readout,
            rotations,
            prior: body.choice("prior", &[("content_free", Prior::ContentFree)])?,
            min_label_mass: body.number("min_label_mass", NumberRange::closed(0.0, 1.0))?,
            diagnostics: body.boolean("diagnostics")?.unwrap_or(false),
            receipt: body.boolean("receipt")?.unwrap_or(false),
            cache_salt: crate::openai::generation::read_cache_salt(body)?,
        })
    }
}

/// Refuses members that nobody took: of a question, an unknown one could change what is asked.
pub(super) fn check_untaken(fields: &Fields) -> Result<(), FieldError> {
    match fields.untaken().next() {
        None => Ok(()),
        Some(path) => {
            let message = format!("`{path}`: is not a field that is known here");
            Err(FieldError::new(path, message))
        }
    }
}
