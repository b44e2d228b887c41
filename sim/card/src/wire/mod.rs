//! The card's interface: registers, commands and data transfers over SPI or the SD bus.
//!
//! Section numbers, here and in the modules, refer to the SD Physical Layer Simplified Specification,
//! version 9.00.
//!
//! ```text
//!   spi/ ── full-duplex bytes                              ──┐
//!   sd/  ── a command has a response, a block a CRC status ──┤
//!                                                            ├── Card
//!   shared: CSD, CID, SCR, OCR, SD status (registers.rs),   ─┘
//!   functions of CMD6 (switch.rs), checksums (crc.rs), bus clocks as virtual time (pace.rs), faults (fault.rs)
//! ```
//!
//! A [`Fault`] is injected at the interface: a power failure, a flipped bit, a lost command.
//! `docs/faults.md` describes each fault and the state of the card after the fault.

pub mod crc;
mod fault;
mod options;
mod pace;
mod registers;
pub mod sd;
pub mod spi;
mod switch;

pub use fault::{Fault, FaultMix, FaultSchedule};
pub use options::{Kind, Options, OptionsError};
pub use spi::{
    ChipSelect, Count, Delay, FaultCounts, InterruptedCard, SpiBus, SpiCard, SpiDevice, Wire,
};
