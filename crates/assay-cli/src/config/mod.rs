//! Every setting of the binary, from three places: flag, then `ASSAY_*` variable, then configuration file.
//!
//! The only code that reads the environment. What leaves here is complete and checked.

mod device;
mod file;
mod model;
mod serve;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use device::Device;
pub(crate) use model::{ModelArgs, ModelConfig, WeightsArgs};
pub(crate) use serve::{LogFormat, ServeArgs, ServeConfig};
pub(crate) use store::StoreArgs;
