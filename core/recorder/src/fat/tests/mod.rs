//! Small volumes in memory, whose tables the tests read and write themselves.

mod chains;
mod changes;
mod errors;
mod folder;
mod guests;
mod index;
mod journal;
mod layout;
mod operations;
mod places;
mod record;
mod recordings;
mod repairs;
#[cfg(feature = "serving")]
mod requests;
mod root;
mod series;
mod table;
mod view;
mod walk;

use super::layout::{Layout, Root};
use super::record::{Place, Series};
use super::{DosTime, FatVolume, Intent, mix};
use crate::volume::Blocks;
use cardiograph_card::Block;
use core::num::NonZeroU32;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use hadris_fat_raw::FatKind;
use std::format;
use std::string::String;
use std::vec;
use std::vec::Vec;

/// Blocks of a fixed root directory.
const ROOT_BLOCKS: u32 = 4;
const SHORT: [u8; 11] = *b"SHORT   TXT";

/// Returns the checksum of a short name (FAT specification, section 7.2).
pub(crate) fn sum_of(name: &[u8; 11]) -> u8 {
    name.iter()
        .fold(0, |sum: u8, byte| sum.rotate_right(1).wrapping_add(*byte))
}

/// A short entry.
pub(crate) fn short(name: &[u8; 11], attributes: u8, first: u32, size: u32) -> [u8; 32] {
    let mut entry = [0; 32];
    entry[..11].copy_from_slice(name);
    entry[11] = attributes;
    entry[20..22].copy_from_slice(&((first >> 16) as u16).to_le_bytes());
    entry[26..28].copy_from_slice(&(first as u16).to_le_bytes());
    entry[28..].copy_from_slice(&size.to_le_bytes());
    entry
}

/// An entry of a long name: 13 units, of which the first `len` belong to the name.
pub(crate) fn long(sequence: u8, sum: u8, units: &[u16]) -> [u8; 32] {
    let mut padded = [0xFFFF; 13];
    padded[..units.len()].copy_from_slice(units);
    if units.len() < 13 {
        padded[units.len()] = 0;
    }
    let mut entry = [0; 32];
    entry[0] = sequence;
    entry[11] = 0x0F;
    entry[13] = sum;
    let places = (1..11)
        .step_by(2)
        .chain((14..26).step_by(2))
        .chain([28, 30]);
    for (at, unit) in places.zip(padded) {
        entry[at..at + 2].copy_from_slice(&unit.to_le_bytes());
    }
    entry
}

/// An entry as the FAT specification defines it.
#[derive(Debug, PartialEq)]
struct Found {
    name: String,
    place: Place,
    long_entries: u8,
    before: [u32; 2],
}

/// Returns the entries of a directory. The parts of a long name precede its entry in descending order; the one with
/// the highest number comes first and is marked, and all have the checksum of the short name.
fn found(slots: &[(Place, [u8; 32])]) -> Vec<Found> {
    let mut all = Vec::new();
    for (at, (place, entry)) in slots.iter().enumerate() {
        if entry[0] == 0xE5 || matches!(entry[11], 0x0F | 0x08) {
            continue;
        }
        let mut name = [0; 11];
        name.copy_from_slice(&entry[..11]);
        let mut units = Vec::new();
        let mut count = None;
        for (number, (_, part)) in (1..=20).zip(slots[..at].iter().rev()) {
            let is_next = part[11] == 0x0F && part[0] & 0xBF == number && part[13] == sum_of(&name);
            if !is_next {
                break;
            }
            for range in [1..11, 14..26, 28..32] {
                let pairs = part[range].as_chunks::<2>().0.iter();
                units.extend(pairs.map(|pair| u16::from_le_bytes(*pair)));
            }
            if part[0] & 0x40 != 0 {
                count = Some(number);
                break;
            }
        }
        let end = units.iter().position(|unit| *unit == 0);
        units.truncate(end.unwrap_or(units.len()));
        let text = core::str::from_utf8(&name).unwrap();
        let (base, extension) = text.split_at(8);
        let mut blocks: Vec<u32> = Vec::new();
        let parts = usize::from(count.unwrap_or(0));
        for (part, _) in slots[at - parts..at].iter().rev() {
            if part.block != place.block && blocks.last() != Some(&part.block) {
                blocks.push(part.block);
            }
        }
        blocks.resize(2, 0);
        all.push(Found {
            name: match count {
                Some(_) => String::from_utf16_lossy(&units),
                None => format!("{base}.{extension}"),
            },
            place: *place,
            long_entries: parts as u8,
            before: [blocks[0], blocks[1]],
        });
    }
    all
}

