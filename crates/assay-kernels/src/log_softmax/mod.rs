//! Log-probabilities of rows of logits: each row's maximum and the logarithm of its normaliser, in f64.
//!
//! Class: Exact. `lp_i = f64(l_i) - f64(m) - LN64(Z)`, `Z = SUM32 in f64 of EXP64(f64(l) - f64(m))`, chunks of
//! 1,024. Knows nothing of ids, ranks or sampling.

pub(crate) mod golden;
mod reductions;
mod reference;

use reductions::{ChunkSums, RowMax};
use thiserror::Error;

use crate::Compute;
use crate::exp64::ln64;
use crate::numerics::SUM_CHUNK;
use crate::simd::dispatch;

/// Logits that are worth a task of their own: whole chunks of the sum.
const TASK_LOGITS: usize = 16 * SUM_CHUNK;

/// A row whose logits have no distribution: it holds NaN or +infinity, or nothing above −infinity.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the row of logits is empty or has a NaN, a +infinity or no finite logit")]
pub struct NonFiniteRow;

/// What turns a logit of a row into its log-probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogSumExp {
    /// The row's largest logit (+0 where it is a zero of either sign).
    pub max: f32,
    /// `LN64(Z)`, at least 0: the normaliser relative to `max`.
    pub ln_z: f64,
}

impl LogSumExp {
    /// Natural log-probability of a logit of this row; −infinity for a logit of −infinity.
    pub fn logprob(&self, logit: f32) -> f64 {
        f64::from(logit) - f64::from(self.max) - self.ln_z
    }
}

/// Reduces one row of raw logits, `[vocab_size]`, over all threads.
///
/// # Errors
/// [`NonFiniteRow`] if no distribution can be formed; a logit of −infinity alone is legal and has probability 0.
pub fn log_sum_exp(cx: &Compute, row: &[f32]) -> Result<LogSumExp, NonFiniteRow> {
    let mut maxima = vec![0.0; row.len().div_ceil(TASK_LOGITS)];
    cx.pool.for_each_chunk(&mut maxima, 1, |task, max| {
        let logits = &row[task * TASK_LOGITS..row.len().min((task + 1) * TASK_LOGITS)];
        max[0] = dispatch(cx.isa, RowMax { logits });
    });
    let max = reference::row_max(&maxima);
    if !max.is_finite() {
        return Err(NonFiniteRow);
    }
    // Adding +0 makes a zero positive, whichever of ±0 a width met first.
    let max = max + 0.0;
    let mut sums = vec![0.0; row.len().div_ceil(SUM_CHUNK)];
    cx.pool
        .for_each_chunk(&mut sums, TASK_LOGITS / SUM_CHUNK, |task, sums| {
            let logits = &row[task * TASK_LOGITS..row.len().min((task + 1) * TASK_LOGITS)];
            dispatch(cx.isa, ChunkSums { logits, max, sums });
        });
    let z = sums.iter().fold(0.0, |z, sum| z + sum);
    Ok(LogSumExp { max, ln_z: ln64(z) })
}
