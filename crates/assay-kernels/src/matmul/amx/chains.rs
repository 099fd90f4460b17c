//! The contract's two chains over the sums of one phase, 16 tokens × 16 rows at a time.

use super::product::Product;
use super::{GROUPS, Pass, Phase, Tile};
use crate::matmul::panel::BLOCKS_PER_STEP;
use crate::matmul::quants::PANEL_ROWS;
use crate::quantize::TILE_ROWS;
use std::arch::x86_64::*;

/// A value per token, lanes are rows.
type Rows = [__m512; TILE_ROWS];

impl<const SUB_BLOCK: usize, const HAS_OFFSET: bool> Pass<'_, SUB_BLOCK, HAS_OFFSET> {
    /// Folds the sums of output `o` (`token tile · GROUPS + group`) of a phase; a step's last phase
    /// ends level 1, a chunk's last step stores the outputs.
    ///
    /// # Safety
    /// As `multiply`; the phase's sums are stored, and earlier phases of the tile are folded.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) unsafe fn fold<P: Product>(&self, phase: Phase, o: usize) {
        let Some(group) = self.groups.clone().nth(o % GROUPS) else {
            return;
        };
        let tile = phase.first_tile + o / GROUPS;
        // SAFETY: the caller's contract; `o` is below four, as are the tiles of the scratch.
        unsafe {
            let spilled = &raw mut (*self.scratch).acc[o];
            let mut acc = if phase.first_sub == 0 {
                [_mm512_setzero_ps(); TILE_ROWS]
            } else {
                load_tile(spilled)
            };
            self.level_1::<P>(phase, o, tile, &mut acc);
            if phase.first_sub + phase.num_subs < phase.step_subs {
                store_tile(spilled, acc);
                return;
            }
            let kept = &raw mut (*self.scratch).y[o];
            let mut y = match phase.step {
                0 => [_mm512_setzero_ps(); TILE_ROWS],
                step if step == self.steps.start => self.load_outputs(group, tile),
                _ => load_tile(kept),
            };
            let scales = self.job.activations.tile_scales(tile);
            for (t, (y, acc)) in y.iter_mut().zip(acc).enumerate() {
                *y = if P::WIDE {
                    let scale = *scales.get_unchecked(phase.step * TILE_ROWS + t);
                    _mm512_fmadd_ps(acc, _mm512_set1_ps(scale), *y)
                } else {
                    _mm512_add_ps(*y, acc)
                };
            }
            if phase.step + 1 < self.steps.end {
                store_tile(kept, y);
            } else {
                self.store_outputs(group, tile, y);
            }
        }
    }

    /// Level 1 over the sub-blocks of the phase.
    ///
    /// # Safety
    /// As `fold`.
    #[inline(always)]
    unsafe fn level_1<P: Product>(&self, phase: Phase, o: usize, tile: usize, acc: &mut Rows) {
        let job = self.job;
        let first_block = phase.step * BLOCKS_PER_STEP;
        let scales = job.activations.tile_scales(tile);
        let lifted = self.weights.lift != 0.0;
        // SAFETY: the caller's contract: the step's scales are expanded; scales and corrections hold
        // every block of the tile.
        unsafe {
            let lift = _mm512_set1_ps(self.weights.lift);
            let in_chunk = phase.step - self.steps.start;
            let weights = &raw const (*self.scratch).scales[o % GROUPS][in_chunk];
            let first_sub = first_block * Self::SUBS_PER_BLOCK + phase.first_sub;
            let tile_subs = job.num_blocks * Self::SUBS_PER_BLOCK;
            let corrections = job
                .corrections
                .as_ptr()
                .wrapping_add((tile * tile_subs + first_sub) * TILE_ROWS)
                .cast::<f32>();
            for i in 0..phase.num_subs {
                let j = phase.first_sub + i;
                let weight = _mm512_load_ps((*weights)[j][0].as_ptr());
                let offset = if HAS_OFFSET {
                    _mm512_load_ps((*weights)[j][1].as_ptr())
                } else {
                    _mm512_setzero_ps()
                };
                let sums = &raw const (*self.scratch).sums[i];
                let sums = sums.cast::<Tile>().add(o);
                let corrections = corrections.wrapping_add(i * TILE_ROWS);
                let block = first_block + j / Self::SUBS_PER_BLOCK;
                for (t, acc) in acc.iter_mut().enumerate() {
                    let mut s = _mm512_load_ps((*sums)[t].as_ptr());
                    if HAS_OFFSET && lifted {
                        let block_sum = _mm512_set1_ps(*corrections.add(t));
                        s = _mm512_fmadd_ps(block_sum, lift, s);
                    }
                    let scaled = |w| {
                        if P::WIDE {
                            return w;
                        }
                        let scale = *scales.get_unchecked(block * TILE_ROWS + t);
                        _mm512_mul_ps(w, _mm512_set1_ps(scale))
                    };
                    *acc = _mm512_fmadd_ps(s, scaled(weight), *acc);
                    if HAS_OFFSET {
                        let block_sum = _mm512_set1_ps(*corrections.add(t));
                        *acc = _mm512_fmadd_ps(block_sum, scaled(offset), *acc);
                    }
                }
            }
        }
    }

    /// First output column of a group, and the lanes that are columns.
    #[inline(always)]
    fn columns(&self, group: usize) -> (usize, usize, __mmask16) {
        let first = group * PANEL_ROWS;
        let count = (self.job.n - first).min(PANEL_ROWS);
        (first, count, ((1_u32 << count) - 1) as __mmask16)
    }

    /// # Safety
    /// AVX-512 F; no other task writes these outputs.
    #[inline(always)]
    unsafe fn load_outputs(&self, group: usize, tile: usize) -> Rows {
        let (first, count, mask) = self.columns(group);
        // SAFETY: the caller vouches for the CPU.
        let mut y = unsafe { [_mm512_setzero_ps(); TILE_ROWS] };
        let tokens = self.job.activations.tile_tokens(tile);
        for (token, y) in tokens.zip(&mut y) {
            // SAFETY: the caller's contract; the mask covers exactly the slice's elements.
            unsafe {
                let output = self.job.out.part(token * self.job.n + first, count);
                *y = _mm512_maskz_loadu_ps(mask, output.as_ptr());
            }
        }
        y
    }

    /// Stores the rows that are tokens, with the bias if K ends here.
    ///
    /// # Safety
    /// AVX-512 F; no other task writes these outputs.
    #[inline(always)]
    unsafe fn store_outputs(&self, group: usize, tile: usize, y: Rows) {
        let (first, count, mask) = self.columns(group);
        let num_steps = self.job.num_blocks.div_ceil(BLOCKS_PER_STEP);
        let bias = match self.job.bias {
            Some(bias) if self.steps.end == num_steps => {
                let bias = &bias[first..first + count];
                // SAFETY: the mask covers exactly the slice's elements.
                Some(unsafe { _mm512_maskz_loadu_ps(mask, bias.as_ptr()) })
            }
            _ => None,
        };
        for (token, y) in self.job.activations.tile_tokens(tile).zip(y) {
            // SAFETY: the caller's contract; the mask covers exactly the slice's elements.
            unsafe {
                let y = bias.map_or(y, |bias| _mm512_add_ps(y, bias));
                let output = self.job.out.part(token * self.job.n + first, count);
                _mm512_mask_storeu_ps(output.as_mut_ptr(), mask, y);
            }
        }
    }
}

/// # Safety
/// AVX-512 F; `tile` was written.
#[inline(always)]
unsafe fn load_tile(tile: *const Tile) -> Rows {
    // SAFETY: the caller's contract; scratch tiles are aligned to 64 bytes.
    std::array::from_fn(|t| unsafe { _mm512_load_ps((*tile)[t].as_ptr()) })
}

/// # Safety
/// AVX-512 F; `tile` may be written.
#[inline(always)]
unsafe fn store_tile(tile: *mut Tile, values: Rows) {
    for (t, value) in values.into_iter().enumerate() {
        // SAFETY: the caller's contract; scratch tiles are aligned to 64 bytes.
        unsafe { _mm512_store_ps((&raw mut (*tile)[t]).cast(), value) };
    }
}
