//! A simulated SD card that models the flash and its controller instead of replaying a table of latencies.
//!
//! ```text
//!   Board ── the bus and its clock, the driver's CPU time, the file library    (board.rs)
//!     │
//!   wire ─── the card over SPI or the SD bus, for any driver                      (wire/)
//!     │
//!   Card ─── stored data, effects of a power cut, defects                       (card.rs)
//!     ├── Storage: the bytes, stored sparsely                                (storage.rs)
//!     └── Controller: busy time of each command, power states             (controller.rs)
//!           ├── Meter: energy                                                 (energy.rs)
//!           └── Flash: mapping, garbage collection, wear                       (flash/)
//!                 └── Nand: pages and blocks, operation times with spread       (nand.rs)
//! ```
//!
//! Everything happens in virtual time: an operation returns how long it takes, and the caller advances the
//! [`Clock`]. The same seed gives the same times.
//!
//! [`Card::to_state`] saves a card and [`Card::from_state`] loads it (state.rs describes the format), so that a card aged
//! by one program continues in another.
//!
//! [`Profile`]s and [`Board`]s are TOML files with physical quantities only.

mod board;
mod card;
mod controller;
mod defects;
mod energy;
mod flash;
mod nand;
mod profile;
mod received;
mod state;
mod storage;
mod toml_file;
mod translation;
pub mod wire;

pub use board::{Board, Bus, Driver, Library, LibraryName, Network, Sd, Spi};
pub use card::{Block, Card, CardError};
pub use cardiograph_sim_world::{Clock, Random, Seed};
pub use controller::{Busy, Controller, Operation, TimedOperation};
pub use defects::{BitErrors, Counterfeit, Defects, TornPage};
pub use energy::Energy;
pub use profile::{
    Controller as ControllerProfile, Flash as FlashProfile, FlashEnergy, Ftl as FtlProfile,
    Mapping, Member, MemberValue, Power as PowerProfile, Profile, Victim,
};
pub use state::StateError;
pub use toml_file::{BOARDS, CARDS, FIXTURES, TomlError, card_text, parse as parse_toml};

/// Bytes in a block, the unit of every command.
pub const BLOCK_BYTES: usize = 512;
