//! Reports of a running recorder.

use crate::gap::Gap;
use crate::volume::{FileId, FileRecord};

/// Something that happened. None of it needs an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An interrupted recording has its actual length now.
    Recovered {
        /// Its name and contents.
        record: FileRecord,
    },
    /// A file is being written. Its number is used again if nothing of it becomes durable.
    Opened {
        /// Number of the track.
        track: u8,
        /// Its name.
        id: FileId,
        /// Its length at most, in bytes.
        bytes_max: u64,
    },
    /// A file has its actual length.
    Closed {
        /// Number of the track.
        track: u8,
        /// Its name and contents.
        record: FileRecord,
    },
    /// A complete file could not get its name and length, because the card has no room for them. It keeps its
    /// full length, and the next mount tries again.
    NotClosed {
        /// Number of the track.
        track: u8,
        /// The name that it should have.
        id: FileId,
    },
    /// Samples are missing. A later gap may contain an earlier one, if the card failed before that one was
    /// durable.
    Lost {
        /// Number of the stream.
        stream: u8,
        /// The samples, and the cause.
        gap: Gap,
    },
    /// All samples pushed before a certain time are durable.
    Checkpoint {
        /// Number of the stream.
        stream: u8,
        /// Samples with a lower index are durable, or in a gap that is.
        samples: u64,
        /// That time, in us.
        pushed_before_us: u64,
        /// The durability window was exceeded.
        is_late: bool,
    },
    /// The card does not answer, or fails. The recorder tries it until it works or the recording ends.
    CardLost,
    /// The card works again; new files follow.
    CardBack,
    /// No free run of blocks is as long as wanted: this file will be shorter.
    Short {
        /// Number of the track.
        track: u8,
        /// Its length at most, in bytes.
        bytes_max: u64,
    },
    /// There is no room for another file. Reported once; samples that find no room in the ring form one gap
    /// until there is.
    Full {
        /// Number of the track.
        track: u8,
    },
    /// The oldest recording was removed to make room.
    Removed {
        /// Its name.
        id: FileId,
    },
}
