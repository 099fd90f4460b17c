//! The scalar path, and the meaning of the op: the chains of the contract's section 3, one output
//! at a time, from the packed panel.
//!
//! It uses neither the corrections nor the split of the activations: `s_j` and `S_j` are summed
//! here from the integers themselves.

use super::job::{Job, Task};
use super::panel::steps;
use super::quants::{BLOCK, PANEL_ROWS, QuantLayout};
use super::scales::ScaleLayout;
use crate::quantize::{ActivationProfile, QuantizedActivations};

/// Runs one task.
pub(super) fn run<Q: QuantLayout, S: ScaleLayout>(job: &Job<'_>, task: Task, zero_point: u8) {
    let mut activations = vec![0_i32; job.num_blocks * BLOCK];
    for token in task
        .tiles
        .flat_map(|tile| job.activations.tile_tokens(tile))
    {
        job.activations.read_row(token, &mut activations);
        for group in task.groups.clone() {
            let panel = &job.panels[group * job.panel_bytes..][..job.panel_bytes];
            let rows = PANEL_ROWS.min(job.n - group * PANEL_ROWS);
            let first = token * job.n + group * PANEL_ROWS;
            // SAFETY: tasks of a job are disjoint rectangles of the output.
            let out = unsafe { job.out.part(first, rows) };
            for (row, out) in out.iter_mut().enumerate() {
                let y = dot::<Q, S>(panel, row, zero_point, &activations, job.activations, token);
                *out = match job.bias {
                    Some(bias) => y + bias[group * PANEL_ROWS + row],
                    None => y,
                };
            }
        }
    }
}

/// One output before the bias.
fn dot<Q: QuantLayout, S: ScaleLayout>(
    panel: &[u8],
    row: usize,
    zero_point: u8,
    integers: &[i32],
    activations: &QuantizedActivations,
    token: usize,
) -> f32 {
    let mut y = 0.0_f32;
    for step in steps::<Q, S>(integers.len() / BLOCK) {
        let section = &panel[step.section..step.quants];
        let mut acc = 0.0_f32;
        for block in 0..step.num_blocks {
            let quants = Q::get(&panel[step.quants + block * Q::SUB_BLOCK_BYTES..], row);
            let first = (step.first_block + block) * BLOCK;
            let integers = &integers[first..first + BLOCK];
            let d_a = activations.scale(token, step.first_block + block);
            for (i, (quants, a)) in quants
                .chunks_exact(S::SUB_BLOCK)
                .zip(integers.chunks_exact(S::SUB_BLOCK))
                .enumerate()
            {
                let j = block * (BLOCK / S::SUB_BLOCK) + i;
                let q = |quant: u8| i32::from(quant) - i32::from(zero_point);
                let s: i32 = quants.iter().zip(a).map(|(&quant, a)| q(quant) * a).sum();
                let sum: i32 = a.iter().sum();
                let mut weight = S::weight(section, j, row);
                let mut offset = S::offset(section, j, row);
                if activations.profile() == ActivationProfile::A8 {
                    weight *= d_a;
                    offset *= d_a;
                }
                acc = (s as f32).mul_add(weight, acc);
                if S::HAS_OFFSET {
                    acc = (sum as f32).mul_add(offset, acc);
                }
            }
        }
        y = match activations.profile() {
            ActivationProfile::A16 => acc.mul_add(activations.scale(token, step.first_block), y),
            ActivationProfile::A8 => y + acc,
        };
    }
    y
}
