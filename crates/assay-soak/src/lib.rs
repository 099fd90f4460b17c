//! Development only: what holds Assay to its promise on purpose-made traffic.
//!
//! - [`matrix`]: cells of company, cache, chunk, drafts, threads and restart; each proves that its condition came about.
//! - [`soak`] and [`http`]: a seeded stream of mixed requests, in process and over HTTP; [`cells`]: the matrix, sampled.
//!
//! [`restart`] runs cells again in a new process. [`mutant`] breaks rules on purpose, to see that the matrix notices.
//!
//! Both run on a [`rig::Rig`], an engine whose every step is held against a naive model ([`watch`]), and compare each
//! reply bit by bit with the same request alone on a cold engine ([`mod@reference`]).
#![forbid(unsafe_code)]

pub mod cells;
pub mod client;
pub mod decisions;
pub mod erring;
pub mod http;
pub mod matrix;
pub mod mutant;
pub mod random;
pub mod reference;
pub mod restart;
pub mod rig;
pub mod soak;
pub mod subject;
pub mod traffic;
pub mod watch;
