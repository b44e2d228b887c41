//! Access to blocks without advancing virtual time, and a range of blocks as a byte stream.

use cardiograph_recorder::Blocks;
use cardiograph_sim_card::{BLOCK_BYTES, Block, Card};
use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;

/// Blocks with direct access.
pub trait Disk {
    /// Returns a block.
    fn block(&self, number: u64) -> Block;
    /// Replaces a block.
    fn put(&mut self, number: u64, data: &Block);
}

impl Disk for Card {
    fn block(&self, number: u64) -> Block {
        let mut data = [[0; BLOCK_BYTES]];
        self.load(number, &mut data);
        data[0]
    }

    fn put(&mut self, number: u64, data: &Block) {
        self.store(number, std::slice::from_ref(data));
    }
}

/// A card as a block device for the recorder's file system, without advancing virtual time.
pub struct DirectBlocks<'a>(pub &'a mut Card);

impl Blocks for DirectBlocks<'_> {
    type Error = std::convert::Infallible;

    fn blocks(&self) -> u32 {
        self.0.blocks() as u32
    }

    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> Result<(), Self::Error> {
        self.0.load(start.into(), blocks);
        Ok(())
    }

    async fn write(
        &mut self,
        start: u32,
        count: u32,
        make: &mut dyn FnMut(u32, &mut Block),
    ) -> Result<(), Self::Error> {
        for at in 0..count {
            let mut data = [0; BLOCK_BYTES];
            make(at, &mut data);
            self.0.put(u64::from(start + at), &data);
        }
        Ok(())
    }
}

/// The contents of a card, from which other cards can be made.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Image(BTreeMap<u64, Block>);

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{} blocks", self.0.len())
    }
}

impl Image {
    /// Reads the contents of a card.
    pub fn of(card: &Card) -> Image {
        let mut image = Image::default();
        (0..card.blocks()).for_each(|number| image.put(number, &card.block(number)));
        image
    }

    /// Changes each block that is not all zeros.
    pub fn change_each(&mut self, change: impl FnMut(&mut Block)) {
        self.0.values_mut().for_each(change);
    }

    /// Stores the image on an empty card.
    pub fn store(&self, card: &mut Card) {
        for (number, data) in &self.0 {
            card.put(*number, data);
        }
    }
}

impl Disk for Image {
    fn block(&self, number: u64) -> Block {
        self.0.get(&number).copied().unwrap_or([0; BLOCK_BYTES])
    }

    fn put(&mut self, number: u64, data: &Block) {
        match data.iter().all(|byte| *byte == 0) {
            true => self.0.remove(&number),
            false => self.0.insert(number, *data),
        };
    }
}

/// A range of blocks as a byte stream, for the crate fatfs.
pub struct BlockStream<'a, D> {
    disk: &'a mut D,
    blocks: Range<u64>,
    at: u64,
    /// Most recently read block, as a cache: directories are read a few bytes at a time.
    last: Option<(u64, Block)>,
}

impl<'a, D: Disk> BlockStream<'a, D> {
    /// Creates a stream over a range of blocks, positioned at the first byte.
    pub fn new(disk: &'a mut D, blocks: Range<u64>) -> Self {
        BlockStream {
            disk,
            blocks,
            at: 0,
            last: None,
        }
    }

    fn len(&self) -> u64 {
        (self.blocks.end - self.blocks.start) * BLOCK_BYTES as u64
    }

    /// Returns the block that contains the current byte, the byte's offset within the block, and how many of
    /// the `wanted` bytes the block contains.
    fn position(&self, wanted: usize) -> (u64, usize, usize) {
        let within = (self.at % BLOCK_BYTES as u64) as usize;
        let left = (BLOCK_BYTES - within).min((self.len() - self.at) as usize);
        let block = self.blocks.start + self.at / BLOCK_BYTES as u64;
        (block, within, left.min(wanted))
    }
}

impl<D: Disk> Read for BlockStream<'_, D> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let (block, within, count) = self.position(out.len());
        if count > 0 {
            let data = match &mut self.last {
                Some((last, data)) if *last == block => data,
                last => &mut last.insert((block, self.disk.block(block))).1,
            };
            out[..count].copy_from_slice(&data[within..within + count]);
        }
        self.at += count as u64;
        Ok(count)
    }
}

impl<D: Disk> Write for BlockStream<'_, D> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (block, within, count) = self.position(bytes.len());
        if count > 0 {
            let mut data = self.disk.block(block);
            data[within..within + count].copy_from_slice(&bytes[..count]);
            self.disk.put(block, &data);
            self.last = None;
        }
        self.at += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<D: Disk> Seek for BlockStream<'_, D> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.len().checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
