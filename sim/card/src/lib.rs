//! A simulated SD card: physics rather than a table of answers.
//!
//! ```text
//!   Board ── the bus and its clock, the driver's CPU time, the library's habits (board.rs)
//!     │
//!   wire ─── the card over SPI or the SD bus, to any driver                      (wire/)
//!     │
//!   Card ─── what is stored, what a power cut takes back, defects               (card.rs)
//!     ├── Medium: the bytes, kept sparsely                                      (medium.rs)
//!     └── Controller: how long a command keeps the card busy, power states  (controller.rs)
//!           ├── Meter: energy                                                  (energy.rs)
//!           └── Translation: open units, logs, RAM pages, clean-up         (translation.rs)
//!                 ├── Blocks: where units lie, wear, spares         (translation/blocks.rs)
//!                 └── Nand: pages and blocks, how long they take, with spread    (nand.rs)
//! ```
//!
//! Everything happens in virtual time: an operation returns how long it takes, and whoever drives
//! the card moves the [`Clock`] on. The same seed gives the same times.
//!
//! [`Profile`]s and [`Board`]s are TOML with physical quantities only.

mod board;
mod card;
mod controller;
mod defects;
mod energy;
mod medium;
mod nand;
mod profile;
mod toml_file;
mod translation;
pub mod wire;

pub use board::{Board, Bus, Driver, Library, LibraryName, Sd, Spi};
pub use card::{Block, Card, CardError};
pub use cardiograph_sim_world::{Clock, Random, Seed};
pub use controller::{Ask, Busy, Call, Controller};
pub use defects::{BitErrors, Counterfeit, Defects, TornPage};
pub use energy::Energy;
pub use profile::{
    Controller as ControllerProfile, Flash as FlashProfile, FlashEnergy, Power as PowerProfile,
    Profile,
};
pub use toml_file::{BOARDS, CARDS, TomlError, parse as parse_toml};

/// Bytes in a block, the unit of every command.
pub const BLOCK_BYTES: usize = 512;
