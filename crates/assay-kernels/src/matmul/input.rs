//! The input rows of one or more matmuls: f32 as given, quantised once when first needed.

use crate::Compute;
use crate::quantize::{ActivationProfile, Operands, QuantizedActivations};
use std::cell::{OnceCell, RefCell};

/// Rows `[num_tokens, k]` that several matrices multiply.
///
/// The integers are made on the first use by a quantised matrix and shared by all later ones like it;
/// float matrices read the f32 rows.
#[derive(Debug)]
pub struct Activations<'a> {
    cx: &'a Compute,
    x: &'a [f32],
    k: usize,
    profile: ActivationProfile,
    spare: RefCell<QuantizedActivations>,
    quantized: OnceCell<QuantizedActivations>,
    bytes: OnceCell<QuantizedActivations>,
}

impl<'a> Activations<'a> {
    /// Rows `x`, `[num_tokens, k]` row-major.
    ///
    /// # Panics
    /// When `k` is zero or `x` is not whole rows.
    pub fn new(cx: &'a Compute, x: &'a [f32], k: usize, profile: ActivationProfile) -> Self {
        Self::with_buffer(cx, x, k, profile, QuantizedActivations::default())
    }

    /// [`Activations::new`] that reuses the memory of `buffer`.
    ///
    /// # Panics
    /// As [`Activations::new`].
    pub fn with_buffer(
        cx: &'a Compute,
        x: &'a [f32],
        k: usize,
        profile: ActivationProfile,
        buffer: QuantizedActivations,
    ) -> Self {
        assert!(
            k > 0 && x.len().is_multiple_of(k),
            "{} values are not rows of {k}",
            x.len()
        );
        let spare = RefCell::new(buffer);
        Self {
            cx,
            x,
            k,
            profile,
            spare,
            quantized: OnceCell::new(),
            bytes: OnceCell::new(),
        }
    }

    /// The buffer back, for the next batch.
    pub fn into_buffer(self) -> QuantizedActivations {
        let spare = self.spare.into_inner();
        let quantized = self.quantized.into_inner().or(self.bytes.into_inner());
        quantized.unwrap_or(spare)
    }

    /// The rows as given, `[num_tokens, k]`.
    pub fn rows(&self) -> &'a [f32] {
        self.x
    }

    /// Rows.
    pub fn num_tokens(&self) -> usize {
        self.x.len() / self.k
    }

    /// Elements of a row.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Precision of the integers.
    pub(crate) fn profile(&self) -> ActivationProfile {
        self.profile
    }

    /// The rows as integers, for the instruction set of the compute context and a matrix that multiplies `operands`.
    ///
    /// # Panics
    /// When `k` is not a multiple of 32.
    pub(crate) fn quantized(&self, operands: Operands) -> &QuantizedActivations {
        // Where both are laid out alike, one serves both.
        let cell = match operands {
            Operands::Bytes if Operands::differ(self.cx.isa, self.profile, self.num_tokens()) => {
                &self.bytes
            }
            Operands::Bytes | Operands::Floats => &self.quantized,
        };
        cell.get_or_init(|| {
            let mut quantized = self.spare.take();
            quantized.quantize_as(operands, self.cx, self.x, self.k, self.profile);
            quantized
        })
    }
}
