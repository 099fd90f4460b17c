//! A mutable slice that threads share by writing disjoint parts of it.

use std::marker::PhantomData;
use std::ops::Range;

/// Hands out parts of a slice to tasks that promise not to overlap.
#[derive(Debug)]
pub(crate) struct DisjointMut<'a, T> {
    ptr: *mut T,
    len: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: the value is a borrowed `&mut [T]`; sending or sharing it hands out `&mut` parts, which is
// sound for `T: Send` because `part` requires that parts in use never overlap.
unsafe impl<T: Send> Send for DisjointMut<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for DisjointMut<'_, T> {}

impl<'a, T> DisjointMut<'a, T> {
    /// Takes the slice for as long as the parts live.
    pub(crate) fn new(slice: &'a mut [T]) -> Self {
        Self {
            ptr: slice.as_mut_ptr(),
            len: slice.len(),
            slice: PhantomData,
        }
    }

    /// The elements of `range`; panics when it does not lie inside the slice.
    ///
    /// # Safety
    /// No other part that is alive overlaps `range`.
    #[expect(
        clippy::mut_from_ref,
        reason = "disjointness is the caller's obligation"
    )]
    pub(crate) unsafe fn part(&self, range: Range<usize>) -> &mut [T] {
        assert!(
            range.start <= range.end && range.end <= self.len,
            "part {range:?} of {} elements",
            self.len
        );
        // SAFETY: the range lies inside the borrowed slice (asserted above) and the caller vouches
        // that no live part overlaps it.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.add(range.start), range.len()) }
    }
}
