//! A whole data logger in one world: producer interrupt, recorder, FAT, card driver, wire, simulated card.
//!
//! ```text
//!   Samples ── interrupt ──> Producer ── ring ──> Recorder ── FatVolume
//!                 ^                                 │
//!                 └─── whenever time has passed ── Bus, Delay ── Card driver ── wire ── simulated card
//! ```
//!
//! All of it runs in one thread under virtual time and follows from a seed, power cuts and restarts
//! included. Nothing is global, so that thousands run side by side.

mod device;
mod interrupt;
mod samples;

pub use device::{Beside, Device, Finished, Logged, StreamSetup, card_kind};
pub use interrupt::Watch;
pub use samples::{LINE_BYTES_MIN, Lines, Samples, due_ns, line};
