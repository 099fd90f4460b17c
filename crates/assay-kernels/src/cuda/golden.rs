//! The ops of golden cases on a device, and its self-test.

use std::sync::Arc;

use crate::attention::AttentionParams;
use crate::attention::SequenceSpan;
use crate::attention::cuda::{DeviceKvLayer, DeviceSpans, attention, kv_write};
use crate::embed::cuda::{DeviceTokenIds, embed};
use crate::gelu_mul::cuda::gelu_mul;
use crate::golden::{CASES, GoldenCase, check_cases, recorded};
use crate::golden_ops::{GoldenOps, Heads, KeysValues, QuantizedRow};
use crate::log_softmax::{LogSumExp, NonFiniteRow};
use crate::matmul::PackedMatrix;
use crate::matmul::cuda::{DeviceMatrix, Product, matmul};
use crate::quantize::ActivationProfile;
use crate::quantize::cuda::DeviceActivations;
use crate::residual;
use crate::rms_norm::cuda::{rms_norm, rms_norm_in_place};
use crate::rope::cuda::{DeviceRopeTable, rope};
use crate::rope::{RopeStyle, RopeTable};
use crate::row_scores::cuda::{NUM_BEST, RowScore, RowScores};
use crate::silu_mul::cuda::silu_mul;
use crate::softcap::cuda::softcap;
use crate::top_k::cuda::top_k;

use super::device::FATBIN;
use super::{Cuda, CudaError, DeviceBuffer, Grid, launch};

/// NaN as f16: what stands in slots of the cache that nothing was written to.
const NAN_BITS: u16 = 0x7E00;

/// What a golden case gave on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The recorded bits.
    Same,
    /// Other bits.
    Different,
    /// The device does not have the op.
    Absent,
}

