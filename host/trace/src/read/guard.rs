//! Keeps a panic of the Parquet decoder from ending the program.
//!
//! The decoder panics on some damaged pages, such as a packed difference whose length never ends.
//! What can be told beforehand is refused by [`super::parquet_pages`]; this is for the rest.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs the decoder; `None` if it panicked. What it worked on must not be used again then.
pub(super) fn guarded<T>(decode: impl FnOnce() -> T) -> Option<T> {
    // The panic is an error of the file, reported as such: its message must not reach the screen.
    static SILENCED: Once = Once::new();
    SILENCED.call_once(|| {
        let hook = take_hook();
        set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                hook(info);
            }
        }));
    });
    GUARDED.set(true);
    let result = catch_unwind(AssertUnwindSafe(decode));
    GUARDED.set(false);
    result.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_no_result() {
        assert_eq!(guarded(|| 5), Some(5));
        assert_eq!(guarded(|| -> u32 { panic!("damaged") }), None);
        assert!(!GUARDED.get());
    }
}
