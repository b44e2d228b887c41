//! FAT16 and FAT32 volumes, whose every change can be cut off.
#![doc = "TODO"]

mod error;
mod journal;
mod layout;
mod record;
mod root;
mod table;

pub use error::Error;

use crate::volume::{Blocks, Extent, Name, RESERVED_MAX, Request, Reserved, Trouble, Volume};
use cardiograph_card::{BLOCK_BYTES, Block};
use hadris_fat_raw::{ATTR_ARCHIVE, ATTR_SYSTEM, ShortEntry};
use layout::{First, Layout, look_at_first};
use record::{File, Intent, Place, Record};
use root::{NUMBER_LAST, Room, name_of};
use table::Chain;

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
            block: [0; BLOCK_BYTES],
        }
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

    /// Clusters for so many bytes.
    fn clusters_of(&self, bytes: u64) -> u32 {
        bytes.div_ceil(self.layout.cluster_bytes().into()) as u32
    }

    fn new_entry(&self, name: Name, attributes: u8) -> ShortEntry {
        let DosTime { date, time } = (self.clock)();
        let mut entry = ShortEntry::new(name, attributes);
        entry.set_created(date, time, 0);
        entry.set_modified(date, time);
        entry.set_accessed_date(date);
        entry
    }

    /// A number that differs with each count, on each volume, for each logger.
    fn epoch(&self) -> u32 {
        let key = mix(self.layout.serial ^ mix(self.entropy));
        mix(self.record.epochs ^ key)
    }

    /// Where a new entry goes; the root directory is made longer for it if need be.
    async fn place_for_entry<B: Blocks>(&mut self, card: &mut B) -> Result<Place, Error<B::Error>> {
        let last = match self.room(card).await? {
            Room::At(place) => return Ok(place),
            Room::Full(end) => end.last,
        };
        let (new, found) = self.free_run(card, 1).await?;
        if found == 0 {
            return Err(Error::NoSpace { longest_blocks: 0 });
        }
        self.begin(card, Intent::ExtendRoot { last, new }).await?;
        self.write_directory(card, new, None).await?;
        self.link(card, new, None).await?;
        self.link(card, last, Some(new)).await?;
        self.record.hint = new + 1;
        let free = self.record.free.map(|free| free.saturating_sub(1));
        self.done(card, free).await?;
        Ok(Place {
            block: self.layout.block_of(new),
            index: 0,
        })
    }

    /// The longest run that a request can have, and needs not exceed.
    async fn run_for<B: Blocks>(
        &mut self,
        card: &mut B,
        request: &Request,
    ) -> Result<(u32, u32), Error<B::Error>> {
        let blocks = self.layout.cluster_blocks;
        let most = u32::MAX / self.layout.cluster_bytes();
        let least = request.blocks_min.div_ceil(blocks).max(1);
        let wanted = request.blocks.div_ceil(blocks).max(least).min(most);
        if least > most {
            return Err(Error::TooLong);
        }
        let (first, clusters) = self.free_run(card, wanted).await?;
        if clusters < least {
            return Err(Error::NoSpace {
                longest_blocks: clusters * blocks,
            });
        }
        Ok((first, clusters))
    }

    /// Deletes a file's entry, if it is there, and frees its clusters.
    async fn erase<B: Blocks>(&mut self, card: &mut B, file: File) -> Result<(), Error<B::Error>> {
        if self.entry_of(card, &file, file.first).await?.is_some() {
            self.delete_entry(card, file.place).await?;
        }
        self.write_chain(card, file.chain(0), 0).await
    }

    /// Gives an unfinished file its length, and frees what is behind. Says whether the file is there.
    async fn shorten<B: Blocks>(
        &mut self,
        card: &mut B,
        file: File,
        bytes: u32,
    ) -> Result<bool, Error<B::Error>> {
        let kept = self.clusters_of(bytes.into());
        let first = if kept == 0 { 0 } else { file.first };
        let mut entry = self.entry_of(card, &file, file.first).await?;
        if entry.is_none() {
            entry = self.entry_of(card, &file, first).await?;
        }
        let Some(mut entry) = entry else {
            return Ok(false);
        };
        let DosTime { date, time } = (self.clock)();
        entry.set_attributes(ATTR_ARCHIVE);
        entry.set_modified(date, time);
        entry.set_first_cluster(self.layout.kind, first);
        entry.set_size(bytes);
        self.write_entry(card, file.place, &entry).await?;
        if kept < file.clusters {
            let from = kept.saturating_sub(1);
            self.write_chain(card, file.chain(kept), from).await?;
        }
        Ok(true)
    }

    /// Notes that a file's clusters are free again, from its cluster number `kept` on.
    async fn done_freeing<B: Blocks>(
        &mut self,
        card: &mut B,
        file: File,
        kept: u32,
    ) -> Result<(), Error<B::Error>> {
        // What was reserved last is taken again at once.
        if self.record.hint == file.first + file.clusters {
            self.record.hint = file.first + kept;
        }
        let free = self
            .record
            .free
            .map(|free| free.saturating_add(file.clusters - kept));
        self.done(card, free).await
    }
}

impl File {
    /// The chain of the file if so many of its clusters are kept.
    fn chain(&self, kept: u32) -> Chain {
        Chain {
            first: self.first,
            clusters: self.clusters,
            kept,
        }
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

impl FatVolume {
    /// Whether a file has just the clusters that its entry says, one behind the other.
    async fn is_consecutive<B: Blocks>(
        &mut self,
        card: &mut B,
        file: File,
    ) -> Result<bool, Error<B::Error>> {
        if file.clusters == 0 {
            return Ok(file.first == 0);
        }
        Ok(self.layout.has(file.first, file.clusters)
            && self.is_chain(card, file.chain(file.clusters)).await?)
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
