//! Decisions: label tries against each label's path forced alone, in every kind of company.

mod cases;
mod company;
mod healing;
mod labels_of_real_model;
mod real_path;
mod refused;
pub(crate) mod support;
