//! Counts the heap of the current thread, to prove that a file cannot make the reader allocate beyond its size.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use assay_formats::gguf::{Gguf, GgufError, Place};

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

/// Runs `action`; also returns the most bytes it had on the heap at once, and those it left there.
fn heap_during<T>(action: impl FnOnce() -> T) -> (T, usize, usize) {
    let before = LIVE.get();
    PEAK.set(before);
    let result = action();
    let of = |bytes: isize| (bytes - before).unsigned_abs();
    (result, of(PEAK.get()), of(LIVE.get()))
}

/// The fixed part of an error: the place it names.
const ERROR_BYTES: usize = size_of::<Place>();

/// Parses `bytes`; fails when that took more heap at once than the file has bytes. A refused file may take the fixed
/// part of one error besides; the name that the error quotes is counted against the file's bytes.
pub(crate) fn parse_bounded<'a>(name: &str, bytes: &'a [u8]) -> Result<Gguf<&'a [u8]>, GgufError> {
    let (result, peak, kept) = heap_during(|| Gguf::parse(bytes));
    let limit = match &result {
        Ok(_) => bytes.len(),
        Err(_) => bytes.len() + ERROR_BYTES,
    };
    assert!(
        peak <= limit && kept <= limit,
        "{name}: {peak} bytes of heap for a file of {}: {result:?}",
        bytes.len()
    );
    result
}
