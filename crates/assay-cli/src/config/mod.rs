//! Every setting of the binary, from three places: flag, then `ASSAY_*` variable, then configuration file.
//!
//! The only code that reads the environment. What leaves here is complete and checked.

mod device;
mod environment;
mod file;
mod model;
mod serve;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use device::Device;
#[cfg(test)]
pub(crate) use environment::unknown_among;
pub(crate) use environment::unknown_variables;
pub(crate) use model::{ModelArgs, ModelConfig, WeightsArgs};
pub(crate) use serve::{LogFormat, ServeArgs, ServeConfig};
pub(crate) use store::StoreArgs;
