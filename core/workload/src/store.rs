//! Interfaces that a workload needs: files, time and an observer.

use crate::Operation;
use core::fmt::Debug;
use core::ops::ControlFlow;

/// Mode of [`Store::flush`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// Starts writing data to the storage device and returns without waiting.
    Start,
    /// Returns when the storage device has all data written so far.
    Wait,
}

/// Files on a storage device.
///
/// Paths are relative, with `/` between names.
pub trait Store {
    /// Handle of an open file.
    type File;
    /// Error of an operation.
    type Error: Debug;

    /// Returns true if names may be longer than 8.3.
    fn has_long_names(&self) -> bool;

    /// Creates a folder. Returns `Ok(false)` if it exists already.
    fn mkdir(&mut self, path: &str) -> Result<bool, Self::Error>;

    /// Creates a file and opens it for writing. Fails if it exists already.
    fn create(&mut self, path: &str) -> Result<Self::File, Self::Error>;

    /// Opens a file for writing at its end; creates it if it does not exist.
    fn append(&mut self, path: &str) -> Result<Self::File, Self::Error>;

    /// Opens an existing file for reading, and for writing in place if `writable`.
    fn open(&mut self, path: &str, writable: bool) -> Result<Self::File, Self::Error>;

    /// Writes all of `data` at `offset_bytes`, which must be within the file or at its end.
    fn write(
        &mut self,
        file: &mut Self::File,
        offset_bytes: u64,
        data: &[u8],
    ) -> Result<(), Self::Error>;

    /// Reads from `offset_bytes` until `buffer` is full or the file ends; returns the number of bytes read.
    fn read(
        &mut self,
        file: &mut Self::File,
        offset_bytes: u64,
        buffer: &mut [u8],
    ) -> Result<usize, Self::Error>;

    /// Returns the length up to which calls that are not timed may be longer than the payload, in bytes; 0 if every call
    /// has the length of the payload. A simulated card, for example, should see the same calls whatever the buffer is.
    fn bulk_bytes(&self) -> usize {
        0
    }

    /// Writes buffered data of a file to the storage device.
    fn flush(&mut self, file: &mut Self::File, how: Flush) -> Result<(), Self::Error>;

    /// Closes a file.
    fn close(&mut self, file: Self::File) -> Result<(), Self::Error>;

    /// Removes a file or an empty folder.
    fn remove(&mut self, path: &str) -> Result<(), Self::Error>;
}

/// A source of time.
pub trait Clock {
    /// Returns the time since a fixed moment, in ns. It never decreases.
    fn now_ns(&mut self) -> u64;

    /// Waits for `ns` nanoseconds.
    fn pause_ns(&mut self, ns: u64);
}

/// Activity of a run between two timed operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Writing files without timing them.
    Preparing,
    /// Calls within a timed operation, or the pause after an operation.
    Measuring,
    /// Reading files back to verify them.
    ReadingBack,
}

/// Receives every timed operation.
pub trait Observer {
    /// Receives an operation. `Break` stops the run, which then removes its files.
    fn observe(&mut self, operation: &Operation) -> ControlFlow<()>;

    /// Returns the time at which the next operation is due on the run's clock, or `None` to issue it at once. `now_ns`
    /// is the present time. Operations that time whole files are never delayed.
    #[inline]
    fn due_ns(&mut self, now_ns: u64) -> Option<u64> {
        let _ = now_ns;
        None
    }

    /// Returns true if [`Observer::due_ns`] may return a time.
    #[inline]
    fn is_paced(&self) -> bool {
        false
    }

    /// Is called during pauses, and after every few operations if operations are not timed individually. `now_ns` is the
    /// time of the run's clock. `Break` stops the run.
    fn poll(&mut self, activity: Activity, now_ns: u64) -> ControlFlow<()>;
}
