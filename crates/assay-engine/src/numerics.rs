//! TEMPORARY seam until the kernels land; removed with the next merge.
use assay_models::{Logits, TokenId};
pub(crate) fn exp64(x: f64) -> f64 {
    if x < -708.0 { 0.0 } else { x.exp() }
}
pub(crate) fn ln64(x: f64) -> f64 {
    x.ln()
}
#[derive(Debug)]
pub(crate) struct LogSumExp {
    pub max: f32,
    pub ln_z: f64,
}
impl LogSumExp {
    pub(crate) fn logprob(&self, l: f32) -> f64 {
        f64::from(l) - f64::from(self.max) - self.ln_z
    }
}
pub(crate) fn log_sum_exp(logits: &Logits, row: usize) -> LogSumExp {
    let row = logits.row(row);
    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    LogSumExp {
        max,
        ln_z: ln64(
            row.iter()
                .map(|&l| exp64(f64::from(l) - f64::from(max)))
                .sum(),
        ),
    }
}
pub(crate) fn top_k(logits: &Logits, row: usize, k: usize) -> Vec<(TokenId, f32)> {
    let mut all: Vec<(TokenId, f32)> = (0..).zip(logits.row(row).iter().copied()).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    all.truncate(k);
    all
}