/// Every golden case by name, and what it gave.
pub type CaseReport = Vec<(&'static str, Verdict)>;

impl Verdict {
    /// Whether the device computes nothing else than what the contract says.
    pub fn agrees(self) -> bool {
        self != Self::Different
    }
}

impl Cuda {
    /// Opens device `ordinal` and tells of each golden case what it gave, instead of refusing a device that differs: to
    /// look into a device, or to try other machine code than this build's (`fatbin`).
    ///
    /// # Errors
    /// As [`Cuda::open`], but for a case that differs.
    pub fn open_with_report(
        ordinal: usize,
        fatbin: Option<&[u8]>,
    ) -> Result<(Arc<Self>, CaseReport), CudaError> {
        let cuda = Self::open_untested(ordinal, fatbin.unwrap_or(FATBIN))?;
        let verdict = |case: &GoldenCase| match (case.run)(&*cuda) {
            None => Verdict::Absent,
            Some(hash) if recorded(case.name) == Some(hash.to_hex().as_str()) => Verdict::Same,
            Some(_) => Verdict::Different,
        };
        let cases = CASES.iter().copied().flatten();
        let report = cases.map(|case| (case.name, verdict(case))).collect();
        Ok((cuda, report))
    }

    /// Runs every golden case that the device has against the committed hashes.
    pub(super) fn self_test(&self) -> Result<(), CudaError> {
        let checked = check_cases(self, "CUDA");
        // A fault explains wrong bits, not the other way round.
        self.check()?;
        Ok(checked?)
    }

    fn rows(&self, values: &[f32]) -> DeviceBuffer<f32> {
        let mut rows = DeviceBuffer::default();
        rows.fill(self, values);
        rows
    }

    fn read(&self, rows: &DeviceBuffer<f32>) -> Vec<f32> {
        self.or_nan(rows.read(self, 0, rows.len()), rows.len())
    }

    /// What was read; NaN after a fault, which no golden hash has.
    fn or_nan(&self, read: Result<Vec<f32>, CudaError>, len: usize) -> Vec<f32> {
        read.unwrap_or_else(|_| vec![f32::NAN; len])
    }

    fn changed(&self, x: &[f32], change: impl FnOnce(&mut DeviceBuffer<f32>)) -> Vec<f32> {
        let mut rows = self.rows(x);
        change(&mut rows);
        self.read(&rows)
    }

    fn filled(&self, len: usize, fill: impl FnOnce(&mut DeviceBuffer<f32>)) -> Vec<f32> {
        self.changed(&vec![f32::NAN; len], fill)
    }

    fn changed64(&self, x: &[f64], kernel: &cudarc::driver::CudaFunction) -> Vec<f64> {
        let mut values = DeviceBuffer::default();
        values.fill(self, x);
        let len = x.len();
        // SAFETY: the buffer holds `len` elements, which the kernel is told.
        unsafe { launch!(self, kernel, Grid::elements(len); values.ptr(self), len) };
        values
            .read(self, 0, len)
            .unwrap_or_else(|_| vec![f64::NAN; len])
    }

    fn row_score(&self, row: &[f32]) -> Option<RowScore> {
        let (logits, mut scores) = (self.rows(row), RowScores::default());
        scores.score(self, &logits, row.len());
        self.note(scores.read(self))?.pop()
    }

    fn product(&self, w: &DeviceMatrix, x: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
        let (rows, bias) = (self.rows(x), bias.map(|bias| self.rows(bias)));
        let mut quantized = DeviceActivations::default();
        if w.takes_integers() {
            quantized.quantize(self, &rows, w.k());
        }
        self.filled(x.len() / w.k() * w.n(), |out| {
            let product = Product {
                w,
                bias: bias.as_ref(),
                out,
            };
            matmul(self, &rows, &quantized, &mut [product]);
        })
    }
}

impl GoldenOps for Cuda {
    fn add(&self, out: &[f32], x: &[f32]) -> Vec<f32> {
        let x = self.rows(x);
        self.changed(out, |out| residual::cuda::add(self, out, &x))
    }

    fn scale(&self, x: &[f32], factor: f32) -> Vec<f32> {
        self.changed(x, |x| residual::cuda::scale(self, x, factor))
    }

    fn rms_norm(&self, x: &[f32], weight: &[f32], eps: f32) -> Vec<f32> {
        let (rows, weight) = (self.rows(x), self.rows(weight));
        self.filled(x.len(), |out| {
            rms_norm(self, &rows, &weight, eps, out, None);
        })
    }

    fn rms_norm_in_place(&self, x: &[f32], weight: &[f32], eps: f32) -> Vec<f32> {
        let weight = self.rows(weight);
        self.changed(x, |x| rms_norm_in_place(self, x, &weight, eps))
    }

    fn rope(
        &self,
        table: &RopeTable,
        style: RopeStyle,
        positions: &[u32],
        x: &[f32],
        heads: Heads,
    ) -> Vec<f32> {
        let Some(table) = self.note(DeviceRopeTable::upload(self, table)) else {
            return Vec::new();
        };
        let mut on_device = DeviceBuffer::default();
        on_device.fill(self, positions);
        let end = positions.iter().max().map_or(0, |&last| last as usize + 1);
        let heads = [heads.num_heads, heads.head_dim];
        self.changed(x, |x| {
            rope(self, &table, style, &on_device, end, x, heads);
        })
    }

    fn silu_mul(&self, gate: &[f32], up: &[f32]) -> Vec<f32> {
        let (gate, up) = (self.rows(gate), self.rows(up));
        let n = gate.len();
        self.filled(n, |out| silu_mul(self, &gate, &up, n, out, None))
    }

    fn gelu_mul(&self, gate: &[f32], up: &[f32]) -> Vec<f32> {
        let (gate, up) = (self.rows(gate), self.rows(up));
        let n = gate.len();
        self.filled(n, |out| gelu_mul(self, &gate, &up, n, out, None))
    }

    fn softcap(&self, x: &[f32], cap: f32) -> Vec<f32> {
        self.changed(x, |x| softcap(self, x, cap))
    }

    fn exp(&self, x: &[f32]) -> Vec<f32> {
        self.changed(x, |x| {
            let (len, kernel) = (x.len(), &self.kernels.exp_all);
            // SAFETY: the buffer holds `len` elements, which the kernel is told.
            unsafe { launch!(self, kernel, Grid::elements(len); x.ptr(self), len) };
        })
    }

    fn exp64(&self, x: &[f64]) -> Vec<f64> {
        self.changed64(x, &self.kernels.exp64_all)
    }

    fn ln64(&self, x: &[f64]) -> Vec<f64> {
        self.changed64(x, &self.kernels.ln64_all)
    }

    fn log_sum_exp(&self, row: &[f32]) -> Result<LogSumExp, NonFiniteRow> {
        self.row_score(row)
            .map_or(Err(NonFiniteRow), |score| score.normaliser)
    }

    fn top_k(&self, row: &[f32], k: usize) -> Option<Vec<(u32, f32)>> {
        if k <= NUM_BEST {
            let mut best = self.row_score(row)?.best;
            best.truncate(k);
            return Some(best);
        }
        let best = top_k(self, &self.rows(row), row.len(), k);
        self.note(best)?.map(|mut rows| rows.swap_remove(0))
    }

    fn embed(&self, table: &PackedMatrix, token_ids: &[u32]) -> Vec<f32> {
        let Some(table) = self.note(DeviceMatrix::upload(self, table)) else {
            return Vec::new();
        };
        let mut ids = DeviceTokenIds::default();
        ids.set(self, token_ids);
        self.filled(token_ids.len() * table.k(), |out| {
            embed(self, &table, &ids, out);
        })
    }

    fn quantize(
        &self,
        x: &[f32],
        k: usize,
        profile: ActivationProfile,
    ) -> Option<Vec<QuantizedRow>> {
        if profile != ActivationProfile::A16 {
            return None;
        }
        let mut quantized = DeviceActivations::default();
        quantized.quantize(self, &self.rows(x), k);
        Some(quantized.read_rows(self).unwrap_or_default())
    }

    fn matmul(
        &self,
        w: &PackedMatrix,
        x: &[f32],
        profile: ActivationProfile,
        bias: Option<&[f32]>,
    ) -> Option<Vec<f32>> {
        if profile != ActivationProfile::A16 {
            return None;
        }
        let w = self.note(DeviceMatrix::upload(self, w))?;
        // Each number of tokens has its kernel: one by one, all together, and enough for the widest. The bits of a
        // row do not depend on it; where they do, the case is made to fail.
        let whole = self.product(&w, x, bias);
        let single: Vec<f32> = x
            .chunks_exact(w.k())
            .flat_map(|row| self.product(&w, row, bias))
            .collect();
        let repeated = self.product(&w, &x.repeat(5), bias);
        let bits = |rows: &[f32]| -> Vec<u32> {
            let canonical = rows.iter().map(|&y| crate::numerics::canonical_bits(y));
            canonical.collect()
        };
        let expected = bits(&whole);
        let agree = bits(&single) == expected
            && bits(&repeated)
                .chunks_exact(expected.len())
                .all(|rows| rows == expected);
        Some(if agree { whole } else { Vec::new() })
    }

    fn attention(
        &self,
        params: &AttentionParams<'_>,
        stored: &KeysValues<'_>,
        rows: &SequenceSpan<'_>,
        q: &[f32],
    ) -> Vec<f32> {
        let layer = DeviceKvLayer::new(
            self,
            stored.num_blocks,
            params.num_kv_heads,
            params.head_dim,
        );
        let Some(mut layer) = self.note(layer) else {
            return Vec::new();
        };
        let filled = layer.fill(self, NAN_BITS);
        self.note(filled);
        let mut spans = DeviceSpans::default();
        spans.set(self, &[stored.span]);
        kv_write(
            self,
            &mut layer,
            &spans,
            &self.rows(stored.k),
            &self.rows(stored.v),
        );
        spans.set(self, &[*rows]);
        let (q, sinks) = (self.rows(q), params.sinks.map(|sinks| self.rows(sinks)));
        self.filled(q.len(), |out| {
            let sinks = sinks.as_ref();
            attention(self, (params, sinks), &layer, &mut spans, &q, out, None);
        })
    }
}
