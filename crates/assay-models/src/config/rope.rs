//! Rotary positions: base, linear scaling, and the scaling types that we refuse by name.

use super::keys::Keys;
use crate::error::ModelError;

/// Base where the file has none, for both kinds of layer.
const DEFAULT_THETA: f32 = 10_000.0;
const MAX_THETA: f32 = 1e12;
const MAX_LINEAR_SCALE: f32 = 1e6;

/// How positions turn queries and keys. Every element of a head turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RopeConfig {
    /// Base of the frequencies, from 1 to 1e12.
    pub rope_theta: f32,
    /// Divisor of every position; 1 for none.
    pub linear_scale: f32,
}

impl RopeConfig {
    /// The rotation of layers with full attention.
    pub(super) fn read(keys: &Keys<'_>, head_dim: usize) -> Result<Self, ModelError> {
        check_rotary_dims(keys, "rope.dimension_count", head_dim)?;
        Ok(Self {
            rope_theta: theta(keys, "rope.freq_base")?,
            linear_scale: linear_scale(keys)?,
        })
    }

    /// The rotation of layers with a window, which long-context scaling leaves alone.
    pub(super) fn read_local(keys: &Keys<'_>, head_dim: usize) -> Result<Self, ModelError> {
        check_rotary_dims(keys, "rope.dimension_count_swa", head_dim)?;
        Ok(Self {
            rope_theta: theta(keys, "rope.freq_base_swa")?,
            linear_scale: 1.0,
        })
    }
}

fn theta(keys: &Keys<'_>, key: &str) -> Result<f32, ModelError> {
    let theta = keys.f32_if_present(key)?.unwrap_or(DEFAULT_THETA);
    keys.require(key, theta, (1.0..=MAX_THETA).contains(&theta), || {
        format!("a number from 1 to {MAX_THETA:e}")
    })?;
    Ok(theta)
}

fn check_rotary_dims(keys: &Keys<'_>, key: &str, head_dim: usize) -> Result<(), ModelError> {
    match keys.u32_if_present(key)? {
        Some(found) if found as usize != head_dim => {
            Err(keys.unsupported(key, format!("{found} of the head's {head_dim} elements")))
        }
        _ => Ok(()),
    }
}

/// The divisor of linear scaling; other types change more than positions and are refused by name.
fn linear_scale(keys: &Keys<'_>) -> Result<f32, ModelError> {
    let type_key = "rope.scaling.type";
    let scaling = keys.str_if_present(type_key)?.unwrap_or("linear");
    if scaling == "none" {
        return Ok(1.0);
    }
    if scaling != "linear" {
        return Err(keys.unsupported(type_key, format!("{scaling:?}")));
    }
    let attn_key = "rope.scaling.attn_factor";
    match keys.f32_if_present(attn_key)? {
        None | Some(1.0) => {}
        Some(found) => return Err(keys.unsupported(attn_key, found)),
    }
    // The second key is the first one's name in older files.
    for key in ["rope.scaling.factor", "rope.scale_linear"] {
        if let Some(factor) = keys.positive_f32(key)? {
            keys.require(
                key,
                factor,
                (1.0..=MAX_LINEAR_SCALE).contains(&factor),
                || format!("0 for none, or a number from 1 to {MAX_LINEAR_SCALE:e}"),
            )?;
            return Ok(factor);
        }
    }
    Ok(1.0)
}
