//! What is compared: readouts, each with and without debiasing.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// What the model answers with.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum Readout {
    /// The options' own words
    Label,
    /// Short codes that stand for them
    Code,
}

/// What is done against a leaning towards places and words.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum Debias {
    /// Nothing
    None,
    /// The options in several orders
    Rotations,
    /// Division by the answer about an empty state
    Prior,
    /// Rotations and prior
    Both,
}

/// One way to read a question.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub(super) struct Setting {
    /// What the model answers with.
    pub(super) readout: Readout,
    /// What is done against leanings.
    pub(super) debias: Debias,
    /// Orders of the options; 1 where they are not rotated.
    pub(super) rotations: u32,
}

impl Setting {
    /// Every readout with every debiasing, in this order; `rotations` where options are rotated.
    pub(super) fn all(readouts: &[Readout], debiases: &[Debias], rotations: u32) -> Vec<Self> {
        let with_each = |&readout: &Readout| {
            debiases.iter().map(move |&debias| Self {
                readout,
                debias,
                rotations: match debias {
                    Debias::None | Debias::Prior => 1,
                    Debias::Rotations | Debias::Both => rotations,
                },
            })
        };
        readouts.iter().flat_map(with_each).collect()
    }

    /// As members of a request's body, each behind a comma.
    pub(super) fn members(self) -> String {
        let readout = match self.readout {
            Readout::Label => "label",
            Readout::Code => "code",
        };
        let mut members = format!(",\"readout\":\"{readout}\"");
        if self.rotations > 1 {
            members.push_str(&format!(",\"debias\":{{\"rotations\":{}}}", self.rotations));
        }
        if matches!(self.debias, Debias::Prior | Debias::Both) {
            members.push_str(",\"prior\":\"content_free\"");
        }
        members
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let readout = match self.readout {
            Readout::Label => "label",
            Readout::Code => "code",
        };
        match self.debias {
            Debias::None => write!(formatter, "{readout} | none"),
            Debias::Rotations => write!(formatter, "{readout} | {} orders", self.rotations),
            Debias::Prior => write!(formatter, "{readout} | prior"),
            Debias::Both => write!(formatter, "{readout} | {} orders, prior", self.rotations),
        }
    }
}
