//! A card in memory whose power can be cut, volumes on it, and their checkers.
#![allow(dead_code, reason = "each test file uses only part of it")]

mod check;
mod image;

#[allow(unused_imports, reason = "each test file uses only part of it")]
pub use check::{Entry, Listing, check};
#[allow(unused_imports, reason = "each test file uses only part of it")]
pub use image::{
    FAT16, FAT32, Image, Spec, elsewhere, fsck, long_names, made_by, put_root_entries, repaired,
    table, with_file, without,
};

use cardiograph_card::Block;
use cardiograph_recorder::{
    Blocks, DosTime, FatError, FatVolume, FileId, FileRecord, IndexRecord, RESERVED_MAX, Request,
    Reserved, Volume,
};
use cardiograph_sim_world::Seed;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Maximum number of blocks that a volume may write with one command.
const SLICE_BLOCKS: u32 = 16;

/// Bytes of a partially written block. They end within the checksum of a record: a later end could leave the
/// record intact.
const TORN_BYTES: usize = 18;

/// The blocks of a burst that are written before power fails.
#[derive(Clone, Copy, Debug)]
pub enum Torn {
    /// All blocks before the cut.
    Prefix,
    /// Any subset of its blocks.
    Any(Seed),
    /// All blocks before the cut, and the first bytes of the next one if it is the journal's.
    Within,
}

/// The card has no power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPower;

impl fmt::Display for NoPower {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("the power was cut")
    }
}

impl std::error::Error for NoPower {}

/// A card: its initial contents, and the blocks written since.
#[derive(Clone)]
pub struct Disk {
    first: Arc<Vec<Block>>,
    count: u32,
    changed: HashMap<u32, Block>,
    /// Blocks written so far.
    pub writes: u64,
    /// Blocks read so far.
    pub reads: u64,
    /// Number of blocks after which power fails.
    pub cut: Option<u64>,
    pub torn: Torn,
    /// Blocks of which only the first bytes may be written.
    pub can_tear: [u32; 2],
    is_off: bool,
}

impl Disk {
    /// Creates a card with this number of blocks. Blocks that are not given are zero.
    pub fn new(mut first: Vec<Block>, count: u32) -> Disk {
        let zeros = first.iter().rev().take_while(|block| **block == [0; 512]);
        first.truncate(first.len() - zeros.count());
        Disk {
            first: Arc::new(first),
            count,
            changed: HashMap::new(),
            writes: 0,
            reads: 0,
            cut: None,
            torn: Torn::Prefix,
            can_tear: [0; 2],
            is_off: false,
        }
    }

    pub fn block(&self, block: u32) -> &Block {
        assert!(block < self.count, "block {block} does not exist");
        let first = || self.first.get(block as usize).unwrap_or(&[0; 512]);
        self.changed.get(&block).unwrap_or_else(first)
    }

    /// Returns the contents of the given blocks.
    pub fn bytes(&self, blocks: Range<u32>) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(blocks.len() * 512);
        blocks.for_each(|block| bytes.extend_from_slice(self.block(block)));
        bytes
    }

    pub fn put(&mut self, block: u32, data: Block) {
        assert!(block < self.count, "block {block} does not exist");
        self.changed.insert(block, data);
    }

    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns all blocks that were ever written.
    pub fn written(&self) -> impl Iterator<Item = u32> {
        self.changed.keys().copied()
    }

    /// Returns the end of the blocks that may be nonzero.
    pub fn used(&self) -> u32 {
        let changed = self.changed.keys().max().map_or(0, |last| last + 1);
        changed.max(self.first.len() as u32)
    }

    /// Returns the card with its power restored.
    pub fn powered_up(&self) -> Disk {
        Disk {
            cut: None,
            is_off: false,
            writes: 0,
            ..self.clone()
        }
    }

    /// Returns the card with a power cut after this number of blocks.
    pub fn cut_after(&self, blocks: u64, torn: Torn) -> Disk {
        Disk {
            cut: Some(blocks),
            torn,
            ..self.powered_up()
        }
    }

    pub fn is_off(&self) -> bool {
        self.is_off
    }

    fn write_burst(&mut self, start: u32, burst: &[Block]) {
        let cut = self
            .cut
            .filter(|cut| *cut < self.writes + burst.len() as u64);
        let Some(cut) = cut else {
            for (block, data) in (start..).zip(burst) {
                self.put(block, *data);
            }
            self.writes += burst.len() as u64;
            return;
        };
        let whole = (cut - self.writes) as usize;
        self.is_off = true;
        match self.torn {
            Torn::Any(seed) => {
                let mut random = seed.nth(cut);
                for (block, data) in (start..).zip(burst) {
                    if random.below(2) == 0 {
                        self.put(block, *data);
                    }
                }
            }
            Torn::Prefix | Torn::Within => {
                for (block, data) in (start..).zip(&burst[..whole]) {
                    self.put(block, *data);
                }
                let next = start + whole as u32;
                if matches!(self.torn, Torn::Within) && self.can_tear.contains(&next) {
                    let mut data = *self.block(next);
                    data[..TORN_BYTES].copy_from_slice(&burst[whole][..TORN_BYTES]);
                    self.put(next, data);
                }
            }
        }
    }
}

impl Blocks for Disk {
    type Error = NoPower;

