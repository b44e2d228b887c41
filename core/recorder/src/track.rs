//! Files of one track: the one being written, prepared ones, and complete ones that are not closed yet.

use crate::format::FilePosition;
use crate::limits::AHEAD_MAX;
use crate::plan;
use crate::volume::{FileId, FileRecord, RESERVED_MAX, Request, Reserved, ShortText};
use heapless::{Deque, Vec};

/// Files of one track.
pub(crate) struct Track {
    /// What is asked of the volume for its files.
    pub(crate) request: Request,
    pub(crate) file: Option<OpenFile>,
    /// Slots of prepared files, in the order in which they will be written.
    pub(crate) ahead: Deque<u8, AHEAD_MAX>,
    /// Number of the next file that becomes durable.
    pub(crate) next_number: u32,
    /// Session of the file, and of those after it.
    pub(crate) session: ShortText,
    /// Moment that the pending checkpoint covers.
    pub(crate) target_us: u64,
    /// When the pending checkpoint was last given a lower cost.
    pub(crate) put_off_us: u64,
}

/// Files that all tracks share the slots for.
pub(crate) struct Files {
    /// Prepared files, and those being written.
    reserved: [Option<Reserved>; RESERVED_MAX],
    /// Complete files that still have their full length, in order.
    closing: Vec<Closing, RESERVED_MAX>,
}

impl Files {
    pub(crate) const fn new() -> Files {
        Files {
            reserved: [None; RESERVED_MAX],
            closing: Vec::new(),
        }
    }

    /// Prepared file in a slot.
    pub(crate) fn reserved(&self, slot: u8) -> Option<&Reserved> {
        self.reserved.get(usize::from(slot))?.as_ref()
    }

    pub(crate) fn put(&mut self, file: Reserved) {
        if let Some(place) = self.reserved.get_mut(usize::from(file.slot)) {
            *place = Some(file);
        }
    }

    /// Puts a complete file in the queue of those to be closed. Slots bound their number.
    pub(crate) fn put_aside(&mut self, closing: Closing) {
        let is_noted = self.closing.push(closing).is_ok();
        debug_assert!(is_noted);
    }

    /// The first complete file of a track.
    pub(crate) fn closing(&self, track: u8) -> Option<&Closing> {
        self.closing.iter().find(|closing| closing.track == track)
    }

    /// Takes the first complete file of a track.
    pub(crate) fn take_closing(&mut self, track: u8) -> Option<Closing> {
        let mut files = self.closing.iter();
        let at = files.position(|closing| closing.track == track)?;
        Some(self.closing.remove(at))
    }

    /// Forgets all files: the card is gone.
    pub(crate) fn clear(&mut self) {
        *self = Files::new();
    }
}

/// The file being written.
#[derive(Clone, Copy)]
pub(crate) struct OpenFile {
    pub(crate) reserved: Reserved,
    pub(crate) number: u32,
    pub(crate) opened_us: u64,
    /// When its first mark became durable.
    pub(crate) durable_since_us: Option<u64>,
    /// It appears under its number, or a job is giving it its name.
    pub(crate) is_named: bool,
}

/// A complete file that still has its full length.
#[derive(Clone, Copy)]
pub(crate) struct Closing {
    pub(crate) track: u8,
    pub(crate) slot: u8,
    pub(crate) record: FileRecord,
}

impl Track {
    pub(crate) fn new(request: Request) -> Track {
        Track {
            request,
            file: None,
            ahead: Deque::new(),
            next_number: 0,
            session: ShortText::EMPTY,
            target_us: 0,
            put_off_us: 0,
        }
    }

    /// Name of the file with this number.
    pub(crate) fn id(&self, number: u32) -> FileId {
        FileId {
            prefix: self.request.prefix,
            extension: self.request.extension,
            number,
        }
    }

    /// Place of the next block in the file.
    pub(crate) fn position(
        &self,
        file: plan::File,
        streams: u8,
        step: u32,
        now_us: u64,
    ) -> Option<FilePosition> {
        let open = self.file.as_ref()?;
        let mut position =
            FilePosition::new(open.reserved.epoch, open.number, file.blocks, streams);
        position.index = file.index;
        position.durable = file.durable;
        position.step = step;
        position.set_age(open.opened_us, now_us);
        Some(position)
    }

    /// Takes the next prepared file; it gets the next number.
    pub(crate) fn begin(&mut self, files: &Files, now_us: u64) -> Option<&OpenFile> {
        let slot = self.ahead.pop_front()?;
        self.file = Some(OpenFile {
            reserved: *files.reserved(slot)?,
            number: self.next_number,
            opened_us: now_us,
            durable_since_us: None,
            is_named: false,
        });
        self.file.as_ref()
    }

    /// Notes that the file has a durable mark: its number is used.
    pub(crate) fn set_durable(&mut self, now_us: u64) {
        if let Some(file) = &mut self.file
            && file.durable_since_us.is_none()
        {
            file.durable_since_us = Some(now_us);
            self.next_number = self.next_number.saturating_add(1);
        }
    }

    /// Forgets all files: the card is gone.
    pub(crate) fn forget_files(&mut self) {
        self.file = None;
        self.ahead.clear();
    }
}
