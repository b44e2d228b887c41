//! The media a workload can write to from a computer.
//!
//! - [`Directory`]: files in a folder of this computer, past the page cache or through it ([`Io`]).
//! - [`FatCard`]: files on a FAT file system on a simulated card, through embedded-sdmmc, in virtual
//!   time; [`format()`] makes that file system.
//!
//! Both are [`Store`](cardiograph_workload::Store)s; [`HostClock`] and [`CardClock`] are their
//! clocks.

mod card_device;
mod clock;
mod directory;
mod error;
mod fat_card;
mod format;
mod medium;

pub use clock::{CardClock, HostClock};
pub use directory::{Directory, DirectoryFile, Io};
pub use error::StoreError;
pub use fat_card::{FatCard, FatFile, MountError};
pub use format::{FormatError, format};
pub use medium::Medium;
