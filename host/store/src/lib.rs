//! The media a workload can write to from a computer.
//!
//! - [`Directory`]: files in a folder of this computer, past the page cache or through it ([`Io`]).
//! - [`FatCard`]: files on a FAT file system on a simulated card, through embedded-sdmmc.
//! - [`CachedCard`]: the same through a window of one sector, as FatFs has it, or a page cache, as
//!   Linux has it.
//!
//! All are [`Store`](cardiograph_workload::Store)s; [`HostClock`] and [`CardClock`] are their clocks.
//! Cards are simulated in virtual time; [`format()`] makes their file system, and [`run_on_card`]
//! runs a workload on any card on any board. A [`SharedCard`] is any of them with a download beside the
//! workload.
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
mod directory;
mod download;
mod error;
mod fat_card;
mod file_buffer;
mod format;
mod medium;
mod page_cache;
mod sd_host;
mod shared_card;
mod simulated;
mod spi_port;
mod volume;
mod window;

pub use cached_card::{CachedCard, CachedFile, CachedStore};
pub use card_device::DriverError;
pub use clock::{CardClock, HostClock};
pub use directory::{Directory, DirectoryFile, Io};
pub use download::{Download, DownloadError, Downloaded};
pub use error::StoreError;
pub use fat_card::{FatCard, FatFile, MountError};
pub use format::{FormatError, format};
pub use medium::Medium;
pub use sd_host::SdHostError;
pub use shared_card::{SharedCard, SharedClock, SharedStore};
pub use simulated::{SimulatedRun, run_on_card};