/// The card has no power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NoPower;

/// A card in memory, which counts accesses.
#[derive(Clone)]
pub(crate) struct Disk {
    pub(crate) blocks: Vec<Block>,
    /// Blocks that can be written before the power is cut.
    left: u32,
    /// Blocks read, in order.
    reads: Vec<u32>,
    /// First block and number of blocks of each write command.
    writes: Vec<(u32, u32)>,
}

impl Blocks for Disk {
    type Error = NoPower;

    fn blocks(&self) -> u32 {
        self.blocks.len() as u32
    }

    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> Result<(), NoPower> {
        for (at, block) in (start..).zip(blocks) {
            self.reads.push(at);
            *block = self.blocks[at as usize];
        }
        Ok(())
    }

    async fn write(
        &mut self,
        start: u32,
        count: u32,
        make: &mut dyn FnMut(u32, &mut Block),
    ) -> Result<(), NoPower> {
        self.writes.push((start, count));
        for index in 0..count {
            self.left = self.left.checked_sub(1).ok_or(NoPower)?;
            // The result must not depend on the contents of the buffer.
            let mut data = [0xA5; 512];
            make(index, &mut data);
            self.blocks[(start + index) as usize] = data;
        }
        Ok(())
    }
}

impl Disk {
    fn entry(&self, place: Place) -> [u8; 32] {
        let at = usize::from(place.index) * 32;
        let mut entry = [0; 32];
        entry.copy_from_slice(&self.blocks[place.block as usize][at..at + 32]);
        entry
    }

    fn put_entry(&mut self, place: Place, entry: [u8; 32]) {
        let at = usize::from(place.index) * 32;
        self.blocks[place.block as usize][at..at + 32].copy_from_slice(&entry);
    }
}

/// Dimensions of a volume.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) kind: FatKind,
    pub(crate) clusters: u32,
    pub(crate) cluster_blocks: u32,
    /// Distance of the first cluster from a multiple of its own size, in blocks.
    pub(crate) shift: u32,
}

/// A volume with two FATs, and its card.
#[derive(Clone)]
pub(crate) struct Rig {
    pub(crate) disk: Disk,
    pub(crate) layout: Layout,
}

fn place(block: u32, index: usize) -> Place {
    let index = index as u8;
    Place { block, index }
}

/// A prefix whose next number is known.
fn series(prefix: [u8; 3], next: u32) -> Series {
    Series {
        prefix,
        has_folder: false,
        next,
        low: 0,
        folder: (0, 0),
    }
}

fn poll<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).as_mut().poll(&mut context) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a card in memory never waits"),
    }
}

fn done<T>(future: impl Future<Output = Result<T, super::Error<NoPower>>>) -> T {
    poll(future).unwrap()
}

