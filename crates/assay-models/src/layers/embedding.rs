//! Token ids to rows of the residual stream.

use super::matrix::Matrix;
use crate::backend::Backend;
use crate::pass::Pass;

/// Writes the rows of the pass's tokens to `out`, `[num_tokens, hidden_size]`; ids are in range.
pub(crate) fn embed<B: Backend>(pass: &Pass<'_, B>, table: &Matrix<B>, out: &mut B::Rows) {
    pass.backend.resize(out, pass.num_tokens() * table.k());
    pass.backend.embed(pass, table.get(), out);
}
