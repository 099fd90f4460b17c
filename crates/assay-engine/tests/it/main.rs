//! The engine at its own door: requests in, outputs out, over a scripted model.

mod collect;
mod generation;
