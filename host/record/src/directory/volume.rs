//! Files: reserved in their full length, and given their true one.

use super::journal::{Entry, JOURNAL, JOURNAL_BYTES, PLACES, Record};
use super::{Access, BLOCKS_MAX, DirectoryError, DirectoryVolume, start_of};
use cardiograph_card::{BLOCK_BYTES, Block};
use cardiograph_recorder::{
    Blocks, Extent, Name, RESERVED_MAX, Request, Reserved, Trouble, Volume,
};

const NUMBER_LAST: u32 = 99_999;
/// What names of recordings that are removed end with.
const RECORDINGS: [&[u8]; 2] = [b"CSV", b"BIN"];

impl DirectoryVolume {
    /// Writes what is known now to the place whose turn it is. Samples go first: this is where the
    /// recorder may write some.
    async fn commit<B: Blocks<Error = DirectoryError>>(
        &mut self,
        card: &mut B,
    ) -> Result<(), DirectoryError> {
        if self.folder.borrow().access == Access::Look {
            return Ok(());
        }
        self.record.sequence = self.record.sequence.wrapping_add(1);
        let record = &self.record;
        card.write(record.place(), 1, &mut |_, out| record.encode(out))
            .await
    }

    fn load(&mut self) -> Result<(), DirectoryError> {
        let folder = self.folder.borrow();
        let path = folder.path.join(JOURNAL);
        let journal = folder.file(super::Place::Journal)?;
        let mut bytes = vec![0; JOURNAL_BYTES as usize];
        let mut len = 0;
        loop {
            use std::os::unix::fs::FileExt;
            let read = journal.read_at(&mut bytes[len..], len as u64);
            match read.map_err(DirectoryError::at(&path))? {
                0 => break,
                more => len += more,
            }
        }
        let block = |place: u32| -> Block {
            let at = place as usize * BLOCK_BYTES;
            core::array::from_fn(|index| bytes[at + index])
        };
        let number_least = folder.number_last()? + 1;
        self.record = match Record::newest(&PLACES.map(block)) {
            Some(record) => record,
            // Nothing was written to it before all ended.
            None if bytes.iter().all(|byte| *byte == 0) => {
                Record::new(number_least, self.record.key)
            }
            None => return Err(DirectoryError::DamagedJournal(path)),
        };
        self.record.number_next = self.record.number_next.max(number_least);
        Ok(())
    }

    fn entry(&self, slot: u8) -> Result<Entry, DirectoryError> {
        let entry = self.record.files.get(usize::from(slot)).copied().flatten();
        entry.ok_or_else(|| DirectoryError::NotUnfinished(self.folder.borrow().path.clone()))
    }

    /// Opens the unfinished files, and forgets those that are not as they were left.
    fn open_files(&mut self) -> Result<bool, DirectoryError> {
        let mut folder = self.folder.borrow_mut();
        let mut are_same = true;
        for slot in 0..RESERVED_MAX {
            let Some(entry) = self.record.files[slot] else {
                continue;
            };
            folder.files[slot] = folder.open_unfinished(&entry)?;
            if folder.files[slot].is_none() {
                self.record.files[slot] = None;
                are_same = false;
            }
        }
        Ok(are_same)
    }

    fn next_name(&mut self, request: &Request) -> Result<Name, DirectoryError> {
        let folder = self.folder.borrow();
        loop {
            let number = self.record.number_next;
            if number > NUMBER_LAST {
                return Err(DirectoryError::NumbersUsedUp(folder.path.clone()));
            }
            self.record.number_next += 1;
            let name = name_of(request, number).ok_or(DirectoryError::BadName)?;
            // Where capital letters and small ones are the same, so are their names.
            if folder.path_of(&name).symlink_metadata().is_err() {
                return Ok(name);
            }
        }
    }

    /// Makes a file of this length, or takes back that it is to be made.
    async fn make<B: Blocks<Error = DirectoryError>>(
        &mut self,
        card: &mut B,
        slot: usize,
        entry: Entry,
    ) -> Result<(), DirectoryError> {
        self.record.files[slot] = Some(entry);
        self.commit(card).await?;
        let made = self.folder.borrow_mut().make(&entry);
        match made {
            Ok(unfinished) => self.folder.borrow_mut().files[slot] = Some(unfinished),
            Err(error) => {
                self.record.files[slot] = None;
                self.commit(card).await?;
                return Err(error);
            }
        }
        self.record.files[slot] = Some(Entry {
            is_made: true,
            ..entry
        });
        self.record.epochs = self.record.epochs.wrapping_add(1);
        self.commit(card).await
    }
}

