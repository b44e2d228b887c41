//! FAT16 and FAT32 volumes: every operation may be interrupted at any block, and the next mount completes or
//! undoes it.
//!
//! ```text
//!   FatVolume ── Volume for the recorder                               (mod.rs)
//!     ├── locates the volume on the card                               (layout.rs)
//!     ├── files: space, entry, name, length                            (file.rs, names.rs)
//!     ├── folders, the index in each, and numbers            (folder.rs, index.rs, series.rs)
//!     ├── removes the oldest recording                                 (oldest.rs)
//!     ├── the journal, and its records                 (journal.rs, record.rs, old_journal.rs)
//!     ├── after a power cut                                            (recovery.rs)
//!     ├── reads any directory and file                         (walk.rs, entry.rs, view.rs)
//!     ├── changes by guests        (upload.rs, moves.rs, change.rs, place.rs, chains.rs)
//!     └── root directory, FAT, FSInfo, a block at a time               (root.rs, table.rs, fs_info.rs)
//!           │
//!   Blocks ── the card, behind the scheduler that writes samples first
//! ```
//!
//! # Files on the card
//!
//! ```text
//!   CARDIOGR.JNL          the journal, hidden
//!   CARDIOGR.R00 ...      prepared space, hidden: the number modulo 8 is its slot in the journal's table
//!   CARDIOGR.U00 ...      uploads in progress, hidden
//!   LOG00000/             recordings 1 to 999 of the prefix LOG
//!     CARDIOGR.IDX        their index, hidden
//!     LOG00001.CSV
//!     LOG00002 flight.CSV a recording of the session "flight": LOG00002.CSV is its short name
//!   LOG00001/             recordings 1000 to 1999
//! ```
//!
//! # Steps
//!
//! An operation is recorded in the journal at (1) and takes two steps, which end at (2) and (3). It is recorded as done
//! at (4), together with the new count of free clusters in FSInfo:
//!
//! ```text
//!                   journal:                                             FSInfo,
//!                   operation begins                                     journal: done
//!   reserve ───────────(1)────── chain ─────(2)──── entry ──────(3)───────────(4)──────> prepared
//!   name    ───────────(1)────── name ──────(2)──── hidden entry (3)──────────(4)──────> named
//!   close   ─ index ───(1)────── entry ─────(2)──── chain ──────(3)───────────(4)──────> finished
//!   discard ───────────(1)────── entry ─────(2)──── chain ──────(3)───────────(4)──────> gone
//!   remove  ───────────(1)────── entry ─────(2)──── chain, index (3)──────────(4)──────> gone
//!   grow    ───────────(1)────── zeros, end mark ──(2)── link ──(3)───────────(4)──────> longer
//!   folder  ─ contents (1)────── chain ─────(2)──── entry ──────(3)───────────(4)──────> created
//!   empty   ───────────(1)────── entry ─────(2)──── chain ──────(3)───────────(4)──────> gone
//! ```
//!
//! - `reserve` prepares space for a file, under a hidden entry.
//! - `name` writes the entry of a prepared file to its folder, and deletes the hidden entry.
//! - `close` lists a file in the index, sets its actual length, and frees the rest of its chain.
//! - `discard` removes an unfinished file, and `remove` a finished recording.
//! - `grow` appends a cluster to a directory. `reserve` and `folder` begin with it if the root directory has no room.
//! - `folder` creates a folder of recordings. It is the first part of `reserve`, so that `name`, which needs the
//!   folder, needs no free cluster.
//! - `empty` removes a folder whose recordings have all been removed as the oldest.
//!
//! Each step is durable before the next begins. Of the two FATs, the active one is written last. A power cut
//! leaves:
//!
//! | operation | before (1) | (1) to (2) | (2) to (3) | (3) to (4) | after (4) |
//! |---|---|---|---|---|---|
//! | reserve | nothing | part of a chain | an orphaned chain | the prepared file | the prepared file |
//! | name | the prepared file | the prepared file | two entries for one chain | the named file | the named file |
//! | close | the unfinished file | the unfinished file | final length, full chain | the file | the file |
//! | discard, remove | the file | the file | part of a chain | nothing | nothing |
//! | grow | nothing | an orphaned cluster | an orphaned cluster | a longer directory | a longer directory |
//! | folder | nothing | part of a chain | an orphaned chain | the folder | the folder |
//! | empty | the folder | the folder | part of a chain | nothing | nothing |
//!
//! Before (2), the index may already list the file that `close` finishes. From (3) to (4), FSInfo still has the old
//! count.
//!
//! The next mount undoes an operation in four cases, and completes it in all others:
//!
//! - `reserve`;
//! - `name`, if only the hidden entry exists;
//! - `folder`, if the folder has no entry;
//! - `empty`, if the folder still has its entry: a computer may have put files into it.
//!
//! It also clears the index records of unfinished files. If that mount is interrupted, the following one repeats the
//! same steps.
//!
//! # Guests
//!
//! A guest is another user of the card, such as a file server: it reads and changes any file that is not the
//! recorder's own. A file that it writes has a hidden entry until it is complete, and is then moved to its final name.
//!
//! ```text
//!                   journal:                                             FSInfo, journal:
//!                   operation begins                                     done, or the next run
//!   upload  ───────────(1)────── chain ─────(2)──── hidden entry (3)──────────(4)──────> hidden
//!   append  ───────────(1)────── run ───────(2)──── link, length (3)──────────(4)──────> longer
//!   move    ───────────(1)────── new entry ─(2)──── old name ────(3)──────────(4)──────> moved
//!   erase   ───────────(1)────── name ──────(2)──── run ─────────(3)──────────(4)──────> gone
//!   make    ─ contents (1)────── chain ─────(2)──── entry ───────(3)──────────(4)──────> created
//! ```
//!
//! | operation | before (1) | (1) to (2) | (2) to (3) | (3) to (4) | after (4) |
//! |---|---|---|---|---|---|
//! | upload | nothing | part of a chain | an orphaned chain | the upload | the upload |
//! | append | the upload | an orphaned run | the upload with its old length | the longer upload | the longer upload |
//! | move | the old name | the old name | two names for one chain | the new name | the new name |
//! | erase | the file | the file, or part of a name | part of a chain | later runs, if any | later runs, if any |
//! | make | nothing | part of a chain | an orphaned cluster | the directory | the directory |
//!
//! From (3) to (4), FSInfo still has the old count, and the chain of a file that `move` replaced is orphaned.
//!
//! The next mount undoes an upload, an append that is not linked, a move whose new entry does not exist, and a
//! directory without an entry. It completes all others, and then discards all uploads. So an uploaded file exists
//! completely or not at all, and a replaced file has either its old contents or its new ones.
//!
//! The entries of a new name are in one block, and so is the entry of a file that is replaced, so writing them is one
//! step. `erase` deletes a name and frees a chain, fragmented or not, one run at a time; chains.rs describes it. It
//! also frees the clusters of a replaced file, and those that an upload did not need. A recording that the index lists
//! is removed with the steps of `remove`. If a recording is renamed, moved or replaced, its record is then removed from
//! the index, so that [`remove_oldest`](Volume::remove_oldest) keeps the file.
//!
//! Guests must not change protected entries, unfinished recordings, or folders that will receive more recordings. An
//! entry is protected if its long name, its short name or its attributes say so (protected.rs, entry.rs). Guests may put
//! files into a folder of recordings, but neither at the position of a future recording nor under a name that it may
//! need.
//!
//! # Creating the journal
//!
//! The journal is the hidden file `CARDIOGR.JNL` in the root directory; docs/formats.md documents it byte by byte. Its
//! first record is written to free clusters and states that the journal is being created. The entry comes next: from
//! then on, a mount finds the record and writes the chain. If the root directory is full, the entry is put into a new
//! cluster. The journal then exists from the moment at which that cluster is linked to the directory; its end-of-chain
//! mark follows.
//!
//! # Files of other programs
//!
//! A computer may have written to the card after a power cut. So a mount completes or undoes an operation only if
//!
//! - all its clusters are free or linked as the operation links them;
//! - no other entry of the root directory begins in them;
//! - in the case of `erase`, the chain after the run has the recorded number of clusters and checksum.
//!
//! If the count in FSInfo is neither the one before the operation nor the one after it, the mount sets the count to
//! "unknown". A file that a repair tool has put into a folder is not detected if its chain consists of clusters of the
//! operation and ends at the same cluster as the operation's chain.
//!
//! An unfinished file whose entry or chain has changed is forgotten and left as it is. A folder is used only if it
//! contains its index and both are at their original positions: a copy made by a computer counts as foreign, and
//! numbering continues in the next folder. oldest.rs describes which recordings
//! [`remove_oldest`](Volume::remove_oldest) removes. If a recording was interrupted before it was named, and a computer
//! has since used its name, the recording gets the next free number; its header keeps the old one.
//!
//! If somebody deletes the journal, the next mount creates a new one and no longer knows which files were unfinished;
//! their preallocated space then stays hidden. Numbering continues after the highest number in the folders, from which
//! the epoch count is derived too. If all recordings were deleted as well, only a different `entropy` prevents reuse of
//! their epochs.
//!
//! Unfinished files of version 0.1 keep their names in the root directory, and are closed there.
//!
//! # Cost
//!
//! An operation writes two journal blocks, one or two directory blocks, one FSInfo block, and its FAT entries
//! twice, with at most 16 blocks per command. The cost does not depend on the number of recordings: a
//! recording's number determines its position in its folder and in the index. A mount reads the root
//! directory, the journal, and both ends of the chains of unfinished files; if numbers have to be determined
//! again, also one folder per prefix. A search for free clusters reads the FAT one block at a time, from the
//! end of the last search up to the first run that is long enough; for a file, half its maximum length is. A folder takes 585 blocks.

