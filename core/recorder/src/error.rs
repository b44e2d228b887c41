//! Reasons why a recording did not start.

use crate::limits::{FILE_BLOCKS_MIN, LINE_BYTES_MAX, RING_BYTES_MIN};
use cardiograph_card::BLOCK_BYTES;
use core::fmt;

/// Reason why a recording did not start.
#[derive(Debug)]
pub enum StartError<CardError, VolumeError> {
    /// The card failed.
    Card(CardError),
    /// Its file system cannot be used.
    Volume(VolumeError),
    /// A ring has less than two blocks.
    RingTooSmall,
    /// There are no streams, or more than [`STREAMS_MAX`](crate::STREAMS_MAX).
    Streams,
    /// Two tracks would give their files the same names.
    SamePrefix,
    /// Files would be shorter than 64 KiB.
    FileTooSmall,
    /// A header or a line may be longer than [`LINE_BYTES_MAX`](crate::LINE_BYTES_MAX).
    LineTooLong,
}

impl<C: fmt::Display, V: fmt::Display> fmt::Display for StartError<C, V> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            StartError::Card(error) => error.fmt(f),
            StartError::Volume(error) => error.fmt(f),
            StartError::RingTooSmall => write!(
                f,
                "a ring is too small; give it at least {RING_BYTES_MIN} bytes (two blocks)"
            ),
            StartError::Streams => write!(
                f,
                "a recorder takes 1 to {} streams; change their number",
                crate::STREAMS_MAX
            ),
            StartError::SamePrefix => {
                f.write_str("two streams have the same file prefix; give each its own")
            }
            StartError::FileTooSmall => write!(
                f,
                "files are too short; allow at least {} bytes each",
                FILE_BLOCKS_MIN as usize * BLOCK_BYTES
            ),
            StartError::LineTooLong => write!(
                f,
                "a line or a header is too long; shorten it to {LINE_BYTES_MAX} bytes, line end included"
            ),
        }
    }
}

impl<C: fmt::Debug + fmt::Display, V: fmt::Debug + fmt::Display> core::error::Error
    for StartError<C, V>
{
}
