//! Files of one track: the one being written, the prepared ones, and complete ones that are not closed yet.

use crate::format::FilePosition;
use crate::limits::AHEAD_MAX;
use crate::plan;
use crate::volume::{FileId, FileRecord, RESERVED_MAX, Reserved, ShortText};
use heapless::Vec;

/// Files of one track.
pub(crate) struct Track {
    pub(crate) file: Option<OpenFile>,
    /// Slots of prepared files, in the order in which they will be written.
    pub(crate) ahead: Vec<u8, AHEAD_MAX, u8>,
    /// Number of the next file, used once the file becomes durable.
    pub(crate) next_number: u32,
    /// Stream that wrote the first block of the file, whose session the file belongs to.
    pub(crate) first_stream: u8,
    /// Time at which the pending checkpoint was requested.
    pub(crate) requested_us: u64,
    /// Time at which the assumed cost of the pending checkpoint was last reduced, in us after its request.
    pub(crate) faded_after_us: u32,
}

/// The slots of unfinished files, shared by all tracks.
pub(crate) struct Files {
    slots: [Slot; RESERVED_MAX],
}

/// A slot in the volume's table of unfinished files.
#[derive(Clone, Copy)]
enum Slot {
    Free,
    /// The file is prepared or being written.
    Prepared(Space),
    /// The file is complete but still has its preallocated size.
    Complete {
        track: u8,
        session: ShortText,
        totals: Totals,
    },
}

/// Blocks of a prepared file.
#[derive(Clone, Copy)]
pub(crate) struct Space {
    pub(crate) start: u32,
    pub(crate) blocks: u32,
    pub(crate) epoch: u32,
}

/// Number and totals of a complete file. It is smaller than 4 GiB and has at least one byte per sample.
#[derive(Clone, Copy)]
pub(crate) struct Totals {
    pub(crate) number: u32,
    pub(crate) bytes: u32,
    pub(crate) first_us: u64,
    pub(crate) last_us: u64,
    pub(crate) samples: u32,
    pub(crate) gaps: u32,
    pub(crate) lost: u64,
}

impl Files {
    pub(crate) const fn new() -> Files {
        Files {
            slots: [Slot::Free; RESERVED_MAX],
        }
    }

    /// Returns the blocks of the prepared file in a slot.
    pub(crate) fn space(&self, slot: u8) -> Option<&Space> {
        match self.slots.get(usize::from(slot))? {
            Slot::Prepared(space) => Some(space),
            Slot::Free | Slot::Complete { .. } => None,
        }
    }

    /// Stores a prepared file.
    pub(crate) fn put(&mut self, file: &Reserved) {
        let space = Space {
            start: file.extent.start,
            blocks: file.extent.blocks,
            epoch: file.epoch,
        };
        self.set(file.slot, Slot::Prepared(space));
    }

    /// Marks the file in a slot as complete.
    pub(crate) fn put_aside(&mut self, slot: u8, track: u8, session: ShortText, totals: Totals) {
        let file = Slot::Complete {
            track,
            session,
            totals,
        };
        self.set(slot, file);
    }

    pub(crate) fn free(&mut self, slot: u8) {
        self.set(slot, Slot::Free);
    }

    fn set(&mut self, slot: u8, content: Slot) {
        if let Some(place) = self.slots.get_mut(usize::from(slot)) {
            *place = content;
        }
    }

    /// Returns the slot and the record of the oldest complete file of a track. `name` returns the track's
    /// file name for a number.
    pub(crate) fn closing(
        &self,
        track: u8,
        name: impl Fn(u32) -> FileId,
    ) -> Option<(u8, FileRecord)> {
        let files = (0..)
            .zip(&self.slots)
            .filter_map(|(slot, file)| match file {
                Slot::Complete {
                    track: of,
                    session,
                    totals,
                } if *of == track => Some((slot, session, totals)),
                _ => None,
            });
        let (slot, session, totals) = files.min_by_key(|(_, _, totals)| totals.number)?;
        let record = FileRecord {
            id: name(totals.number),
            session: *session,
            bytes: totals.bytes.into(),
            first_us: totals.first_us,
            last_us: totals.last_us,
            samples: totals.samples.into(),
            gaps: totals.gaps,
            lost: totals.lost,
            is_recovered: false,
        };
        Some((slot, record))
    }

