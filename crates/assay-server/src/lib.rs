//! HTTP: router, one thin handler per route, conversion, streaming, errors, metrics.
//!
//! The only async library of the workspace. It knows no kernels and does no arithmetic on scores; wire and
//! engine words meet in `convert/` alone. Build an [`AppState`], then [`serve()`] it on a listener, or call
//! [`router()`] in process.
#![forbid(unsafe_code)]

mod body;
mod config;
mod convert;
mod deadline;
mod deciding;
mod error;
mod ignored;
mod layers;
pub mod ledger;
mod lifecycle;
mod metrics;
mod model_text;
mod places;
mod process;
mod random;
mod receipts;
mod reply;
mod router;
mod routes;
mod serve;
mod sink;
mod sse;
mod stall;
mod state;

pub use assay_api::about::{DeviceFacts, ModelFacts, WeightFacts};
pub use config::{Installed, Limits, ParserChoice, ServerConfig};
pub use convert::decisions::prompt::PROMPT_FORMAT;
pub use error::{ApiError, TokenCount};
pub use router::router;
pub use serve::{Shutdown, ShutdownTrigger, serve, shutdown_channel};
pub use state::AppState;
