//! What the recorder says while it works.

use crate::gap::Gap;
use crate::volume::Name;

/// Something that happened. None of it needs an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Files that were unfinished have their true length now: a recording that was cut off.
    Recovered {
        /// Its name.
        name: Name,
        /// Its length in bytes; 0 if there was nothing in it and it was removed.
        bytes: u64,
    },
    /// A file is being written.
    Opened {
        /// Number of the stream.
        stream: u8,
        /// Its name.
        name: Name,
        /// Its length at most, in bytes.
        bytes_max: u64,
    },
    /// A file has its true length.
    Closed {
        /// Number of the stream.
        stream: u8,
        /// Its name.
        name: Name,
        /// Its length in bytes.
        bytes: u64,
    },
    /// Samples are missing. A later gap may hold an earlier one, if what was written of it went with the
    /// card.
    Lost {
        /// Number of the stream.
        stream: u8,
        /// Which, and why.
        gap: Gap,
    },
    /// All samples pushed before a certain time are durable.
    Checkpoint {
        /// Number of the stream.
        stream: u8,
        /// Samples with a lower index are durable, or in a gap that is.
        samples: u64,
        /// That time.
        pushed_before_us: u64,
        /// Whether it took longer than the durability window.
        is_late: bool,
    },
    /// The card does not answer, or fails again and again. It is tried until it works or the recording
    /// ends.
    CardLost,
    /// It works again; new files follow.
    CardBack,
    /// No free run of blocks is as long as wanted: this file will be shorter.
    Short {
        /// Number of the stream.
        stream: u8,
        /// Its length at most, in bytes.
        bytes_max: u64,
    },
    /// There is no room for another file.
    Full {
        /// Number of the stream.
        stream: u8,
    },
    /// The oldest recording was removed to make room.
    Removed {
        /// Its name.
        name: Name,
    },
}
