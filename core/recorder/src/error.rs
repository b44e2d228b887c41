//! Reasons why a recording did not start.

use crate::limits::{FILE_BLOCKS_MIN, LINE_BYTES_MAX, RING_BYTES_MIN, WINDOW_US_MIN};
use cardiograph_card::BLOCK_BYTES;
use core::fmt;

/// Reason why a recording did not start.
#[derive(Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum StartError<CardError, VolumeError> {
    /// The card failed.
    Card(CardError),
    /// The card's file system cannot be used.
    Volume(VolumeError),
    /// A ring is smaller than two blocks.
    RingTooSmall,
    /// There are no streams, or more than [`STREAMS_MAX`](crate::STREAMS_MAX).
    Streams,
    /// Two tracks have the same file prefix.
    SamePrefix,
    /// Files would be shorter than 64 KiB.
    FileTooSmall,
    /// A header or a line may exceed [`LINE_BYTES_MAX`](crate::LINE_BYTES_MAX).
    LineTooLong,
    /// A durability window is shorter than [`WINDOW_US_MIN`](crate::WINDOW_US_MIN).
    WindowTooShort,
}

impl<C: fmt::Display, V: fmt::Display> fmt::Display for StartError<C, V> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            StartError::Card(error) => error.fmt(f),
            StartError::Volume(error) => error.fmt(f),
            StartError::RingTooSmall => write!(
                f,
                "ring buffer too small; it needs at least {RING_BYTES_MIN} bytes (two blocks)"
            ),
            StartError::Streams => write!(
                f,
                "a recorder supports 1 to {} streams; change the number of streams",
                crate::STREAMS_MAX
            ),
            StartError::SamePrefix => {
                f.write_str("two streams use the same file prefix; give each stream its own prefix")
            }
            StartError::FileTooSmall => write!(
                f,
                "maximum file length too small; allow at least {} bytes per file",
                FILE_BLOCKS_MIN as usize * BLOCK_BYTES
            ),
            StartError::LineTooLong => write!(
                f,
                "line or header too long; shorten it to {LINE_BYTES_MAX} bytes, newline included"
            ),
            StartError::WindowTooShort => write!(
                f,
                "durability window too short; use at least {WINDOW_US_MIN} us, or the newest sample as the window"
            ),
        }
    }
}

impl<C: fmt::Debug + fmt::Display, V: fmt::Debug + fmt::Display> core::error::Error
    for StartError<C, V>
{
}
