//! Scores of rows on a device: made together for all rows of a head's answer, read back as a few words a row.

use crate::cuda::{Cuda, CudaError, DeviceBuffer, Grid, launch};
use crate::log_softmax::{LogSumExp, NonFiniteRow};
use crate::numerics::SUM_CHUNK;

/// The best of a row that are kept with its score (`TOP_K_FEW` of the kernels is no less).
pub const NUM_BEST: usize = 20;

/// Words of a row's score before its best (`RowScore` of the kernels).
const SCORE_WORDS: usize = 4;
/// Shared memory that a block of threads has without asking for more.
const SHARED_BYTES: usize = 48 << 10;

/// What is known of a row without reading it.
#[derive(Clone, Debug, PartialEq)]
pub struct RowScore {
    /// The row's normaliser.
    pub normaliser: Result<LogSumExp, NonFiniteRow>,
    /// Whether no logit is NaN or an infinity.
    pub is_finite: bool,
    /// The best [`NUM_BEST`] (all, where there are fewer) ids with their logits, best first; none of a row with a NaN, or
    /// where the vocabulary is too large for the kernel that finds them.
    pub best: Vec<(u32, f32)>,
}

/// Where scores are made; memory that is reused.
#[derive(Debug, Default)]
pub struct RowScores {
    /// `[row][slice]` of (maximum, finiteness).
    slices: DeviceBuffer<f32>,
    /// `[row][slice][keep]` keys.
    best: DeviceBuffer<u64>,
    /// `[row][chunk]`.
    sums: DeviceBuffer<f64>,
    /// `[row]` of a score and its best.
    scores: DeviceBuffer<u32>,
    num_rows: usize,
    num_best: usize,
    ids: DeviceBuffer<u32>,
    of_ids: DeviceBuffer<u32>,
}

impl RowScores {
    /// Asks for the scores of `logits`, `[num_rows, vocab_size]`; waits for nothing.
    ///
    /// # Panics
    /// If `logits` is not whole rows, or rows are longer than `i32::MAX`.
    pub fn score(&mut self, cuda: &Cuda, logits: &DeviceBuffer<f32>, vocab_size: usize) {
        assert!(
            vocab_size > 0 && logits.len().is_multiple_of(vocab_size),
            "logits are not whole rows"
        );
        let vocab = i32::try_from(vocab_size).expect("a vocabulary of at most i32::MAX");
        let (num_rows, num_chunks) = (logits.len() / vocab_size, vocab_size.div_ceil(SUM_CHUNK));
        let list_bytes = num_chunks * (NUM_BEST * size_of::<u64>() + size_of::<u16>());
        let num_best = match list_bytes <= SHARED_BYTES {
            true => NUM_BEST.min(vocab_size),
            false => 0,
        };
        (self.num_rows, self.num_best) = (num_rows, num_best);
        let row_words = self.row_words();
        self.slices.sized(cuda, 2 * num_rows * num_chunks);
        self.best.sized(cuda, num_rows * num_chunks * num_best);
        self.sums.sized(cuda, num_rows * num_chunks);
        self.scores.sized(cuda, num_rows * row_words);
        let slices = Grid {
            blocks: [num_chunks, num_rows, 1],
            ..Grid::new(0, 512)
        };
        let sums = Grid {
            blocks: [1 + num_chunks.div_ceil(4), num_rows, 1],
            threads: 128,
            shared_bytes: if num_best > 0 { list_bytes } else { 0 },
        };
        let (from, kernels) = (logits.ptr(cuda), &cuda.kernels);
        let (keep, chunks, words) = (num_best as i32, num_chunks as i32, row_words as i32);
        // SAFETY: `logits` is `num_rows` rows of `vocab_size`; every other buffer was sized for as many rows, slices,
        // chunks and keys as the kernels are told.
        unsafe {
            launch!(
                cuda, &kernels.row_scores_slices, slices;
                from, vocab, keep, self.slices.ptr(cuda), self.best.ptr(cuda),
            );
            launch!(
                cuda, &kernels.row_scores_sums, sums;
                from, vocab, self.slices.ptr(cuda), self.best.ptr(cuda), keep, keep,
                self.sums.ptr(cuda), self.scores.ptr(cuda), words,
            );
            launch!(
                cuda, &kernels.row_scores_finish, Grid::new(num_rows, 32);
                self.sums.ptr(cuda), chunks, self.scores.ptr(cuda), words,
            );
        }
    }

    /// The scores last asked for, once they are made.
    ///
    /// # Errors
    /// The device's first fault.
    pub fn read(&self, cuda: &Cuda) -> Result<Vec<RowScore>, CudaError> {
        let row_words = self.row_words();
        let words = self.scores.read(cuda, 0, self.num_rows * row_words)?;
        Ok(words.chunks_exact(row_words).map(row_score).collect())
    }

    /// The logits of `ids` in row `row` of `logits`, and how many ids come before each: those of larger logits, and of
    /// equal ones the smaller ids. Meaningless beside a NaN.
    ///
    /// # Errors
    /// The device's first fault.
    ///
    /// # Panics
    /// If there is no such row, or an id is no column of it.
    pub fn of_ids(
        &mut self,
        cuda: &Cuda,
        logits: &DeviceBuffer<f32>,
        vocab_size: usize,
        row: usize,
        ids: &[u32],
    ) -> Result<Vec<(f32, u32)>, CudaError> {
        assert!((row + 1) * vocab_size <= logits.len(), "row {row}");
        assert!(
            ids.iter().all(|&id| (id as usize) < vocab_size),
            "ids below {vocab_size}"
        );
        self.ids.fill(cuda, ids);
        self.of_ids.sized(cuda, 2 * ids.len());
        let from = logits.ptr(cuda) + (row * vocab_size * size_of::<f32>()) as u64;
        // SAFETY: the row lies in `logits`, every id is a column of it, and the output has two words an id.
        unsafe {
            launch!(
                cuda, &cuda.kernels.row_scores_ids, Grid::new(ids.len(), 1024);
                from, vocab_size as i32, self.ids.ptr(cuda), self.of_ids.ptr(cuda),
            );
        }
        let words = self.of_ids.read(cuda, 0, 2 * ids.len())?;
        let pair = |pair: &[u32]| (f32::from_bits(pair[0]), pair[1]);
        Ok(words.chunks_exact(2).map(pair).collect())
    }

    fn row_words(&self) -> usize {
        SCORE_WORDS + 2 * self.num_best
    }
}

fn row_score(words: &[u32]) -> RowScore {
    let max = f32::from_bits(words[0]);
    let ln_z = f64::from_bits(u64::from(words[3]) << 32 | u64::from(words[2]));
    let pair = |pair: &[u32]| (pair[0], f32::from_bits(pair[1]));
    let best = words[SCORE_WORDS..].chunks_exact(2).map(pair);
    RowScore {
        normaliser: match max.is_finite() {
            true => Ok(LogSumExp { max, ln_z }),
            false => Err(NonFiniteRow),
        },
        is_finite: words[1] != 0,
        best: if max.is_nan() {
            Vec::new()
        } else {
            best.collect()
        },
    }
}