mod chains;
mod change;
mod entry;
mod error;
mod file;
mod folder;
mod fs_info;
mod guest_record;
mod index;
mod journal;
mod layout;
mod moves;
mod names;
mod old_journal;
mod oldest;
mod place;
mod record;
mod recovery;
#[cfg(feature = "serving")]
mod request;
mod root;
mod series;
mod table;
#[cfg(test)]
pub(crate) mod tests;
mod upload;
mod view;
mod walk;

pub use entry::{ChainPosition, DirCursor, DirEntry, ENTRY_NAME_BYTES_MAX, Node};
pub use error::{Error, Refusal};
pub(crate) use index::INDEX_BLOCKS;
pub use index::{INDEX_RECORD_BYTES, IndexRecord};
pub(crate) use layout::Layout;
pub use upload::{UPLOADS_MAX, Upload};
pub(crate) use walk::Walk;

use crate::changes::ChangeTask;
use crate::guest::{FileError, FileSystem};
use crate::volume::{
    Blocks, ErrorKind, Extent, FileId, FileRecord, RESERVED_MAX, Removed, Request, Reserved, Volume,
};
use cardiograph_card::{BLOCK_BYTES, Block};
use hadris_fat_raw::{ATTR_ARCHIVE, ATTR_HIDDEN, ATTR_SYSTEM};
use layout::{First, identify_first};
use record::{File, Intent, Kind, Record};

