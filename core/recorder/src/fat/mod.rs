//! FAT16 and FAT32 volumes: every operation can be cut off at any block, and the next mount brings it to
//! its end or undoes it.
//!
//! ```text
//!   FatVolume ── Volume for the recorder                               (mod.rs)
//!     ├── finding the volume on the card                               (layout.rs)
//!     ├── files: room, entry, length, end                              (file.rs)
//!     ├── the journal, and what it says                                (journal.rs, record.rs)
//!     ├── after a cut                                                  (recovery.rs)
//!     └── root directory, FAT, FSInfo, a block at a time               (root.rs, table.rs, fs_info.rs)
//!           │
//!   Blocks ── the card, behind who writes samples first
//! ```
//!
//! # Steps
//!
//! ```text
//!              journal:                                       FSInfo,
//!              what is begun                                  journal: done
//!   reserve ──────(1)────── chain ────(2)──── entry ───(3)──────────(4)──────> there
//!   close   ──────(1)────── entry ────(2)──── chain ───(3)──────────(4)──────> there
//!   discard,
//!   remove  ──────(1)────── entry ────(2)──── chain ───(3)──────────(4)──────> gone
//!   grow    ──────(1)────── zeros, end mark ──(2)── link ──(3)──────(4)──────> longer
//! ```
//!
//! Each of these is durable before the next is begun. Of the two FATs the one that is read is written
//! last. A cut leaves:
//!
//! | cut | reserve | close | discard, remove | grow | the next mount |
//! |---|---|---|---|---|---|
//! | before (1) | nothing | nothing | nothing | nothing | finds it as it was |
//! | (1) to (2) | part of a chain | the unfinished file | the file | a cluster without owner | undoes a reserve, does the others again |
//! | (2) to (3) | a chain without owner | its length, too long a chain | part of a chain | the same | as above |
//! | (3) to (4) | the file | the file, FSInfo old | FSInfo old | FSInfo old | as above |
//! | after (4) | the file | the file | nothing | a longer directory | finds it done |
//!
//! "grow" is the root directory of FAT32 getting a cluster; a reserve does it first when there is no room.
//! A mount that is cut off does the same again.
//!
//! # Making the journal
//!
//! It is the file `CARDIOGR.JNL`, hidden, in the root directory; docs/formats.md has it byte by byte. Its
//! first record is written to free clusters and says that it is being made. The entry comes next: from
//! then on a mount finds the record, and writes the chain. If the root directory is full the entry is
//! put into a new cluster, and linking that is what counts; it gets its end mark afterwards.
//!
//! # Others
//!
//! A computer may have worked on the card after a cut. So nothing is done again or undone unless all
//! clusters are free or linked as the operation links them, and no other entry of the root directory
//! begins in them. A count in FSInfo that is neither that from before nor that from after becomes
//! unknown. What is left: a file in a folder, put just there after a repair, that ends in the very
//! cluster where the operation's file did.
//!
//! A reserved file whose entry or chain has changed is forgotten and stays as it is. [`remove_oldest`]
//! takes files of the root directory that look like finished recordings since the journal was made:
//! LLLddddd.CSV or .BIN, numbered at least as the first then, neither system nor read-only, without a
//! long name, and in one piece. Others, and one that is in pieces, are passed over.
//!
//! If somebody deletes the journal the next mount makes another one, and what was unfinished is no longer
//! known to be. Numbers go on from the highest there is, and epochs with them; if all recordings are
//! deleted too, only another `entropy` keeps their epochs from coming again.
//!
//! [`remove_oldest`]: Volume::remove_oldest
//!
//! # What it costs
//!
//! Two blocks of journal an operation, one of directory, one of FSInfo, and a FAT's entries twice, at most
//! 16 blocks with one command. A mount reads the root directory, the journal, and both ends of the chains
//! of unfinished files. Looking for free clusters reads the FAT a block at a time, from where the last
//! ended, up to the first run that is long enough.