impl<B: Blocks<Error = DirectoryError>> Volume<B> for DirectoryVolume {
    type Error = DirectoryError;

    fn trouble(error: &DirectoryError) -> Trouble {
        match error {
            error if error.is_full() => Trouble::NoSpace,
            DirectoryError::Io { .. } => Trouble::Card,
            _ => Trouble::Volume,
        }
    }

    async fn mount(&mut self, card: &mut B) -> Result<(), DirectoryError> {
        self.load()?;
        let is_new = self.record.sequence == 0;
        if !self.open_files()? || (is_new && self.folder.borrow().access == Access::Record) {
            self.commit(card).await?;
            self.folder.borrow().sync()?;
        }
        Ok(())
    }

    fn reserved(&self, slot: u8) -> Option<Reserved> {
        let entry = self
            .record
            .files
            .get(usize::from(slot))
            .copied()
            .flatten()?;
        Some(Reserved {
            slot,
            name: entry.name,
            extent: Extent {
                start: start_of(slot.into()),
                blocks: entry.blocks,
            },
            epoch: entry.epoch,
            note: entry.note,
        })
    }

    async fn reserve(
        &mut self,
        card: &mut B,
        request: Request,
    ) -> Result<Reserved, DirectoryError> {
        let slot = self.record.files.iter().position(Option::is_none);
        let slot =
            slot.ok_or_else(|| DirectoryError::NotUnfinished(self.folder.borrow().path.clone()))?;
        let mut blocks = request.blocks.clamp(1, BLOCKS_MAX);
        loop {
            let entry = Entry {
                name: self.next_name(&request)?,
                is_made: false,
                blocks,
                epoch: mix(self.record.epochs ^ mix(self.record.key)),
                note: request.note,
            };
            match self.make(card, slot, entry).await {
                Ok(()) => break,
                // A shorter one may find room.
                Err(error) if error.is_full() && blocks / 2 >= request.blocks_min.max(1) => {
                    self.record.number_next -= 1;
                    blocks /= 2;
                }
                Err(error) => return Err(error),
            }
        }
        Volume::<B>::reserved(self, slot as u8)
            .ok_or_else(|| DirectoryError::NotUnfinished(self.folder.borrow().path.clone()))
    }

    async fn close(&mut self, card: &mut B, slot: u8, bytes: u64) -> Result<(), DirectoryError> {
        let entry = self.entry(slot)?;
        let finished = self
            .folder
            .borrow_mut()
            .finish(usize::from(slot), &entry, bytes);
        self.failure.note(finished)?;
        self.record.files[usize::from(slot)] = None;
        self.commit(card).await
    }

    async fn discard(&mut self, card: &mut B, slot: u8) -> Result<(), DirectoryError> {
        let entry = self.entry(slot)?;
        self.folder.borrow_mut().discard(slot.into(), &entry)?;
        self.record.files[usize::from(slot)] = None;
        self.commit(card).await
    }

    async fn remove_oldest(&mut self, _: &mut B) -> Result<Option<Name>, DirectoryError> {
        let unfinished = self.record.files.map(|file| file.map(|file| file.name));
        let folder = self.folder.borrow();
        let recordings = folder.recordings()?.into_iter().filter(|(number, name)| {
            *number >= self.record.number_first
                && RECORDINGS.contains(&&name[8..])
                && !unfinished.contains(&Some(*name))
        });
        let Some((_, name)) = recordings.min() else {
            return Ok(None);
        };
        folder.remove(&folder.path_of(&name))?;
        Ok(Some(name))
    }
}

/// The name with a number, if its characters can be.
fn name_of(request: &Request, number: u32) -> Option<Name> {
    let is_good = request.prefix.iter().all(u8::is_ascii_uppercase)
        && request.extension.iter().all(u8::is_ascii_alphanumeric);
    let digits = format!("{number:05}");
    let parts = [&request.prefix, digits.as_bytes(), &request.extension].concat();
    parts.try_into().ok().filter(|_| is_good)
}

/// A permutation of the numbers in which each bit depends on all: the end of MurmurHash3 (Appleby).
fn mix(mut number: u32) -> u32 {
    number ^= number >> 16;
    number = number.wrapping_mul(0x85EB_CA6B);
    number ^= number >> 13;
    number = number.wrapping_mul(0xC2B2_AE35);
    number ^ number >> 16
}
