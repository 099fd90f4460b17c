//! How a sub-block becomes the quad vectors that a tile of weights is loaded from.

use super::super::format::{Format, store_quads};
use crate::matmul::quants::QuantLayout;
use std::arch::x86_64::__m512i;
use std::marker::PhantomData;

/// How a sub-block becomes quad vectors.
pub(super) trait Expand {
    /// Bytes of a sub-block of `format`.
    fn sub_block_bytes(format: &Format) -> usize;

    /// Where its quad vectors are: written to `out`, or there already.
    ///
    /// # Safety
    /// AVX-512 F, BW; `sub_block` is one of `format`, `out` can be written.
    unsafe fn expand(format: &Format, sub_block: *const u8, out: *mut __m512i) -> *const __m512i;
}

/// By code inside the kernel, which is compiled for layout `Q` alone.
pub(super) struct Inlined<Q>(PhantomData<Q>);

/// By a call: one kernel for all layouts, which puts its registers aside at each.
pub(super) struct Called;

impl<Q: QuantLayout> Expand for Inlined<Q> {
    #[inline(always)]
    fn sub_block_bytes(_format: &Format) -> usize {
        Q::SUB_BLOCK_BYTES
    }

    #[inline(always)]
    unsafe fn expand(_format: &Format, sub_block: *const u8, out: *mut __m512i) -> *const __m512i {
        if Q::IS_PLAIN {
            return sub_block.cast();
        }
        // SAFETY: the caller's contract.
        unsafe { store_quads::<Q>(sub_block, out) };
        out
    }
}

impl Expand for Called {
    #[inline(always)]
    fn sub_block_bytes(format: &Format) -> usize {
        format.sub_block_bytes
    }

    #[inline(always)]
    unsafe fn expand(format: &Format, sub_block: *const u8, out: *mut __m512i) -> *const __m512i {
        // SAFETY: the caller's contract.
        unsafe { (format.quads)(sub_block, out) };
        out
    }
}
