//! Counts the heap of the current thread, to prove that a file cannot make the reader allocate beyond its size.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(change: isize) {
    // A thread that is shutting down has no counters any more and is not measured.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + change);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

// SAFETY: every call goes to the system allocator with unchanged arguments, and the counters neither allocate
// nor unwind.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller keeps the contract of `alloc`, which is passed on as it is.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the pointer came from `alloc` above with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Runs `action`; also returns the most bytes it had on the heap at once.
pub(crate) fn peak_during<T>(action: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.get();
    PEAK.set(before);
    let result = action();
    (result, (PEAK.get() - before).unsigned_abs())
}

/// Fails when parsing a file of `file_bytes` took more than the reader's bound: arrays and text as large as in the
/// file, a fixed cost for each entry and tensor (at most six times its bytes), and the text of one error.
pub(crate) fn check_bounded(name: &str, peak_bytes: usize, file_bytes: usize) {
    let limit = 6 * file_bytes + 512;
    assert!(
        peak_bytes <= limit,
        "{name}: {peak_bytes} bytes of heap for a file of {file_bytes}"
    );
}
