//! How the integers of a profile and the quants of a format meet in tiles.

/// One way to sum a sub-block.
pub(super) trait Product {
    /// 16-bit activations, scaled once per 256-block; else 8-bit ones, scaled per 32-block.
    const WIDE: bool;
    /// `hi` and `lo` are summed apart.
    const SPLIT: bool;
    /// Activation tiles per 32-block.
    const TILES_PER_BLOCK: usize = if Self::WIDE { 2 } else { 1 };
    /// Tiles of sums per output.
    const SUMS: usize = if Self::SPLIT { 2 } else { 1 };
    /// Token tiles at once, as the four tiles of sums allow with two row groups.
    const TOKEN_TILES: usize = 2 / Self::SUMS;
}

/// 16-bit activations whose sums stay below 2^24.
pub(super) struct Joined;
/// 16-bit activations of any format.
pub(super) struct Split;
/// 8-bit activations.
pub(super) struct Narrow;

impl Product for Joined {
    const WIDE: bool = true;
    const SPLIT: bool = false;
}

impl Product for Split {
    const WIDE: bool = true;
    const SPLIT: bool = true;
}

impl Product for Narrow {
    const WIDE: bool = false;
    const SPLIT: bool = false;
}