mod error;
mod file;
mod fs_info;
mod journal;
mod layout;
mod record;
mod recovery;
mod root;
mod table;

pub use error::Error;

use crate::volume::{Blocks, Extent, Name, RESERVED_MAX, Request, Reserved, Trouble, Volume};
use cardiograph_card::{BLOCK_BYTES, Block};
use hadris_fat_raw::{ATTR_ARCHIVE, ATTR_SYSTEM};
use layout::{First, Layout, look_at_first};
use record::{File, Intent, Record};
use root::{NUMBER_LAST, name_of};

/// A time as a directory holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DosTime {
    /// Years since 1980 in 7 bits, month in 4, day in 5.
    pub date: u16,
    /// Hours in 5 bits, minutes in 6, seconds / 2 in 5.
    pub time: u16,
}

impl DosTime {
    /// The first that there is, 1980-01-01, where there is no clock.
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
    /// The journal's two places, blocks of the card.
    places: [u32; 2],
    record: Record,
    /// One more than the highest number in the root directory when it was mounted.
    number_least: u32,
    /// Nothing is under way.
    is_ready: bool,
    /// A journal is made if there is none.
    makes_journal: bool,
    /// The only block there is: each step reads what it needs.
    block: Block,
}

impl FatVolume {
    /// A volume that is not mounted. `clock` tells the time for directory entries. `entropy` is a number
    /// that other loggers do not have, such as a chip's serial number: it sets their epochs apart.
    pub const fn new(clock: fn() -> DosTime, entropy: u32) -> FatVolume {
        FatVolume {
            clock,
            entropy,
            layout: Layout::NONE,
            places: [0; 2],
            record: Record::NEW,
            number_least: 1,
            is_ready: false,
            makes_journal: true,
            block: [0; BLOCK_BYTES],
        }
    }

    /// The same, but [`mount`](Volume::mount) refuses a card without a journal of this volume, and has
    /// written nothing then: for those who only want to find what was recorded.
    pub const fn with_journal_only(mut self) -> FatVolume {
        self.makes_journal = false;
        self
    }

    async fn find<B: Blocks>(&mut self, card: &mut B) -> Result<Layout, Error<B::Error>> {
        let card_blocks = card.blocks();
        self.read(card, 0).await?;
        let start = match look_at_first(&self.block)? {
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
            name: file.name,
            extent: Extent {
                start: self.layout.block_of(file.first),
                blocks: file.clusters * self.layout.cluster_blocks,
            },
            epoch: file.epoch,
            note: file.note,
        }
    }

    /// A number that differs with each count, on each volume, for each logger.
    fn epoch(&self) -> u32 {
        let key = mix(self.layout.serial ^ mix(self.entropy));
        mix(self.record.epochs ^ key)
    }
}

impl<B: Blocks> Volume<B> for FatVolume {
    type Error = Error<B::Error>;

    fn trouble(error: &Self::Error) -> Trouble {
        match error {
            Error::NoSpace { .. } | Error::DirectoryFull => Trouble::NoSpace,
            Error::Card(_) => Trouble::Card,
            _ => Trouble::Volume,
        }
    }

    async fn mount(&mut self, card: &mut B) -> Result<(), Self::Error> {
        self.is_ready = false;
        self.record = Record::NEW;
        self.layout = Layout::NONE;
        self.layout = self.find(card).await?;
        let seen = self.look_at_root(card).await?;
        self.number_least = seen.number_last + 1;
        self.load_journal(card, &seen).await?;
        if let Intent::Reserve(_) = self.record.intent
            && self.number_least - 1 == self.record.number_next
        {
            // The highest number is that of the file which is undone.
            self.number_least = self.record.number_next;
        }
        if self.record.intent == Intent::Nothing {
            // A computer may have changed it since.
            self.record.free = self.read_free(card).await?;
        } else {
            self.recover(card).await?;
        }
        self.forget_changed(card).await?;
        self.record.number_next = self.record.number_next.max(self.number_least);
        self.is_ready = true;
        Ok(())
    }

