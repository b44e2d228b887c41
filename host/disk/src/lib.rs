//! Whole disks on Linux: an SD card in a reader, a USB stick, a loop device.
//!
//! ```text
//!   /dev/sdX ──> System::find ──> Identity        what the kernel knows about the disk
//!                    │      └───> refusals        holders, mounts, swap, loops, root file system
//!                    v
//!                RawDisk (O_EXCL, O_DIRECT) ──┬─> read_workload   timed reads
//!                    │ destroy(same name)     ├─> RawStore        a store of a workload
//!                    v                        ├─> capacity, speed what the label says
//!                writable                     └─> Scratch         file systems, formatted and mounted
//! ```
//!
//! A disk is opened for reading only. Writing needs [`RawDisk::destroy`] with the same name again; this repeats all
//! checks and compares the identity with the one shown before. [`System`] has the paths of `/sys` and `/proc`, so that
//! tests can describe disks that no computer should have.

mod capacity;
mod error;
mod file_system;
mod free_space;
mod identity;
mod left;
mod marker;
mod medium;
mod mounts;
mod pattern;
mod place;
mod program;
mod raw;
mod read;
mod scratch;
mod speed;
mod store;
mod system;

pub use capacity::{
    Capacity, CapacityPlan, FAILED_IN_A_ROW_MAX, Finding, SPACING_BYTES, Stopped, Verdict,
    check_capacity, pass_bytes, verdict,
};
pub use error::{DiskError, Failed, Resized};
pub use file_system::FileSystem;
pub use free_space::{FREE_BYTES_MIN, FreeSpace, NotRemoved, check_own, remove_own_folder};
pub use identity::{Fact, Identity};
pub use left::{FolderLeft, folders_left};
pub use marker::Marker;
pub use medium::{Aligned, Medium};
pub use place::{Place, PlaceKind};
pub use program::without_setpriv;
pub use raw::RawDisk;
pub use read::read_workload;
pub use scratch::{Formatted, SCRATCH_BYTES_MIN, Scratch, ScratchError};
pub use speed::{CLASSES, Class, Speed, measure_speed};
pub use store::{FailedBlock, RawStore, RawStoreError};
pub use system::System;