impl Rig {
    /// Creates an empty volume. The journal's copies follow the last cluster.
    pub(crate) fn new(shape: Shape) -> Rig {
        let entry_bytes = match shape.kind {
            FatKind::Fat32 => 4,
            _ => 2,
        };
        let fat_blocks = ((shape.clusters + 2) * entry_bytes).div_ceil(512);
        let root_start = 1 + 2 * fat_blocks;
        let is_32 = shape.kind == FatKind::Fat32;
        let roots = if is_32 { 0 } else { ROOT_BLOCKS };
        let data = (root_start + roots).next_multiple_of(shape.cluster_blocks) + shape.shift;
        let layout = Layout {
            kind: shape.kind,
            start: 0,
            fat: 1 + fat_blocks,
            mirror: Some(NonZeroU32::MIN),
            root: match is_32 {
                true => Root::Cluster(2),
                false => Root::Fixed {
                    start: root_start,
                    blocks: roots,
                },
            },
            data,
            cluster_blocks: shape.cluster_blocks,
            clusters_end: shape.clusters + 2,
            fs_info: None,
            serial: 0,
        };
        let blocks = data + shape.clusters * shape.cluster_blocks + 2;
        let disk = Disk {
            blocks: vec![[0; 512]; blocks as usize],
            left: u32::MAX,
            reads: Vec::new(),
            writes: Vec::new(),
        };
        let mut rig = Rig { disk, layout };
        let end = rig.end();
        // Entry 0 contains the media byte.
        rig.put(0, end & !7);
        rig.put(1, end);
        if is_32 {
            rig.put(2, end);
        }
        rig
    }

    /// Returns the end mark that has all bits of an entry.
    fn end(&self) -> u32 {
        match self.layout.kind {
            FatKind::Fat32 => 0x0FFF_FFFF,
            _ => 0xFFFF,
        }
    }

    pub(crate) fn root_block(&self) -> u32 {
        match self.layout.root {
            Root::Fixed { start, .. } => start,
            Root::Cluster(_) => self.layout.data,
        }
    }

    /// Returns the blocks of a cluster.
    pub(crate) fn blocks_of(&self, cluster: u32) -> core::ops::Range<u32> {
        let start = self.layout.block_of(cluster);
        start..start + self.layout.cluster_blocks
    }

    /// Returns the first block of the journal's copies.
    fn journal(&self) -> u32 {
        self.disk.blocks.len() as u32 - 2
    }

    fn volume(&self) -> FatVolume {
        let mut volume = FatVolume::new(|| DosTime::NO_CLOCK, 0);
        volume.layout = self.layout;
        volume.copies = [self.journal(), self.journal() + 1];
        volume.is_ready = true;
        volume
    }

    /// Returns the block and the range of bytes of an entry in the active FAT.
    fn at(&self, cluster: u32) -> (u32, core::ops::Range<usize>) {
        let bytes = match self.layout.kind {
            FatKind::Fat32 => 4,
            _ => 2,
        };
        let at = cluster as usize * bytes;
        (
            self.layout.fat + (at / 512) as u32,
            at % 512..at % 512 + bytes,
        )
    }

    /// Writes an entry to both FATs.
    fn put(&mut self, cluster: u32, value: u32) {
        let (block, range) = self.at(cluster);
        let mirror = self.layout.fats().next().unwrap();
        for block in [block, block - self.layout.fat + mirror] {
            let bytes = &value.to_le_bytes()[..range.len()];
            self.disk.blocks[block as usize][range.clone()].copy_from_slice(bytes);
        }
    }

    fn get(&self, cluster: u32) -> u32 {
        let (block, range) = self.at(cluster);
        let mut bytes = [0; 4];
        bytes[..range.len()].copy_from_slice(&self.disk.blocks[block as usize][range]);
        u32::from_le_bytes(bytes)
    }

    /// Returns all entries. The FATs must be equal.
    fn table(&self) -> Vec<u32> {
        let fat = self.layout.fat;
        let mirror = self.layout.fats().next().unwrap();
        let blocks = &self.disk.blocks;
        for block in 0..fat - mirror {
            let [one, two] = [mirror, fat].map(|it| (it + block) as usize);
            assert!(blocks[one] == blocks[two], "the FATs differ");
        }
        (0..self.layout.clusters_end)
            .map(|it| self.get(it))
            .collect()
    }

    /// Links these clusters.
    pub(crate) fn chain(&mut self, clusters: &[u32]) {
        for (at, cluster) in clusters.iter().enumerate() {
            let next = clusters.get(at + 1).copied().unwrap_or(self.end());
            self.put(*cluster, next);
        }
    }
}
