//! What a workload needs of the world.

use crate::Operation;
use core::fmt::Debug;
use core::ops::ControlFlow;

/// How [`Store::flush`] brings data to the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// Begin, and return before it is done.
    Start,
    /// Return when everything written so far is on the medium.
    Wait,
}

/// Files on a medium.
///
/// Paths have `/` between names and none in front.
pub trait Store {
    /// An open file.
    type File;
    /// Why an operation failed.
    type Error: Debug;

    /// Whether names may be longer than eight and three characters.
    fn has_long_names(&self) -> bool;

    /// Makes a folder. `Ok(false)` if it was there already.
    fn mkdir(&mut self, path: &str) -> Result<bool, Self::Error>;

    /// Makes a new file and opens it for writing. Fails if it is there already.
    fn create(&mut self, path: &str) -> Result<Self::File, Self::Error>;

    /// Opens a file for writing at its end; makes it if it is not there.
    fn append(&mut self, path: &str) -> Result<Self::File, Self::Error>;

    /// Opens a file that is there, for reading, and for writing in place if `writable`.
    fn open(&mut self, path: &str, writable: bool) -> Result<Self::File, Self::Error>;

    /// Writes all of `data` at `offset_bytes`, which is within the file or at its end.
    fn write(
        &mut self,
        file: &mut Self::File,
        offset_bytes: u64,
        data: &[u8],
    ) -> Result<(), Self::Error>;

    /// Reads at `offset_bytes` until `buffer` is full or the file ends; returns the bytes read.
    fn read(
        &mut self,
        file: &mut Self::File,
        offset_bytes: u64,
        buffer: &mut [u8],
    ) -> Result<usize, Self::Error>;

    /// Brings what was written to the medium.
    fn flush(&mut self, file: &mut Self::File, how: Flush) -> Result<(), Self::Error>;

    /// Closes a file.
    fn close(&mut self, file: Self::File) -> Result<(), Self::Error>;

    /// Removes a file, or a folder that is empty.
    fn remove(&mut self, path: &str) -> Result<(), Self::Error>;
}

/// Where time comes from.
pub trait Clock {
    /// Time since some fixed moment, in ns; never goes back.
    fn now_ns(&mut self) -> u64;

    /// Lets this much time pass, in ns.
    fn pause_ns(&mut self, ns: u64);
}

/// What a run is at between operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Writing files that are not timed.
    Preparing,
    /// Timed calls that are only part of an operation, or the pause after one.
    Measuring,
    /// Reading back what was written.
    ReadingBack,
}

/// Who is told of every timed operation.
pub trait Observer {
    /// Takes in an operation. `Break` stops the run; what was made is still removed.
    fn observe(&mut self, operation: &Operation) -> ControlFlow<()>;

    /// Called every few calls that are not operations of their own, and in pauses. `now_ns` is the
    /// clock of the run. `Break` stops the run.
    fn wait(&mut self, doing: Doing, now_ns: u64) -> ControlFlow<()>;
}
