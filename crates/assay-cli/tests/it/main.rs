//! The binary from outside: arguments, exit codes, and the same bits whatever it runs on.

mod arguments;
mod binary;
mod doctor;
mod logging;
mod real_model;
mod real_model_eval;
mod real_model_receipts;
mod receipts;
mod serving;
mod signals;
mod statuses;
mod streams;
mod tiny;
