//! What the journal of a directory says, and how a block holds it. docs/formats.md has it byte by byte.

use crate::crc::crc32;
use cardiograph_card::BLOCK_BYTES;
use cardiograph_recorder::{Name, RESERVED_MAX};

/// A block of a card.
pub(super) type Block = [u8; BLOCK_BYTES];

/// The journal's file. A card that a device records on has CARDIOGR.JNL: both may be in one folder.
pub(super) const JOURNAL: &str = "CARDIOGR.DIR";
/// First blocks of the journal's two places: 4 KiB apart, so that a write that is cut off takes the page
/// of one with it.
pub(super) const PLACES: [u32; 2] = [0, 8];
/// Bytes of the journal's file.
pub(super) const JOURNAL_BYTES: u64 = 9 * BLOCK_BYTES as u64;

const MAGIC: [u8; 8] = *b"CARDIOD1";
const SEQUENCE_AT: usize = 8;
const CRC_AT: usize = 12;
const NUMBER_FIRST_AT: usize = 16;
const NUMBER_NEXT_AT: usize = 20;
const EPOCHS_AT: usize = 24;
const KEY_AT: usize = 28;
const TABLE_AT: usize = 64;
const FILE_BYTES: usize = 32;
const _: () = assert!(TABLE_AT + RESERVED_MAX * FILE_BYTES <= BLOCK_BYTES);

/// An unfinished file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: Name,
    /// It has its full length; before, it is only being made.
    pub(super) is_made: bool,
    pub(super) blocks: u32,
    pub(super) epoch: u32,
    pub(super) note: u32,
}

/// What a place of the journal holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// One more with each write.
    pub(super) sequence: u32,
    /// The next number when this journal was made: files below it are never removed.
    pub(super) number_first: u32,
    /// Number of the next name.
    pub(super) number_next: u32,
    /// Epochs that were given out.
    pub(super) epochs: u32,
    /// Sets the epochs of this directory apart from those of others.
    pub(super) key: u32,
    /// The unfinished files.
    pub(super) files: [Option<Entry>; RESERVED_MAX],
}

impl Record {
    /// Of a directory whose next recording has this number.
    pub(super) fn new(number: u32, key: u32) -> Record {
        Record {
            sequence: 0,
            number_first: number,
            number_next: number,
            epochs: 0,
            key,
            files: [None; RESERVED_MAX],
        }
    }

    /// The block whose turn it is.
    pub(super) fn place(&self) -> u32 {
        PLACES[(self.sequence % 2) as usize]
    }

    pub(super) fn encode(&self, block: &mut Block) {
        block.fill(0);
        block[..MAGIC.len()].copy_from_slice(&MAGIC);
        for (at, value) in [
            (SEQUENCE_AT, self.sequence),
            (NUMBER_FIRST_AT, self.number_first),
            (NUMBER_NEXT_AT, self.number_next),
            (EPOCHS_AT, self.epochs),
            (KEY_AT, self.key),
        ] {
            put(block, at, value);
        }
        let (table, _) = block[TABLE_AT..].as_chunks_mut::<FILE_BYTES>();
        for (file, bytes) in self.files.iter().zip(table) {
            let Some(file) = file else { continue };
            bytes[..11].copy_from_slice(&file.name);
            bytes[11] = u8::from(file.is_made);
            put(bytes, 12, file.blocks);
            put(bytes, 16, file.epoch);
            put(bytes, 20, file.note);
        }
        let crc = crc32(block);
        put(block, CRC_AT, crc);
    }

    /// What a block holds, if it is as it was written.
    pub(super) fn decode(block: &Block) -> Option<Record> {
        let mut without_crc = *block;
        put(&mut without_crc, CRC_AT, 0);
        if !block.starts_with(&MAGIC) || get(block, CRC_AT) != crc32(&without_crc) {
            return None;
        }
        let (table, _) = block[TABLE_AT..].as_chunks::<FILE_BYTES>();
        Some(Record {
            sequence: get(block, SEQUENCE_AT),
            number_first: get(block, NUMBER_FIRST_AT),
            number_next: get(block, NUMBER_NEXT_AT),
            epochs: get(block, EPOCHS_AT),
            key: get(block, KEY_AT),
            files: core::array::from_fn(|slot| entry_of(&table[slot])),
        })
    }

    /// The record that was written last.
    pub(super) fn newest(blocks: &[Block; 2]) -> Option<Record> {
        let [first, second] = blocks.each_ref().map(Record::decode);
        match (first, second) {
            // The later one's number is ahead, also when it has wrapped.
            (Some(first), Some(second)) => {
                let is_later = second.sequence.wrapping_sub(first.sequence) < u32::MAX / 2;
                Some(if is_later { second } else { first })
            }
            (first, second) => first.or(second),
        }
    }
}

fn entry_of(bytes: &[u8; FILE_BYTES]) -> Option<Entry> {
    let entry = Entry {
        name: core::array::from_fn(|at| bytes[at]),
        is_made: bytes[11] != 0,
        blocks: get(bytes, 12),
        epoch: get(bytes, 16),
        note: get(bytes, 20),
    };
    let is_name = entry.name.iter().all(u8::is_ascii_alphanumeric);
    (is_name && entry.blocks > 0 && entry.blocks <= super::BLOCKS_MAX).then_some(entry)
}

fn put(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn get(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(core::array::from_fn(|index| bytes[at + index]))
}
