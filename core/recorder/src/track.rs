//! Files of one track: the one being written, prepared ones, and complete ones that are not closed yet.

use crate::format::FilePosition;
use crate::limits::AHEAD_MAX;
use crate::plan;
use crate::volume::{FileId, FileRecord, Request, Reserved, ShortText};
use heapless::Deque;

/// Files of one track.
pub(crate) struct Track {
    /// What is asked of the volume for its files.
    pub(crate) request: Request,
    pub(crate) file: Option<OpenFile>,
    /// Prepared files, in the order in which they will be written.
    pub(crate) ahead: Deque<Reserved, AHEAD_MAX>,
    /// Complete files that still have their full length, in order.
    pub(crate) closing: Deque<Closing, AHEAD_MAX>,
    /// Number of the next file that becomes durable.
    pub(crate) next_number: u32,
    /// Session of the file, and of those after it.
    pub(crate) session: ShortText,
    /// Moment that the pending checkpoint covers.
    pub(crate) target_us: u64,
    /// When the pending checkpoint was last given a lower cost.
    pub(crate) put_off_us: u64,
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
    pub(crate) slot: u8,
    pub(crate) record: FileRecord,
}

impl Track {
    pub(crate) fn new(request: Request) -> Track {
        Track {
            request,
            file: None,
            ahead: Deque::new(),
            closing: Deque::new(),
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
    pub(crate) fn begin(&mut self, now_us: u64) -> Option<&OpenFile> {
        let reserved = self.ahead.pop_front()?;
        self.file = Some(OpenFile {
            reserved,
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
        self.closing.clear();
    }
}