    fn reserved(&self, slot: u8) -> Option<Reserved> {
        let file = self.record.file(slot)?;
        Some(self.reserved_of(slot, file))
    }

    async fn reserve(&mut self, card: &mut B, request: Request) -> Result<Reserved, Self::Error> {
        self.check_ready()?;
        let slot = self.record.reserved.iter().position(Option::is_none);
        let slot = slot.ok_or(Error::TooManyUnfinished)?;
        let number = self.record.number_next;
        if number > NUMBER_LAST {
            return Err(Error::NumbersUsedUp);
        }
        let name = name_of(request.prefix, number, request.extension).ok_or(Error::BadName)?;
        let place = self.place_for_entry(card).await?;
        let (first, clusters) = self.run_for(card, &request).await?;
        let file = File {
            name,
            place,
            first,
            clusters,
            epoch: self.epoch(),
            note: request.note,
        };
        self.begin(card, Intent::Reserve(file)).await?;
        self.write_chain(card, file.chain(clusters), 0).await?;
        self.slot(card, place).await?;
        let mut entry = self.new_entry(name, ATTR_ARCHIVE | ATTR_SYSTEM);
        entry.set_first_cluster(self.layout.kind, first);
        entry.set_size(clusters * self.layout.cluster_bytes());
        self.write_entry(card, place, &entry).await?;
        self.record.reserved[slot] = Some(file);
        self.record.number_next += 1;
        self.record.epochs = self.record.epochs.wrapping_add(1);
        self.record.hint = first + clusters;
        let free = self.record.free.map(|free| free.saturating_sub(clusters));
        self.done(card, free).await?;
        Ok(self.reserved_of(slot as u8, file))
    }

    async fn close(&mut self, card: &mut B, slot: u8, bytes: u64) -> Result<(), Self::Error> {
        let file = self.file(slot)?;
        let kept = self.clusters_of(bytes);
        let bytes = u32::try_from(bytes).map_err(|_| Error::TooLong)?;
        if kept > file.clusters {
            return Err(Error::TooLong);
        }
        self.begin(card, Intent::Close { slot, bytes }).await?;
        if !self.shorten(card, file, bytes).await? {
            return Err(Error::Changed(file.name));
        }
        self.record.reserved[usize::from(slot)] = None;
        self.done_freeing(card, file, kept).await
    }

    async fn discard(&mut self, card: &mut B, slot: u8) -> Result<(), Self::Error> {
        let file = self.file(slot)?;
        self.begin(card, Intent::Discard { slot }).await?;
        self.erase(card, file).await?;
        self.record.reserved[usize::from(slot)] = None;
        self.done_freeing(card, file, 0).await
    }

    async fn remove_oldest(&mut self, card: &mut B) -> Result<Option<Name>, Self::Error> {
        self.check_ready()?;
        let mut least = self.record.number_first;
        while let Some((number, place, entry)) = self.oldest(card, least).await? {
            let file = File {
                name: entry.name(),
                place,
                first: entry.first_cluster(self.layout.kind),
                clusters: self.clusters_of(entry.size().into()),
                epoch: 0,
                note: 0,
            };
            if self.is_consecutive(card, file).await? {
                self.begin(card, Intent::Remove(file)).await?;
                self.erase(card, file).await?;
                self.done_freeing(card, file, 0).await?;
                return Ok(Some(file.name));
            }
            least = number + 1;
        }
        Ok(None)
    }
}

const _: () = assert!(RESERVED_MAX <= u8::MAX as usize);
const _: () = assert!(size_of::<FatVolume>() <= 1536);

/// A permutation of the numbers in which each bit depends on all: the end of MurmurHash3 (Appleby).
const fn mix(mut number: u32) -> u32 {
    number ^= number >> 16;
    number = number.wrapping_mul(0x85EB_CA6B);
    number ^= number >> 13;
    number = number.wrapping_mul(0xC2B2_AE35);
    number ^ number >> 16
}
