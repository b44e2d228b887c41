//! Executor that never sleeps.
//!
//! While a processor sleeps, QEMU's clock follows that of the computer. If the computer is busy, the clock then jumps, and
//! many samples are due at once. Without sleep, only instructions move it. A real board would sleep (`wfi`).
#![allow(unsafe_code)]

use embassy_executor::Spawner;
use embassy_executor::raw::Executor;
use static_cell::StaticCell;

/// Runs tasks, beginning with those that `start` spawns.
pub fn run(start: impl FnOnce(Spawner)) -> ! {
    static EXECUTOR: StaticCell<Executor> = StaticCell::new();
    let executor = EXECUTOR.init_with(|| Executor::new(core::ptr::null_mut()));
    start(executor.spawner());
    loop {
        // SAFETY: this is the only call, in the thread that created the executor, and not in one of its tasks.
        unsafe { executor.poll() };
    }
}

/// Called when a task can run: the loop above notices this anyway.
#[unsafe(export_name = "__pender")]
fn pend(_: *mut ()) {}
