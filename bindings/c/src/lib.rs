//! The recorder as a static library with a C ABI; `include/cardiograph.h` declares it.
#![no_std]

mod exports;
mod hardware;
mod recorder;
mod status;

use core::panic::PanicInfo;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Callback for panics: a `fn()` of C, or null before the first recording.
static PANIC: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Sets the callback for panics.
fn set_panic(callback: extern "C" fn()) {
    PANIC.store(callback as *mut (), Ordering::Relaxed);
}

#[panic_handler]
fn panic(_: &PanicInfo) -> ! {
    let callback = PANIC.load(Ordering::Relaxed);
    if !callback.is_null() {
        // SAFETY: only `set_panic` stores a pointer other than null, and it stores this type of function.
        let callback = unsafe { core::mem::transmute::<*mut (), extern "C" fn()>(callback) };
        callback();
    }
    loop {
        core::hint::spin_loop();
    }
}
