//! Keeps a panic of the Parquet decoder from terminating the program.
//!
//! The decoder panics on some damaged pages, such as a packed delta whose length never ends. Damage that can
//! be detected beforehand is rejected by [`super::parquet_pages`]; this module catches panics on all other
//! damage.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs the decoder; returns `None` if it panicked. The decoder's state must not be used after that.
pub(super) fn guarded<T>(decode: impl FnOnce() -> T) -> Option<T> {
    // The panic is reported as an error of the file; its own message must not reach the terminal.
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
    fn a_panic_yields_none() {
        assert_eq!(guarded(|| 5), Some(5));
        assert_eq!(guarded(|| -> u32 { panic!("damaged") }), None);
        assert!(!GUARDED.get());
    }
}
