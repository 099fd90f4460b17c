//! Token ids to rows of the residual stream.

use assay_kernels::Compute;

use super::matrix::Matrix;
use crate::forward::TokenId;

/// Writes row `token_ids[t]` of `table` to row `t` of `out`, `[num_tokens, hidden_size]`; ids are in range.
pub(crate) fn embed(cx: &Compute, table: &Matrix, token_ids: &[TokenId], out: &mut [f32]) {
    cx.pool.for_each_chunk(out, table.k(), |token, row| {
        table.row_into(token_ids[token] as usize, row)
    });
}
