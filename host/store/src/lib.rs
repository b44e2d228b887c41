//! Stores that a workload can write to from a host.
//!
//! - [`Directory`]: files in a directory of the host, through the page cache or bypassing it ([`Io`]).
//! - [`FatCard`]: files on a FAT file system on a simulated card, through embedded-sdmmc.
//! - [`CachedCard`]: files on a FAT file system on a simulated card, through a window of one sector, like
//!   FatFs, or through a page cache, like Linux.
//! - [`RawCard`]: the blocks of a simulated card, without a file system.
//!
//! The first three implement [`Store`](cardiograph_workload::Store); [`HostClock`] and [`CardClock`] are their
//! clocks. Cards are simulated in virtual time; [`format()`] creates their file system, and [`run_on_card`]
//! runs a workload on any card and board.
//!
//! ```text
//!   run_on_card ───┬─ FatCard ─── embedded-sdmmc ─────────────────┐
//!                  └─ CachedCard ─ the crate fatfs ─┬─ Window ────┤
//!        both over FileBuffer                       └─ PageCache ─┴─ CardDevice ─┬─ SpiPort
//!                                                                                └─ SdHost
//! ```

mod cached_card;
mod card_device;
mod clock;
#[cfg(not(target_family = "wasm"))]
mod directory;
mod error;
mod fat_card;
mod fatfs_device;
mod file_buffer;
mod format;
mod own_overhead;
mod page_cache;
mod raw_card;
mod sd_host;
mod simulated;
mod spi_port;
#[cfg(not(target_family = "wasm"))]
mod storage_info;
mod volume;
mod window;

pub use cached_card::{CachedCard, CachedFile, CachedStore};
pub use card_device::DriverError;
pub use clock::{CardClock, HostClock};
#[cfg(not(target_family = "wasm"))]
pub use directory::{Directory, DirectoryFile, Io};
pub use error::{StoreError, is_out_of_files};
pub use fat_card::{FatCard, FatFile, MountError};
pub use format::{FormatError, format};
pub use own_overhead::{OwnOverhead, own_overhead};
pub use raw_card::RawCard;
pub use sd_host::SdHostError;
pub use simulated::{SimulatedRun, run_on_card};
#[cfg(not(target_family = "wasm"))]
pub use storage_info::StorageInfo;
