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
//!   (crc.rs), clocks as virtual time (pace.rs): common ground
//! ```

pub mod crc;
mod options;
mod pace;
mod registers;
pub mod sd;
pub mod spi;

pub use options::{Kind, Options, OptionsError};
pub use spi::{ChipSelect, Count, Delay, SpiBus, SpiCard, SpiDevice, Wire};
