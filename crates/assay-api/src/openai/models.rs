//! `GET /v1/models` and `/v1/models/{id}`.

use serde::{Deserialize, Serialize};

/// All served models.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelList {
    /// Always `list`.
    pub object: String,
    /// The models; aliases are not listed.
    pub data: Vec<Model>,
}

/// One served model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// Name that requests use.
    pub id: String,
    /// Always `model`.
    pub object: String,
    /// When it was loaded, seconds since 1970.
    pub created: u64,
    /// Who serves it.
    pub owned_by: String,
    /// Longest prompt and reply together, in tokens.
    pub max_model_len: u64,
}