    /// Clears all slots, because the card is gone.
    pub(crate) fn clear(&mut self) {
        *self = Files::new();
    }
}

/// The file being written.
#[derive(Clone, Copy)]
pub(crate) struct OpenFile {
    pub(crate) slot: u8,
    pub(crate) number: u32,
    pub(crate) opened_us: u64,
    pub(crate) name: NameState,
}

/// State of a file's name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameState {
    /// No mark is durable yet: the number is still free.
    Unused,
    /// A mark is durable: the file needs its name.
    Wanted,
    /// The file has its name, or a job is giving it one.
    Given,
}

impl Track {
    /// Creates a track without files, for the files of `stream`.
    pub(crate) fn new(stream: u8) -> Track {
        Track {
            file: None,
            ahead: Vec::new(),
            next_number: 0,
            first_stream: stream,
            requested_us: 0,
            faded_after_us: 0,
        }
    }

    /// Returns the position of the next block in the file.
    pub(crate) fn position(
        &self,
        files: &Files,
        file: plan::File,
        streams: u8,
        step: u32,
        now_us: u64,
    ) -> Option<FilePosition> {
        let open = self.file.as_ref()?;
        let epoch = files.space(open.slot)?.epoch;
        let mut position =
            FilePosition::new(epoch, open.number, file.blocks, streams, open.opened_us);
        position.index = file.index;
        position.durable = file.durable;
        position.step = step;
        position.set_age(now_us);
        Some(position)
    }

    /// Begins the next prepared file, which gets the next number.
    pub(crate) fn begin(&mut self, now_us: u64) -> Option<&OpenFile> {
        if self.ahead.is_empty() {
            return None;
        }
        self.file = Some(OpenFile {
            slot: self.ahead.remove(0),
            number: self.next_number,
            opened_us: now_us,
            name: NameState::Unused,
        });
        self.file.as_ref()
    }

    /// Notes that the file has a durable mark, which uses up its number.
    pub(crate) fn set_durable(&mut self) {
        if let Some(file) = &mut self.file
            && file.name == NameState::Unused
        {
            file.name = NameState::Wanted;
            self.next_number = self.next_number.saturating_add(1);
        }
    }

    /// Forgets all files, because the card is gone.
    pub(crate) fn forget_files(&mut self) {
        self.file = None;
        self.ahead.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::Extent;

    fn id(number: u32) -> FileId {
        FileId {
            prefix: *b"LOG",
            extension: *b"CSV",
            number,
        }
    }

    #[test]
    fn the_oldest_complete_file_of_a_track_is_closed_first() {
        let mut files = Files::new();
        assert!(files.closing(0, id).is_none());
        let file = Reserved {
            slot: 2,
            prefix: *b"LOG",
            extension: *b"CSV",
            id: None,
            is_version_0_1: false,
            extent: Extent {
                start: 7,
                blocks: 9,
            },
            epoch: 1,
            note: 0,
        };
        files.put(&file);
        assert_eq!(files.space(2).map(|space| space.start), Some(7));
        for (slot, track, number) in [(3, 1, 4), (0, 0, 6), (5, 0, 5), (1, 1, 9)] {
            let totals = Totals {
                number,
                bytes: 100 * number,
                first_us: 1,
                last_us: 2,
                samples: 3,
                gaps: 4,
                lost: 5,
            };
            files.put_aside(slot, track, ShortText::EMPTY, totals);
        }
        for (track, slots) in [(0, [(5, 5), (0, 6)]), (1, [(3, 4), (1, 9)])] {
            for (slot, number) in slots {
                let (found, record) = files.closing(track, id).unwrap();
                assert_eq!((found, record.id), (slot, id(number)));
                assert_eq!(record.bytes, u64::from(100 * number));
                files.free(slot);
            }
            assert!(files.closing(track, id).is_none());
        }
        files.free(2);
        assert!(files.space(2).is_none());
    }
}
