//! A complete simulated data logger: sampling interrupt, recorder, FAT, card driver, wire, simulated card.
//!
//! ```text
//!   Samples ── interrupt ──> Producer ── ring ──> Recorder ── FatVolume
//!                 ^                                 │
//!                 └─── whenever time has passed ── Bus, Delay ── Card driver ── wire ── simulated card
//! ```
//!
//! Everything runs in one thread in virtual time and is determined by a seed, including power cuts and
//! restarts. There is no global state, so thousands of devices can run in parallel.

mod device;
mod interrupt;
mod samples;

pub use device::{
    BackgroundTask, Device, DeviceFuture, Ended, Outcome, RunResult, StreamSetup, card_kind,
};
pub use interrupt::Watch;
pub use samples::{LINE_BYTES_MIN, Lines, Samples, due_ns, line};
