//! A slice that several tasks write at once, each its own part.
//!
//! For outputs whose tasks own strided pieces (`[T, N]` split over N), where `chunks_mut` cannot say it.
//! Knows nothing of threads; the promise that parts do not overlap is the caller's.

use std::marker::PhantomData;

/// A mutable slice split at run time among tasks.
#[derive(Debug)]
pub struct DisjointSlice<'a, T> {
    start: *mut T,
    len: usize,
    _slice: PhantomData<&'a mut [T]>,
}

// SAFETY: the pointer came from `&mut [T]` and is only turned into parts that do not overlap (the promise
// of `part`), so sharing it among threads moves at most `T`s between threads.
unsafe impl<T: Send> Sync for DisjointSlice<'_, T> {}

impl<'a, T> DisjointSlice<'a, T> {
    /// Takes the slice for as long as the parts live.
    pub fn new(slice: &'a mut [T]) -> Self {
        Self {
            start: slice.as_mut_ptr(),
            len: slice.len(),
            _slice: PhantomData,
        }
    }

    /// Elements of the whole slice.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the slice is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The part `[start, start + len)`.
    ///
    /// # Panics
    /// If the part reaches past the slice.
    ///
    /// # Safety
    /// No two parts that live at the same time may overlap.
    #[expect(
        clippy::mut_from_ref,
        reason = "parts are disjoint by the caller's promise"
    )]
    pub unsafe fn part(&self, start: usize, len: usize) -> &mut [T] {
        assert!(
            start <= self.len && len <= self.len - start,
            "part {start}+{len} of {}",
            self.len
        );
        // SAFETY: in bounds by the assert above; unaliased by this function's own contract.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start), len) }
    }
}
