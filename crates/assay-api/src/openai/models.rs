//! `GET /v1/models` and `/v1/models/{id}`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All served models.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelList {
    /// Always `list`.
    #[schemars(extend("const" = "list"))]
    pub object: String,
    /// The models; aliases are not listed.
    pub data: Vec<Model>,
    /// The same in the System One shape, with the alias that its clients use.
    pub models: Vec<ModelCard>,
}

/// One name of a served model in the System One shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelCard {
    /// Name that requests use.
    pub name: String,
    /// For people.
    pub description: String,
    /// When it was loaded here, `YYYY-MM-DD`: model files do not say when they were released.
    pub release_date: String,
}

/// One served model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Model {
    /// Name that requests use.
    pub id: String,
    /// Always `model`.
    #[schemars(extend("const" = "model"))]
    pub object: String,
    /// When it was loaded, seconds since 1970.
    pub created: u64,
    /// Who serves it.
    pub owned_by: String,
    /// Longest prompt and reply together, in tokens.
    pub max_model_len: u64,
}
