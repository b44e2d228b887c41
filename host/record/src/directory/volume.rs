//! File operations of the recorder: files are prepared at full length, named, and trimmed.

use super::files::remove;
use super::{Access, BLOCKS_MAX, DirectoryError, DirectoryVolume, NO_BLOCK, Startup, start_of};
use cardiograph_card::BLOCK_BYTES;
use cardiograph_recorder::{
    Blocks, ErrorKind, Extent, FileId, FileRecord, NUMBER_LAST, RESERVED_MAX, Removed, Request,
    Reserved, Volume,
};
use std::sync::atomic::Ordering;

impl DirectoryVolume {
    fn is_dry_run(&self) -> bool {
        self.folder.borrow().access == Access::DryRun
    }

    fn use_number(&mut self, id: &FileId) {
        let next = self.next_numbers.entry(id.prefix).or_insert(1);
        *next = id.number.saturating_add(1).max(*next);
        self.reserve_names();
    }

    /// Reserves the names that the recording may use next, so that clients of a server cannot take them.
    fn reserve_names(&self) {
        let folder = self.folder.borrow();
        let next = |prefix: [u8; 3]| match self.next_numbers.get(&prefix) {
            // After the last number, the search for a free one begins again at the first.
            Some(next) if *next > NUMBER_LAST => 0,
            next => next.copied().unwrap_or(1),
        };
        let prefixes = folder.prefixes.iter();
        folder
            .live
            .reserve(prefixes.map(|prefix| (*prefix, next(*prefix))).collect());
    }

    /// Returns the rules for reservations before sampling begins, and `None` afterwards.
    fn startup(&self) -> Option<&Startup> {
        let startup = self.startup.as_ref();
        startup.filter(|startup| !startup.is_sampling.load(Ordering::Relaxed))
    }

    /// Returns the length of a new file in blocks. Before sampling begins, each of several streams gets at
    /// most an equal share of the free space, so that every stream has room for a file.
    fn blocks_of(&self, request: &Request) -> u32 {
        let blocks = request.blocks.min(BLOCKS_MAX);
        let Some(startup) = self.startup().filter(|startup| startup.files > 1) else {
            return blocks;
        };
        match self.folder.borrow().free_blocks() {
            Some(free) => {
                let share = free / u64::from(startup.files);
                let share = u32::try_from(share).unwrap_or(BLOCKS_MAX);
                blocks.min(share.max(request.blocks_min))
            }
            None => blocks,
        }
    }

    /// Removes the oldest recording to make room for the first file of a stream. Returns false if there is
    /// no recording, or if recordings must not be removed.
    fn remove_for_first(&self, request: &Request) -> Result<bool, DirectoryError> {
        let Some(startup) = self.startup().filter(|startup| startup.may_remove) else {
            return Ok(false);
        };
        let folder = self.folder.borrow();
        let mut files = folder.files.iter().flatten();
        if files.any(|file| file.prefix == request.prefix) {
            return Ok(false);
        }
        let Some((id, path)) = folder.oldest()? else {
            return Ok(false);
        };
        remove(&path)?;
        startup.removed.borrow_mut().push(id);
        Ok(true)
    }

    /// Moves a prepared file to its recording's folder, under its final number.
    async fn name_unless_taken<B: Blocks>(
        &mut self,
        card: &mut B,
        slot: usize,
        id: FileId,
        session: &str,
    ) -> Result<(), DirectoryError> {
        if self.is_dry_run() || self.folder.borrow().unfinished(slot)?.id == Some(id) {
            return Ok(());
        }
        self.folder.borrow().make_folder(&id)?;
        self.folder.borrow().check_is_free(&id, session)?;
        step(card).await;
        self.folder.borrow_mut().give_name(slot, id, session)?;
        self.use_number(&id);
        step(card).await;
        let folder = self.folder.borrow();
        folder.sync_folder_of(slot)
    }

    /// Names, trims and finishes a file. Before trimming, checks that its final name is free: recovery needs
    /// the checkpoint marks, which trimming removes.
    async fn close_unless_taken<B: Blocks>(
        &mut self,
        card: &mut B,
        slot: usize,
        record: &FileRecord,
        session: &str,
    ) -> Result<(), DirectoryError> {
        self.name_unless_taken(card, slot, record.id, session)
            .await?;
        self.folder.borrow().check_is_free(&record.id, session)?;
        step(card).await;
        self.folder.borrow_mut().trim(slot, record.bytes)?;
        step(card).await;
        self.folder.borrow_mut().finish(slot)
    }
}

/// Minimum length of a file for which there is room, in blocks.
const FILE_BLOCKS_MIN: u32 = (64 << 10) / BLOCK_BYTES as u32;

/// Yields to samples between two system calls, by a read of a block that does not exist.
async fn step<B: Blocks>(card: &mut B) {
    // If the directory has failed, the following system call reports it.
    let _ = card.read(NO_BLOCK, &mut [[0; BLOCK_BYTES]]).await;
}

impl<B: Blocks> Volume<B> for DirectoryVolume {
    type Error = DirectoryError;

    fn error_kind(error: &DirectoryError) -> ErrorKind {
        match error {
            error if error.is_full() => ErrorKind::NoRoom,
            DirectoryError::NameTaken(_) => ErrorKind::NameTaken,
            DirectoryError::Io { .. } | DirectoryError::Gone(_) => ErrorKind::Card,
            _ => ErrorKind::Volume,
        }
    }

