//! placeholder
/// placeholder
#[derive(Debug)]
pub struct GgufFile;
/// placeholder
#[derive(Debug)]
pub struct Metadata;
/// placeholder
#[derive(Debug)]
pub struct TensorInfo;
/// placeholder
#[derive(Debug, thiserror::Error)]
pub enum GgufError {}
