//! Guests of a card in memory, whose directories, chains and index the tests have written themselves.

mod changes;
mod contents;
mod recordings;
mod unfinished;

use super::{CardFile, CardFiles, FileError, FileSystem, LISTED_NAME_BYTES_MAX, Listing};
use crate::fat::tests::{Rig, Shape, long, short, sum_of};
use crate::reads::ReadDesk;
use cardiograph_card::{BLOCK_BYTES, Block};
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use hadris_fat_raw::FatKind;
use std::cell::RefCell;
use std::string::String;
use std::vec;
use std::vec::Vec;

const SHAPES: [Shape; 3] = [
    shape(FatKind::Fat16, 1300, 1),
    shape(FatKind::Fat16, 340, 4),
    shape(FatKind::Fat32, 340, 4),
];

const fn shape(kind: FatKind, clusters: u32, cluster_blocks: u32) -> Shape {
    Shape {
        kind,
        clusters,
        cluster_blocks,
        shift: 3,
    }
}

/// Blocks in each of the two buffers of the desk.
const BUFFER_BLOCKS: usize = 8;
/// Longer than any directory of these tests.
const ENTRIES_MAX: usize = 100;
/// More reads than any operation of these tests needs.
const READS_MAX: usize = 10_000;

const FILE: u8 = 0x20;
const DIRECTORY: u8 = 0x10;
const HIDDEN: u8 = 0x06;

/// Returns bytes that differ from block to block and from file to file.
fn bytes_of(file: u32, bytes: usize) -> Vec<u8> {
    (0..bytes as u32)
        .map(|at| (at.wrapping_mul(197) ^ (at / 512).wrapping_mul(23) ^ file) as u8)
        .collect()
}

/// A card to which the tests write.
struct Card {
    rig: Rig,
    shape: Shape,
}

impl Card {
    fn new(shape: Shape) -> Card {
        let rig = Rig::new(shape);
        Card { rig, shape }
    }

    /// Returns the blocks of these clusters.
    fn blocks(&self, clusters: &[u32]) -> Vec<u32> {
        let clusters = clusters.iter();
        clusters.flat_map(|it| self.rig.blocks_of(*it)).collect()
    }

    /// Returns the blocks of the root directory; on FAT32, those of its first cluster.
    fn root(&self) -> Vec<u32> {
        let start = self.rig.root_block();
        (start..start + 4).take(self.root_blocks()).collect()
    }

    fn root_blocks(&self) -> usize {
        match self.shape.kind {
            FatKind::Fat32 => self.shape.cluster_blocks as usize,
            _ => 4,
        }
    }

    /// Links clusters, and writes data to them.
    fn write(&mut self, clusters: &[u32], data: &[u8]) {
        self.rig.chain(clusters);
        for (block, data) in self.blocks(clusters).iter().zip(data.chunks(BLOCK_BYTES)) {
            self.rig.disk.blocks[*block as usize][..data.len()].copy_from_slice(data);
        }
    }

    /// Writes entries to a directory, from its beginning on.
    fn put_entries(&mut self, blocks: &[u32], entries: &[[u8; 32]]) {
        assert!(entries.len() <= blocks.len() * 16, "the directory is full");
        for (block, entries) in blocks.iter().zip(entries.chunks(16)) {
            let bytes = entries.as_flattened();
            self.rig.disk.blocks[*block as usize][..bytes.len()].copy_from_slice(bytes);
        }
    }
}

/// An entry that was changed at this time.
fn dated(mut entry: [u8; 32], date: u16, time: u16) -> [u8; 32] {
    entry[22..24].copy_from_slice(&time.to_le_bytes());
    entry[24..26].copy_from_slice(&date.to_le_bytes());
    entry
}

/// A desk, and the card from which its reads are carried out.
struct Served<'a> {
    desk: ReadDesk<'a>,
    card: RefCell<Card>,
    /// First block and length of each read.
    reads: RefCell<Vec<(u32, usize)>>,
}

fn with(card: Card, test: impl FnOnce(&Served)) {
    let mut memory = vec![[0; BLOCK_BYTES]; 2 * BUFFER_BLOCKS];
    let served = Served {
        desk: ReadDesk::with_buffers(&mut memory, 2),
        card: RefCell::new(card),
        reads: RefCell::new(Vec::new()),
    };
    // Three times, so that generations 0 and 1 belong to no card and to an earlier mount.
    (0..3).for_each(|_| served.mount());
    test(&served);
}

impl<'a> Served<'a> {
    fn files(&self) -> CardFiles<'_, 'a> {
        CardFiles::new(&self.desk)
    }

    fn mount(&self) {
        let layout = self.card.borrow().rig.layout;
        self.desk.set_mounted(Some(FileSystem(layout)));
    }

    /// Changes the card, as the recorder does when it removes something.
    fn change(&self, change: impl FnOnce(&mut Card)) {
        change(&mut self.card.borrow_mut());
        self.desk.note_change();
    }

    /// Carries out all reads that a future waits for.
    fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.run_with(future, |_| ())
    }

    /// Carries out all reads that a future waits for; calls `before` with the number of each of them.
    fn run_with<T>(&self, future: impl Future<Output = T>, mut before: impl FnMut(usize)) -> T {
        let (mut future, mut context) = (pin!(future), Context::from_waker(Waker::noop()));
        for number in 0..READS_MAX {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return output;
            }
            before(number);
            // A change makes the pending read fail.
            let Some(mut job) = self.desk.begin() else {
                continue;
            };
            let start = job.start;
            let blocks: &mut [Block] = job.blocks();
            let on_card = &self.card.borrow().rig.disk.blocks[start as usize..];
            blocks.copy_from_slice(&on_card[..blocks.len()]);
            self.reads.borrow_mut().push((start, blocks.len()));
            self.desk.end(job, Ok(()), 0, 0);
        }
        panic!("the operation does not end");
    }

    fn open(&self, path: &str) -> Result<CardFile, FileError> {
        self.run(self.files().open(path))
    }

    /// Reads a file from its beginning to its end.
    fn contents(&self, file: &CardFile) -> Result<Vec<u8>, FileError> {
        let mut contents = Vec::new();
        loop {
            let offset = contents.len() as u64;
            let bytes = self.run(self.files().read(file, offset, 100_000))?;
            if bytes.is_empty() {
                return Ok(contents);
            }
            contents.extend_from_slice(&bytes);
        }
    }

    /// Returns the rest of a listing.
    fn rest(&self, listing: &mut Listing) -> Result<Vec<(String, CardFile)>, FileError> {
        let mut entries = Vec::new();
        while let Some(entry) = self.next(listing)? {
            entries.push(entry);
            assert!(entries.len() < ENTRIES_MAX, "the listing does not end");
        }
        // The end is found again.
        assert!(self.next(listing)?.is_none());
        Ok(entries)
    }

    fn next(&self, listing: &mut Listing) -> Result<Option<(String, CardFile)>, FileError> {
        let mut name = [0; LISTED_NAME_BYTES_MAX];
        let next = self.run(self.files().next(listing, &mut name))?;
        Ok(next.map(|entry| (entry.name.into(), entry.file)))
    }

    fn list(&self, path: &str) -> Result<Vec<(String, CardFile)>, FileError> {
        let mut listing = self.run(self.files().list(path))?;
        self.rest(&mut listing)
    }
}
