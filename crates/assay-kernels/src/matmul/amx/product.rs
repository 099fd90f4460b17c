//! How the integers of a profile and the quants of a format meet in tiles.

/// One way to sum a sub-block.
pub(super) trait Product {
    /// 16-bit activations, scaled once per 256-block; else 8-bit ones, scaled per 32-block.
    const WIDE: bool;
    /// Activation tiles per 32-block.
    const TILES_PER_BLOCK: usize = if Self::WIDE { 2 } else { 1 };
}

/// 16-bit activations whose sums stay below 2^24.
pub(super) struct Joined;
/// 8-bit activations.
pub(super) struct Narrow;

impl Product for Joined {
    const WIDE: bool = true;
}

impl Product for Narrow {
    const WIDE: bool = false;
}
