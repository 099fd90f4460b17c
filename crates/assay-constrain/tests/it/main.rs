//! Constraints against texts: what each schema lets through, what it refuses, and that masks keep
//! their word. Knows no model; tokens are bytes and a few pieces.

mod enforcement;
mod masks;
mod numbers;
mod official_suite;
mod refusals;
mod texts;
mod vocabulary;
