//! Recordings in progress, as the recorder publishes them to readers.

use crate::volume::{Extent, FileId, RESERVED_MAX, ShortText};

/// A recording in progress, or complete but not closed yet. Totals count durable samples and gaps
/// only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// Its number and final name.
    pub id: FileId,
    /// Name of the session; empty if there is none.
    pub session: ShortText,
    /// Its preallocated blocks.
    pub extent: Extent,
    /// Number that identifies the recording: of all recordings on the card, only its blocks have it.
    pub epoch: u32,
    /// True if the directory contains its final name.
    pub is_named: bool,
    /// Durable length, without the mark at the end that recovery would remove.
    pub bytes: u32,
    /// Time at which the file began, in us of the recorder's clock.
    pub first_us: u64,
    /// Time of the last checkpoint, in us of the recorder's clock.
    pub last_us: u64,
    /// Samples of all streams.
    pub samples: u64,
    /// Gaps of all streams.
    pub gaps: u32,
    /// Samples lost in those gaps.
    pub lost: u64,
}

/// A recording in progress, as an open file remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growing {
    /// Its number and final name.
    pub id: FileId,
    /// Its preallocated blocks.
    pub(super) extent: Extent,
    /// Number that identifies the recording.
    pub epoch: u32,
    /// Durable length at the last lookup, in bytes.
    pub(super) bytes: u32,
}

impl From<Unfinished> for Growing {
    fn from(file: Unfinished) -> Growing {
        Growing {
            id: file.id,
            extent: file.extent,
            epoch: file.epoch,
            bytes: file.bytes,
        }
    }
}

impl Unfinished {
    /// Returns true if this is the final path of the recording, in short names.
    pub(super) fn is_at(&self, path: &str) -> bool {
        let path = path.strip_prefix('/').unwrap_or(path);
        let Some((folder, name)) = path.split_once('/') else {
            return false;
        };
        let mut short = [0; 12];
        let bytes = self.write_name(&mut short);
        let folder_name = self.id.folder_name();
        folder
            .as_bytes()
            .eq_ignore_ascii_case(folder_name.trim_ascii_end())
            && name.as_bytes().eq_ignore_ascii_case(&short[..bytes])
    }

    /// Writes the short name with its dot; returns its length.
    pub(super) fn write_name(&self, out: &mut [u8]) -> usize {
        let name = self.id.short_name();
        let (base, extension) = name.split_at(8);
        let mut bytes = 0;
        for byte in base
            .trim_ascii_end()
            .iter()
            .chain(b".")
            .chain(extension.trim_ascii_end())
        {
            if let Some(place) = out.get_mut(bytes) {
                *place = *byte;
                bytes += 1;
            }
        }
        bytes
    }
}

/// The recordings in progress, by their slots.
pub(crate) type Table = [Option<Unfinished>; RESERVED_MAX];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_in_progress_has_its_final_path() {
        let file = Unfinished {
            id: FileId {
                prefix: *b"LOG",
                extension: *b"CSV",
                number: 12_345,
            },
            session: ShortText::EMPTY,
            extent: Extent {
                start: 1,
                blocks: 1,
            },
            epoch: 1,
            is_named: true,
            bytes: 1,
            first_us: 0,
            last_us: 0,
            samples: 0,
            gaps: 0,
            lost: 0,
        };
        for path in ["/LOG00012/LOG12345.CSV", "log00012/log12345.csv"] {
            assert!(file.is_at(path), "{path}");
        }
        for path in [
            "",
            "/",
            "/LOG12345.CSV",
            "/LOG00012/LOG12346.CSV",
            "/LOG00013/LOG12345.CSV",
            "/LOG00012/LOG12345.BIN",
            "/LOG00012/LOG12345",
            "/LOG00012/LOG12345.CSV/",
        ] {
            assert!(!file.is_at(path), "{path}");
        }
    }
}
