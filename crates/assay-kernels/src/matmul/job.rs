//! One matmul as its tasks see it: shared inputs and an output whose cells the tasks divide.

use crate::disjoint::DisjointSlice;
use crate::isa::Isa;
use crate::quantize::QuantizedActivations;
use std::ops::Range;

/// Inputs and output of one matmul of a packed matrix.
pub(crate) struct Job<'a> {
    pub isa: Isa,
    /// Panels of 16 rows, `panel_bytes` each.
    pub panels: &'a [u8],
    pub panel_bytes: usize,
    /// Rows of the matrix = columns of the output.
    pub n: usize,
    /// 32-blocks along K.
    pub num_blocks: usize,
    pub activations: &'a QuantizedActivations,
    /// `[tile][sub-block][token]`, see `corrections`.
    pub corrections: &'a [u32],
    /// `[n]`.
    pub bias: Option<&'a [f32]>,
    /// `[num_tokens, n]`, row-major.
    pub out: DisjointSlice<'a, f32>,
}

/// A rectangle of the output: row groups (panels) × token tiles. Rectangles of one job are disjoint.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub groups: Range<usize>,
    pub tiles: Range<usize>,
}