/// Date and time in the format of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DosTime {
    /// Years since 1980 in 7 bits, month in 4, day in 5.
    pub date: u16,
    /// Hours in 5 bits, minutes in 6, seconds / 2 in 5.
    pub time: u16,
}

impl DosTime {
    /// The earliest time, 1980-01-01, for devices without a clock. The index treats it as unknown.
    pub const NO_CLOCK: DosTime = DosTime {
        date: 1 << 5 | 1,
        time: 0,
    };
}

/// A FAT16 or FAT32 volume.
pub struct FatVolume {
    clock: fn() -> DosTime,
    entropy: u32,
    layout: Layout,
    /// Block addresses of the journal's two copies.
    copies: [u32; 2],
    record: Record,
    /// Minimum number of epochs in use, derived from the names in the root directory.
    epochs_least: u32,
    /// The recording whose interrupted removal the last mount completed.
    removed: Option<FileId>,
    /// True if no operation is in progress.
    is_ready: bool,
    /// True if a missing journal is to be created.
    makes_journal: bool,
    /// Counts changes of directories and chains.
    generation: u32,
    /// The generation in which each upload began; 0 if there is none.
    uploads: [u32; UPLOADS_MAX],
    /// Upper bound of the length of a free run, in clusters, known after a search that found too little; `u16::MAX` stands for
    /// any length. When clusters are freed, only the run around them is looked at.
    longest_run_max: u16,
    /// The only block buffer: each step reads what it needs.
    block: Block,
}

impl FatVolume {
    /// Creates an unmounted volume. `clock` returns the time for directory entries. `entropy` is a number
    /// that differs between loggers, such as a chip's serial number: it keeps their epochs distinct.
    pub const fn new(clock: fn() -> DosTime, entropy: u32) -> FatVolume {
        FatVolume {
            clock,
            entropy,
            layout: Layout::NONE,
            copies: [0; 2],
            record: Record::NEW,
            epochs_least: 1,
            removed: None,
            is_ready: false,
            makes_journal: true,
            generation: 0,
            uploads: [0; UPLOADS_MAX],
            longest_run_max: u16::MAX,
            block: [0; BLOCK_BYTES],
        }
    }

