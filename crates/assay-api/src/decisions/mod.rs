//! Typed decisions: a state and questions whose answers are distributions. One neutral form of questions and
//! readings, and a file for each dialect that is read into it and written from it.

pub mod decide;
mod input;
pub mod openai;
pub mod question;
pub mod reading;
pub mod schema;
pub mod settings;
pub mod state;
pub mod systemone;
pub mod validation;

pub use question::{Answers, Choice, ChoiceValue, Level, Question};
pub use reading::{Boundary, Diagnostics, LabelPath, Reading};
pub use settings::{DecisionSettings, Prior, Readout};
pub use state::{Item, ItemKind, Role, State};

/// Most questions of one request.
pub const MAX_QUESTIONS: usize = 400;
