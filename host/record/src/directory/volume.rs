//! File operations of the recorder: files are prepared at full length, named, and trimmed.

use super::files::remove;
use super::{Access, BLOCKS_MAX, DirectoryError, DirectoryVolume, NO_BLOCK, start_of};
use cardiograph_card::BLOCK_BYTES;
use cardiograph_recorder::{
    Blocks, ErrorKind, Extent, FileId, FileRecord, RESERVED_MAX, Request, Reserved, Volume,
};

impl DirectoryVolume {
    fn is_dry_run(&self) -> bool {
        self.folder.borrow().access == Access::DryRun
    }

    fn use_number(&mut self, id: &FileId) {
        let next = self.next_numbers.entry(id.prefix).or_insert(1);
        *next = id.number.saturating_add(1).max(*next);
    }
}

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
            DirectoryError::Io { .. } | DirectoryError::Gone(_) => ErrorKind::Card,
            _ => ErrorKind::Volume,
        }
    }

    async fn mount(&mut self, _: &mut B) -> Result<(), DirectoryError> {
        let scanned = self.folder.borrow_mut().scan();
        self.next_numbers = self.failure.note(scanned)?;
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

    fn next_number(&self, prefix: [u8; 3], _: [u8; 3]) -> u32 {
        self.next_numbers.get(&prefix).copied().unwrap_or(1)
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
        let mut blocks = request.blocks.min(BLOCKS_MAX);
        loop {
            step(card).await;
            let made = self.folder.borrow().make(&request, blocks);
            match made {
                Ok(unfinished) => {
                    self.folder.borrow_mut().files[slot] = Some(unfinished);
                    break;
                }
                // A shorter file may fit.
                Err(error) if error.is_full() && blocks / 2 >= request.blocks_min.max(1) => {
                    blocks /= 2;
                }
                // A full storage device is not a failure.
                Err(error) if error.is_full() => return Err(error),
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
        let slot = usize::from(slot);
        if self.is_dry_run() || self.folder.borrow().unfinished(slot)?.id == Some(id) {
            return Ok(());
        }
        let made = self.folder.borrow().make_folder(&id);
        self.failure.note(made)?;
        step(card).await;
        let named = self.folder.borrow_mut().give_name(slot, id, session);
        self.failure.note(named)?;
        self.use_number(&id);
        step(card).await;
        let synced = self.folder.borrow().sync_folder_of(slot);
        self.failure.note(synced)
    }

    async fn close(
        &mut self,
        card: &mut B,
        slot: u8,
        record: &FileRecord,
    ) -> Result<(), DirectoryError> {
        if self.is_dry_run() {
            return Ok(());
        }
        Volume::<B>::name(self, card, slot, record.id, record.session.as_str()).await?;
        let slot = usize::from(slot);
        step(card).await;
        let trimmed = self.folder.borrow_mut().trim(slot, record.bytes);
        self.failure.note(trimmed)?;
        step(card).await;
        let finished = self.folder.borrow_mut().finish(slot);
        self.failure.note(finished)
    }

    async fn discard(&mut self, _: &mut B, slot: u8) -> Result<(), DirectoryError> {
        self.folder.borrow_mut().note_removal(slot.into())?;
        if self.is_dry_run() {
            return Ok(());
        }
        let id = self.folder.borrow().unfinished(slot.into())?.id;
        let discarded = self.folder.borrow_mut().discard(slot.into());
        self.failure.note(discarded)?;
        if let Some(id) = id
            && self.next_numbers.get(&id.prefix) == Some(&(id.number + 1))
        {
            self.next_numbers.insert(id.prefix, id.number);
        }
        Ok(())
    }

    async fn remove_oldest(&mut self, _: &mut B) -> Result<Option<FileId>, DirectoryError> {
        let oldest = self.folder.borrow().oldest();
        let Some((id, path)) = self.failure.note(oldest)? else {
            return Ok(None);
        };
        self.failure.note(remove(&path))?;
        Ok(Some(id))
    }

    /// Returns `None`: a removal is a single system call here, and leaves nothing pending.
    fn take_removed(&mut self) -> Option<FileId> {
        None
    }
}