    /// Disables the creation of a journal: [`mount`](Volume::mount) fails on a card without one and writes nothing to
    /// it. For programs that only read recordings.
    pub const fn with_journal_only(mut self) -> FatVolume {
        self.makes_journal = false;
        self
    }

    /// Returns a number that changes, modulo 2^32, whenever directories or chains change: with every operation
    /// of the recorder or of a guest, and with every mount. Entries and positions found before are then out
    /// of date.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Returns the first block that belongs to files or directories of clusters, after the tables of the mounted volume.
    pub fn data_start(&self) -> u32 {
        self.layout.data
    }

    async fn find<B: Blocks>(&mut self, card: &mut B) -> Result<Layout, Error<B::Error>> {
        let card_blocks = card.blocks();
        self.read(card, 0).await?;
        let start = match identify_first(&self.block)? {
            First::Boot => 0,
            First::Partition(start) => start,
        };
        if start >= card_blocks {
            return Err(Error::LargerThanCard {
                end: u64::from(start) + 1,
                card_blocks,
            });
        }
        self.read(card, start).await?;
        Layout::of(&self.block, start, card_blocks)
    }

    fn check_ready<E>(&self) -> Result<(), Error<E>> {
        if self.is_ready {
            Ok(())
        } else {
            Err(Error::NotMounted)
        }
    }

    fn file<E>(&self, slot: u8) -> Result<File, Error<E>> {
        self.check_ready()?;
        self.record.file(slot).ok_or(Error::NoSuchFile(slot))
    }

    fn reserved_of(&self, slot: u8, file: File) -> Reserved {
        Reserved {
            slot,
            prefix: file.prefix,
            extension: file.extension,
            extent: Extent {
                start: self.layout.block_of(file.first),
                blocks: file.clusters * self.layout.cluster_blocks,
            },
            epoch: file.epoch,
            note: file.note,
            id: file.id(),
            is_version_0_1: file.kind == Kind::Version0_1,
        }
    }

    /// Returns true if another system may have written to the card since the last operation here.
    fn is_changed(&self, free: Option<u32>) -> bool {
        free.is_none() || free != self.record.free
    }

    /// Returns a number that is unique to each epoch count, volume and logger.
    fn epoch(&self) -> u32 {
        let key = mix(self.layout.serial ^ mix(self.entropy));
        mix(self.record.epochs ^ key)
    }
}

impl<B: Blocks> Volume<B> for FatVolume {
    type Error = Error<B::Error>;

    fn error_kind(error: &Self::Error) -> ErrorKind {
        match error {
            Error::NoSpace { .. } => ErrorKind::NoRoom,
            Error::DirectoryFull(_) => ErrorKind::DirectoryFull,
            Error::NameTaken(_) => ErrorKind::NameTaken,
            Error::Card(_) => ErrorKind::Card,
            _ => ErrorKind::Volume,
        }
    }

    async fn mount(&mut self, card: &mut B) -> Result<(), Self::Error> {
        self.is_ready = false;
        self.generation = self.generation.wrapping_add(1);
        self.removed = None;
        self.uploads = [0; UPLOADS_MAX];
        self.longest_run_max = u16::MAX;
        self.record = Record::NEW;
        self.layout = Layout::NONE;
        self.layout = self.find(card).await?;
        let has_uploads = {
            let seen = self.survey_root(card).await?;
            self.epochs_least = seen.number_last + 1;
            self.load_journal(card, &seen).await?;
            seen.has_uploads
        };
        let free = self.read_free(card).await?;
        let is_changed = self.is_changed(free);
        if self.record.intent == Intent::Nothing {
            self.record.free = free;
        } else {
            self.recover(card).await?;
            self.is_ready = false;
        }
        if has_uploads {
            self.discard_uploads(card).await?;
            self.is_ready = false;
        }
        self.forget_changed(card).await?;
        self.clear_unfinished(card).await?;
        if self.record.series.iter().all(Option::is_none) {
            self.discover_series(card).await?;
        } else if is_changed {
            self.check_series(card).await?;
        }
        self.is_ready = true;
        Ok(())
    }