    fn blocks(&self) -> u32 {
        self.count()
    }

    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> Result<(), NoPower> {
        if self.is_off {
            return Err(NoPower);
        }
        for (block, data) in (start..).zip(blocks) {
            *data = *self.block(block);
            self.reads += 1;
        }
        Ok(())
    }

    async fn write(
        &mut self,
        start: u32,
        count: u32,
        make: &mut dyn FnMut(u32, &mut Block),
    ) -> Result<(), NoPower> {
        if self.is_off {
            return Err(NoPower);
        }
        assert!(
            (1..=SLICE_BLOCKS).contains(&count),
            "{count} blocks at once"
        );
        let burst: Vec<Block> = (0..count)
            .map(|index| {
                // The result must depend neither on the buffer's contents nor on the number of calls.
                let mut data = [0xA5; 512];
                make(index, &mut data);
                let mut again = [0x5A; 512];
                make(index, &mut again);
                assert_eq!(data, again, "block {index} of {count} at {start}");
                data
            })
            .collect();
        self.write_burst(start, &burst);
        if self.is_off { Err(NoPower) } else { Ok(()) }
    }
}

/// Polls a future that never waits.
pub fn done<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    match future.as_mut().poll(&mut context) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a card in memory never waits"),
    }
}

pub type Error = FatError<NoPower>;

/// Test rig: a card with a mounted FAT volume.
pub struct Rig {
    pub disk: Disk,
    pub volume: FatVolume,
    entropy: u32,
}

pub fn noon() -> DosTime {
    DosTime {
        date: 46 << 9 | 11 << 5 | 21,
        time: 12 << 11,
    }
}

/// Identity of a recording with [`REQUEST`]'s prefix and extension.
pub const fn rec(number: u32) -> FileId {
    FileId {
        prefix: REQUEST.prefix,
        extension: REQUEST.extension,
        number,
    }
}

pub const REQUEST: Request = Request {
    prefix: *b"REC",
    extension: *b"CSV",
    blocks: 200,
    blocks_min: 1,
    shares: 1,
    note: 0,
};

impl Rig {
    pub fn new(disk: Disk) -> Rig {
        Rig::of_logger(disk, 0xC0FFEE)
    }

    pub fn of_logger(disk: Disk, entropy: u32) -> Rig {
        Rig {
            disk,
            volume: FatVolume::new(noon, entropy),
            entropy,
        }
    }

    /// Creates and mounts a volume.
    pub fn mounted(disk: Disk) -> Rig {
        let mut rig = Rig::new(disk);
        rig.mount().unwrap();
        rig
    }

    pub fn mount(&mut self) -> Result<(), Error> {
        done(self.volume.mount(&mut self.disk))
    }

    pub fn reserve(&mut self, request: Request) -> Result<Reserved, Error> {
        done(self.volume.reserve(&mut self.disk, request))
    }

    pub fn name(&mut self, slot: u8, id: FileId, session: &str) -> Result<(), Error> {
        done(self.volume.name(&mut self.disk, slot, id, session))
    }

    pub fn close(&mut self, slot: u8, record: FileRecord) -> Result<(), Error> {
        done(self.volume.close(&mut self.disk, slot, &record))
    }

    /// Returns the identity of the next recording for this request.
    pub fn next(&self, request: Request) -> FileId {
        let (prefix, extension) = (request.prefix, request.extension);
        let volume = &self.volume;
        FileId {
            prefix,
            extension,
            number: Volume::<Disk>::next_number(volume, prefix, extension),
        }
    }

    pub fn take_removed(&mut self) -> Option<FileId> {
        Volume::<Disk>::take_removed(&mut self.volume)
    }

    /// Returns the finished recordings in a folder's index.
    pub fn list(&mut self, folder: u32) -> Vec<IndexRecord> {
        let mut list = Vec::new();
        let show = |record: &IndexRecord| list.push(*record);
        let (volume, disk) = (&mut self.volume, &mut self.disk);
        done(volume.list_folder(disk, REQUEST.prefix, folder, show)).unwrap();
        list
    }

    pub fn discard(&mut self, slot: u8) -> Result<(), Error> {
        done(self.volume.discard(&mut self.disk, slot))
    }

    pub fn remove_oldest(&mut self) -> Result<Option<FileId>, Error> {
        let removed = done(self.volume.remove_oldest(&mut self.disk));
        removed.map(|removed| removed.map(|removed| removed.id))
    }

    pub fn reserved(&self) -> Vec<Reserved> {
        (0..RESERVED_MAX as u8)
            .filter_map(|slot| Volume::<Disk>::reserved(&self.volume, slot))
            .collect()
    }

    /// Makes a recording of this length, with the next number.
    pub fn record(&mut self, blocks: u32, bytes: u64) -> FileId {
        let file = self.reserve(Request { blocks, ..REQUEST }).unwrap();
        let id = self.next(REQUEST);
        self.name(file.slot, id, "").unwrap();
        self.close(file.slot, FileRecord::of_length(id, bytes))
            .unwrap();
        id
    }

    /// Mounts the card again after restoring its power.
    pub fn remount(&mut self) {
        *self = Rig::of_logger(self.disk.powered_up(), self.entropy);
        self.mount().unwrap();
    }
}