    async fn mount(&mut self, _: &mut B) -> Result<(), DirectoryError> {
        let scanned = self.folder.borrow_mut().scan();
        self.next_numbers = self.failure.note(scanned)?;
        self.reserve_names();
        Ok(())
    }

    fn reserved(&self, slot: u8) -> Option<Reserved> {
        let folder = self.folder.borrow();
        let unfinished = folder.files.get(usize::from(slot))?.as_ref()?;
        Some(Reserved {
            slot,
            prefix: unfinished.prefix,
            extension: unfinished.extension,
            extent: Extent {
                start: start_of(slot.into()),
                blocks: unfinished.blocks,
            },
            epoch: unfinished.epoch,
            note: unfinished.note,
            id: unfinished.id,
            is_version_0_1: false,
        })
    }

    fn next_number(&self, prefix: [u8; 3], extension: [u8; 3]) -> u32 {
        let number = self.next_numbers.get(&prefix).copied().unwrap_or(1);
        let id = FileId {
            prefix,
            extension,
            number,
        };
        self.folder.borrow().free_number(id)
    }

    async fn reserve(
        &mut self,
        card: &mut B,
        request: Request,
    ) -> Result<Reserved, DirectoryError> {
        let id = FileId {
            prefix: request.prefix,
            extension: request.extension,
            number: 0,
        };
        if !id.is_valid() {
            return Err(DirectoryError::BadName);
        }
        let is_free = |slot: &usize| self.folder.borrow().files[*slot].is_none();
        let slot = (0..RESERVED_MAX).find(is_free);
        let full = || DirectoryError::NotUnfinished(self.folder.borrow().path.clone());
        let slot = slot.ok_or_else(full)?;
        let mut blocks = self.blocks_of(&request);
        // A file system needs no free run, and a few calls remove a recording.
        let blocks_min = request.blocks_min.clamp(1, FILE_BLOCKS_MIN);
        loop {
            step(card).await;
            let made = self.folder.borrow().make(&request, blocks);
            match made {
                Ok(unfinished) => {
                    self.folder.borrow_mut().files[slot] = Some(unfinished);
                    break;
                }
                // Retry with half the length: a shorter file may fit.
                Err(error) if error.is_full() && blocks / 2 >= blocks_min => {
                    blocks /= 2;
                }
                // A full storage device is not a failure.
                Err(error) if error.is_full() => {
                    let removed = self.remove_for_first(&request);
                    if !self.failure.note(removed)? {
                        return Err(error);
                    }
                    blocks = self.blocks_of(&request);
                }
                Err(error) => return self.failure.note(Err(error)),
            }
        }
        Volume::<B>::reserved(self, slot as u8)
            .ok_or_else(|| DirectoryError::NotUnfinished(self.folder.borrow().path.clone()))
    }

    async fn name(
        &mut self,
        card: &mut B,
        slot: u8,
        id: FileId,
        session: &str,
    ) -> Result<(), DirectoryError> {
        let named = self.name_unless_taken(card, slot.into(), id, session).await;
        self.failure.note(named)
    }

    async fn close(
        &mut self,
        card: &mut B,
        slot: u8,
        record: &FileRecord,
    ) -> Result<(), DirectoryError> {
        let slot = usize::from(slot);
        let session = record.session.as_str();
        let closed = match self.is_dry_run() {
            true => self.folder.borrow().check_is_free(&record.id, session),
            false => self.close_unless_taken(card, slot, record, session).await,
        };
        match closed {
            Ok(()) => {
                self.use_number(&record.id);
                Ok(())
            }
            // During recovery a taken name is not a failure: the file gets the next free number.
            Err(DirectoryError::NameTaken(path)) => {
                self.use_number(&record.id);
                let error = Err(DirectoryError::NameTaken(path));
                match record.is_recovered {
                    true => error,
                    false => self.failure.note(error),
                }
            }
            closed => self.failure.note(closed),
        }
    }

    async fn discard(&mut self, _: &mut B, slot: u8) -> Result<(), DirectoryError> {
        self.folder.borrow_mut().note_removal(slot.into())?;
        if self.is_dry_run() {
            return Ok(());
        }
        let id = self.folder.borrow().unfinished(slot.into())?.id;
        // The name is reserved before it is free.
        if let Some(id) = id
            && self.next_numbers.get(&id.prefix) == Some(&(id.number + 1))
        {
            self.next_numbers.insert(id.prefix, id.number);
            self.reserve_names();
        }
        let discarded = self.folder.borrow_mut().discard(slot.into());
        self.failure.note(discarded)
    }

    async fn remove_oldest(&mut self, _: &mut B) -> Result<Option<Removed>, DirectoryError> {
        let oldest = self.folder.borrow().oldest();
        let Some((id, path)) = self.failure.note(oldest)? else {
            return Ok(None);
        };
        let bytes = path.metadata().map_or(0, |metadata| metadata.len());
        let blocks = bytes.div_ceil(BLOCK_BYTES as u64);
        let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
        self.failure.note(remove(&path))?;
        Ok(Some(Removed { id, blocks }))
    }

    /// Returns `None`: in a directory, a removal is a single system call, so no removal is ever pending.
    fn take_removed(&mut self) -> Option<FileId> {
        None
    }
}