    fn reserved(&self, slot: u8) -> Option<Reserved> {
        let file = self.record.file(slot)?;
        Some(self.reserved_of(slot, file))
    }

    #[cfg(feature = "serving")]
    async fn change(&mut self, card: &mut B, task: &mut ChangeTask<'_>) -> Result<(), Self::Error> {
        self.carry_out(card, task).await
    }

    #[cfg(not(feature = "serving"))]
    async fn change(&mut self, _: &mut B, _: &mut ChangeTask<'_>) -> Result<(), Self::Error> {
        Err(Error::Forbidden(Refusal::Root))
    }

    fn refusal(&self, error: &Self::Error) -> Option<FileError> {
        self.is_ready.then(|| error::refusal_of(error)).flatten()
    }

    fn file_system(&self) -> Option<FileSystem> {
        self.file_system_here()
    }

    fn free_blocks(&self) -> Option<u32> {
        let free = self.record.free?;
        Some(free.saturating_mul(self.layout.cluster_blocks))
    }

    fn next_number(&self, prefix: [u8; 3], _: [u8; 3]) -> u32 {
        self.series(prefix).map_or(1, |series| series.next)
    }

    async fn reserve(&mut self, card: &mut B, request: Request) -> Result<Reserved, Self::Error> {
        self.check_ready()?;
        let slot = self.record.reserved.iter().position(Option::is_none);
        let slot = slot.ok_or(Error::TooManyUnfinished)?;
        let id = FileId {
            prefix: request.prefix,
            extension: request.extension,
            number: 1,
        };
        if !id.is_valid() {
            return Err(Error::BadName);
        }
        self.prepare_folder(card, request.prefix).await?;
        let number = self.hidden_name_for(card, slot).await?;
        let place = self.place_for_entry(card).await?;
        let (first, clusters) = self.run_for(card, &request).await?;
        let file = File {
            kind: Kind::Prepared,
            prefix: request.prefix,
            extension: request.extension,
            number,
            place,
            first,
            clusters,
            epoch: self.epoch(),
            note: request.note,
        };
        self.begin(card, Intent::Reserve(file)).await?;
        self.write_chain(card, file.chain(&self.layout, clusters), 0)
            .await?;
        self.slot(card, place).await?;
        let attributes = ATTR_ARCHIVE | ATTR_HIDDEN | ATTR_SYSTEM;
        let mut entry = self.new_entry(file.name(), attributes);
        entry.set_first_cluster(self.layout.kind, first);
        entry.set_size(clusters * self.layout.cluster_bytes());
        self.write_entry(card, place, &entry).await?;
        self.record.reserved[slot] = Some(file);
        self.record.epochs = self.record.epochs.wrapping_add(1);
        self.record.hint = first + clusters;
        let free = self.record.free.map(|free| free.saturating_sub(clusters));
        self.done(card, free).await?;
        Ok(self.reserved_of(slot as u8, file))
    }

    async fn name(
        &mut self,
        card: &mut B,
        slot: u8,
        id: FileId,
        session: &str,
    ) -> Result<(), Self::Error> {
        self.name_file(card, slot, id, session).await
    }

    async fn close(
        &mut self,
        card: &mut B,
        slot: u8,
        record: &FileRecord,
    ) -> Result<(), Self::Error> {
        self.close_file(card, slot, record).await
    }

    async fn discard(&mut self, card: &mut B, slot: u8) -> Result<(), Self::Error> {
        let file = self.file(slot)?;
        self.begin(card, Intent::Discard { slot }).await?;
        self.erase(card, file).await?;
        self.forget_discarded(slot);
        self.done_freeing(card, file, 0).await
    }

    async fn remove_oldest(&mut self, card: &mut B) -> Result<Option<Removed>, Self::Error> {
        self.check_ready()?;
        self.remove_one(card).await
    }

    fn take_removed(&mut self) -> Option<FileId> {
        self.removed.take()
    }
}

const _: () = assert!(RESERVED_MAX <= u8::MAX as usize);
const _: () = assert!(size_of::<FatVolume>() <= 1536);

/// A permutation of the 32-bit numbers in which each bit depends on all: the finalizer of MurmurHash3
/// (Appleby).
const fn mix(mut number: u32) -> u32 {
    number ^= number >> 16;
    number = number.wrapping_mul(0x85EB_CA6B);
    number ^= number >> 13;
    number = number.wrapping_mul(0xC2B2_AE35);
    number ^ number >> 16
}
