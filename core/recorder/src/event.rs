//! Reports of a running recorder.

use crate::fault::CardFault;
use crate::gap::Gap;
use crate::volume::{FileId, FileRecord};
use core::fmt;

/// An event during a recording. Events need no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// An interrupted recording was trimmed to its actual length.
    Recovered {
        /// Its name and contents.
        record: FileRecord,
    },
    /// The recorder writes to a new file. Its number is reused if nothing in it becomes durable.
    Opened {
        /// Number of the track.
        track: u8,
        /// Its name.
        id: FileId,
        /// Maximum length in bytes.
        bytes_max: u64,
    },
    /// A file was trimmed to its actual length.
    Closed {
        /// Number of the track.
        track: u8,
        /// Its name and contents.
        record: FileRecord,
    },
    /// A complete file could not get its name and length because the card has no room for the directory
    /// entry. The file keeps its preallocated size, and the next mount tries again.
    NotClosed {
        /// Number of the track.
        track: u8,
        /// The name that it should have received.
        id: FileId,
    },
    /// Samples are missing. A later gap may contain an earlier one, if the card failed before the earlier one
    /// was durable.
    Lost {
        /// Number of the stream.
        stream: u8,
        /// The missing samples, and the cause.
        gap: Gap,
    },
    /// All samples pushed before `pushed_before_us` are durable.
    Checkpoint {
        /// Number of the stream.
        stream: u8,
        /// Samples with a lower index are durable, or are in a durable gap.
        samples: u64,
        /// Time in us.
        pushed_before_us: u64,
        /// True if the durability window was exceeded.
        is_late: bool,
    },
    /// The card does not answer, or reports a failure. The recorder retries until it works or the recording
    /// ends.
    CardLost,
    /// The card works again; recording continues in new files.
    CardBack,
    /// No free run of blocks is as long as requested: this file will be shorter.
    Short {
        /// Number of the track.
        track: u8,
        /// Maximum length in bytes.
        bytes_max: u64,
    },
    /// The card has no room for another file. Reported once; until there is room, samples that the ring
    /// cannot hold form one gap.
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

/// A sentence for a serial port or a log.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Event::Recovered { record } => {
                write!(f, "recovered {}: {} samples", record.id, record.samples)
            }
            Event::Opened { id, .. } => write!(f, "recording to {id}"),
            Event::Closed { record, .. } => {
                write!(f, "closed {}: {} samples", record.id, record.samples)
            }
            Event::NotClosed { id, .. } => {
                write!(f, "{id} keeps its full length: no room for its entry")
            }
            Event::Lost { stream, gap } => {
                let Gap {
                    first,
                    count,
                    cause,
                    ..
                } = gap;
                write!(
                    f,
                    "stream {stream}: lost {count} samples from {first} on: {cause}"
                )
            }
            Event::Checkpoint {
                samples,
                is_late: true,
                ..
            } => {
                write!(f, "durability window exceeded before sample {samples}")
            }
            Event::Checkpoint { samples, .. } => write!(f, "samples before {samples} are durable"),
            Event::CardLost => CardFault::NoResponse.fmt(f),
            Event::CardBack => f.write_str("the card is back"),
            Event::Short { bytes_max, .. } => {
                write!(
                    f,
                    "files have at most {bytes_max} B: no longer run of blocks is free"
                )
            }
            Event::Full { .. } => CardFault::Full.fmt(f),
            Event::Removed { id } => write!(f, "removed {id} to make room"),
        }
    }
}

/// Passes an event to `log` or `defmt`: ordinary checkpoints at level trace, losses and failures as warnings. A
/// [`Recorder`](crate::Recorder) takes it as `events`.
#[cfg(any(feature = "log", feature = "defmt"))]
pub fn log_event(event: Event) {
    macro_rules! at {
        ($level:ident) => {{
            #[cfg(feature = "log")]
            log::$level!("{event}");
            #[cfg(feature = "defmt")]
            defmt::$level!("{}", defmt::Display2Format(&event));
        }};
    }
    match event {
        Event::Checkpoint { is_late: false, .. } => at!(trace),
        Event::Recovered { .. }
        | Event::Opened { .. }
        | Event::Closed { .. }
        | Event::CardBack
        | Event::Removed { .. } => at!(info),
        Event::NotClosed { .. }
        | Event::Lost { .. }
        | Event::Checkpoint { .. }
        | Event::CardLost
        | Event::Short { .. }
        | Event::Full { .. } => at!(warn),
    }
}
