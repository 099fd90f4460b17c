//! The loop of a gated activation: `activation(gate) * up`, element by element, split over threads.

use crate::Compute;
use crate::simd::{Simd, VectorOp, dispatch};

/// Elements that are worth a task of their own.
const TASK_ELEMENTS: usize = 8_192;

/// An activation as the contract writes it, and the same by lanes.
pub(crate) trait Activation: Copy + Sync {
    /// The meaning.
    fn scalar(self, x: f32) -> f32;
    /// The same bits; implementations are `#[inline(always)]`.
    fn lanes<S: Simd>(self, simd: S, x: S::F32) -> S::F32;
}

/// Writes `activation(gate[i]) * up[i]` to `out[i]`.
///
/// # Panics
/// If the three lengths differ.
pub(crate) fn gate_mul(
    cx: &Compute,
    activation: impl Activation,
    gate: &[f32],
    up: &[f32],
    out: &mut [f32],
) {
    assert_eq!(gate.len(), up.len(), "gate and up differ in length");
    assert_eq!(gate.len(), out.len(), "gate and out differ in length");
    cx.pool.for_each_chunk(out, TASK_ELEMENTS, |task, out| {
        let range = task * TASK_ELEMENTS..task * TASK_ELEMENTS + out.len();
        let (gate, up) = (&gate[range.clone()], &up[range]);
        dispatch(
            cx.isa,
            GateMul {
                activation,
                gate,
                up,
                out,
            },
        );
    });
}

struct GateMul<'a, A> {
    activation: A,
    gate: &'a [f32],
    up: &'a [f32],
    out: &'a mut [f32],
}

impl<A: Activation> VectorOp for GateMul<'_, A> {
    type Output = ();

    fn reference(self) {
        for ((&gate, &up), out) in self.gate.iter().zip(self.up).zip(self.out) {
            *out = self.activation.scalar(gate) * up;
        }
    }

    #[inline(always)]
    fn vector<S: Simd>(self, simd: S) {
        let whole = self.out.len() / S::F32_LANES * S::F32_LANES;
        for at in (0..whole).step_by(S::F32_LANES) {
            // SAFETY: `at + F32_LANES <= whole`, and the three slices are equally long (`gate_mul`).
            unsafe {
                let gate = simd.load(self.gate.as_ptr().add(at));
                let up = simd.load(self.up.as_ptr().add(at));
                let product = simd.mul(self.activation.lanes(simd, gate), up);
                simd.store(self.out.as_mut_ptr().add(at), product);
            }
        }
        let tail = GateMul {
            activation: self.activation,
            gate: &self.gate[whole..],
            up: &self.up[whole..],
            out: &mut self.out[whole..],
        };
        tail.reference();
    }
}
