//! The wire: what a card says of itself, and how it is spoken to.
//!
//! Section numbers, here and in the files below, are those of the SD Physical Layer Simplified
//! Specification, version 9.00.
//!
//! ```text
//!   spi/ ── a byte answers a byte                         ──┐
//!   sd/  ── a command has a response, a block a CRC status ──┤
//!                                                            ├── Card
//!   CSD, CID, SCR, OCR, SD status (registers.rs), checksums ─┘
//!   (crc.rs), clocks as virtual time (pace.rs), strikes (strike.rs): common ground
//! ```
//!
//! A [`Strike`] is a fault that happens at the wire: power that fails, a flipped bit, a lost command.
//! What each does, and what a card holds after it, is written down in `docs/faults.md`.

pub mod crc;
mod options;
mod pace;
mod registers;
pub mod sd;
pub mod spi;
mod strike;

pub use options::{Kind, Options, OptionsError};
pub use spi::{ChipSelect, Copied, Count, Delay, Effects, SpiBus, SpiCard, SpiDevice, Wire};
pub use strike::{Mix, Strike, Strikes};
