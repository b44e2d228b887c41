//! A simulated SD card: physics rather than a table of answers.
//!
//! ```text
//!   Board ── the bus and its clock, the driver's CPU time, the library's habits (board.rs)
//!     │
//!   wire ─── the card over SPI, byte by byte, to any driver                     (wire/)
//!     │
//!   Card ─── what a command keeps the card busy for, and what it stores         (card.rs)
//!     ├── Translation: open units, log blocks, RAM pages, merges, wear levelling (translation.rs)
//!     ├── Flash:       pages and blocks, how long they take, with seeded spread  (flash.rs)
//!     └── Medium:      the bytes, kept sparsely                                  (medium.rs)
//! ```
//!
//! Everything happens in virtual time: an operation returns how long it takes, and whoever drives
//! the card moves the [`Clock`] on. The same seed gives the same times.
//!
//! [`Profile`]s and [`Board`]s are TOML with physical quantities only.

mod board;
mod card;
mod defects;
mod flash;
mod medium;
mod profile;
mod toml_file;
mod translation;
pub mod wire;

pub use board::{Board, Driver, Library, Spi};
pub use card::{Block, Card, CardError};
pub use cardiograph_sim_world::{Clock, Seed};
pub use defects::{BitErrors, Counterfeit, Defects, TornPage};
pub use profile::{Controller, Flash as FlashProfile, Profile};
pub use toml_file::{BOARDS, CARDS, TomlError, parse as parse_toml};

/// Bytes in a block, the unit of every command.
pub const BLOCK_BYTES: usize = 512;
