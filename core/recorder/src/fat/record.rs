//! What the journal says, and how a block holds it. docs/formats.md has it byte by byte.

use super::layout::Layout;
use crate::crc32::crc32;
use crate::volume::{Name, RESERVED_MAX};
use cardiograph_card::{BLOCK_BYTES, Block};
use hadris_fat_raw::{ENTRY_SIZE, FIRST_DATA_CLUSTER};

/// Blocks from the first place of the journal to the second: a write that fails takes no more of a
/// card's flash with it.
pub(super) const PLACE_STEP_BLOCKS: u32 = 64;
/// Blocks of the journal: both places, and as much behind the second as lies between them.
pub(super) const JOURNAL_BLOCKS: u32 = 2 * PLACE_STEP_BLOCKS + 1;

const MAGIC: [u8; 8] = *b"CARDIOJ1";
const INTENT_AT: usize = 8;
const SLOT_AT: usize = 9;
const SEQUENCE_AT: usize = 12;
const CRC_AT: usize = 16;
const SERIAL_AT: usize = 20;
const JOURNAL_AT: usize = 24;
const FIRST_AT: usize = 28;
const SECOND_AT: usize = 32;
const NUMBER_FIRST_AT: usize = 36;
const NUMBER_NEXT_AT: usize = 40;
const EPOCHS_AT: usize = 44;
const FREE_AT: usize = 48;
const HINT_AT: usize = 52;
const FILE_AT: usize = 64;
const TABLE_AT: usize = FILE_AT + FILE_BYTES;
const FILE_BYTES: usize = 32;
const _: () = assert!(TABLE_AT + RESERVED_MAX * FILE_BYTES <= BLOCK_BYTES);

/// What FSInfo and the journal say where a count is not known.
pub(super) const UNKNOWN: u32 = 0xFFFF_FFFF;

/// Entries of a directory in a block.
pub(super) const ENTRIES_OF_BLOCK: usize = BLOCK_BYTES / ENTRY_SIZE;

/// Where an entry of a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Block of the card.
    pub(super) block: u32,
    /// Which of the block's entries, below [`ENTRIES_OF_BLOCK`].
    pub(super) index: u8,
}

/// A file of consecutive clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct File {
    pub(super) name: Name,
    pub(super) place: Place,
    /// The first cluster, or 0 if there is none.
    pub(super) first: u32,
    pub(super) clusters: u32,
    pub(super) epoch: u32,
    pub(super) note: u32,
}

/// What is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    Nothing,
    /// A file gets its chain, then its entry.
    Reserve(File),
    /// The file in this slot gets its length, then loses the rest of its chain.
    Close {
        slot: u8,
        bytes: u32,
    },
    /// The file in this slot loses its entry, then its chain.
    Discard {
        slot: u8,
    },
    /// This file does.
    Remove(File),
    /// The root directory gets another cluster behind its last.
    ExtendRoot {
        last: u32,
        new: u32,
    },
    /// The journal's own file has its entry and gets its chain. If the root directory was full the
    /// entry is in a cluster that is new to it, and linked to its last; else both are 0.
    MakeJournal {
        last: u32,
        new: u32,
    },
}

/// What a place of the journal holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// One more with each write.
    pub(super) sequence: u32,
    /// First cluster of the journal's file.
    pub(super) journal: u32,
    pub(super) intent: Intent,
    /// The next number when this journal was made.
    pub(super) number_first: u32,
    /// Number of the next name.
    pub(super) number_next: u32,
    /// Epochs that were given out.
    pub(super) epochs: u32,
    /// Free clusters before the intent, if FSInfo says.
    pub(super) free: Option<u32>,
    /// Where free clusters are looked for first.
    pub(super) hint: u32,
    /// The unfinished files.
    pub(super) reserved: [Option<File>; RESERVED_MAX],
}

impl Record {
    pub(super) const NEW: Record = Record {
        sequence: 0,
        journal: 0,
        intent: Intent::Nothing,
        number_first: 1,
        number_next: 1,
        epochs: 0,
        free: None,
        hint: FIRST_DATA_CLUSTER,
        reserved: [None; RESERVED_MAX],
    };

    /// Puts it into a block.
    pub(super) fn encode(&self, layout: &Layout, block: &mut Block) {
        block.fill(0);
        block[..MAGIC.len()].copy_from_slice(&MAGIC);
        let (kind, slot, first, second, file) = match self.intent {
            Intent::Nothing => (0, 0, 0, 0, None),
            Intent::Reserve(file) => (1, 0, 0, 0, Some(file)),
            Intent::Close { slot, bytes } => (2, slot, bytes, 0, None),
            Intent::Discard { slot } => (3, slot, 0, 0, None),
            Intent::Remove(file) => (4, 0, 0, 0, Some(file)),
            Intent::ExtendRoot { last, new } => (5, 0, last, new, None),
            Intent::MakeJournal { last, new } => (6, 0, last, new, None),
        };
        block[INTENT_AT] = kind;
        block[SLOT_AT] = slot;
        for (at, value) in [
            (SEQUENCE_AT, self.sequence),
            (SERIAL_AT, layout.serial),
            (JOURNAL_AT, self.journal),
            (FIRST_AT, first),
            (SECOND_AT, second),
            (NUMBER_FIRST_AT, self.number_first),
            (NUMBER_NEXT_AT, self.number_next),
            (EPOCHS_AT, self.epochs),
            (FREE_AT, self.free.unwrap_or(UNKNOWN)),
            (HINT_AT, self.hint),
        ] {
            put(block, at, value);
        }
        encode_file(file, &mut block[FILE_AT..TABLE_AT]);
        let (table, _) = block[TABLE_AT..].as_chunks_mut::<FILE_BYTES>();
        for (file, bytes) in self.reserved.iter().zip(table) {
            encode_file(*file, bytes);
        }
        let crc = checksum(block);
        put(block, CRC_AT, crc);
    }

    /// What a block holds, if it is a whole record of a journal on this volume that begins with this
    /// cluster.
    pub(super) fn decode(block: &Block, layout: &Layout, journal: u32) -> Option<Record> {
        if !is_whole(block)
            || get(block, SERIAL_AT) != layout.serial
            || get(block, JOURNAL_AT) != journal
        {
            return None;
        }
        let (first, second) = (get(block, FIRST_AT), get(block, SECOND_AT));
        let file = || decode_file(&block[FILE_AT..TABLE_AT], layout);
        let slot = block[SLOT_AT];
        let are_clusters = layout.has(first, 1) && layout.has(second, 1);
        let intent = match block[INTENT_AT] {
            0 => Intent::Nothing,
            1 => Intent::Reserve(file().filter(|file| file.clusters > 0)?),
            2 => Intent::Close { slot, bytes: first },
            3 => Intent::Discard { slot },
            4 => Intent::Remove(file()?),
            5 if are_clusters => Intent::ExtendRoot {
                last: first,
                new: second,
            },
            6 if are_clusters || (first, second) == (0, 0) => Intent::MakeJournal {
                last: first,
                new: second,
            },
            _ => return None,
        };
        let free = get(block, FREE_AT);
        let (table, _) = block[TABLE_AT..].as_chunks::<FILE_BYTES>();
        Some(Record {
            sequence: get(block, SEQUENCE_AT),
            journal,
            intent,
            number_first: get(block, NUMBER_FIRST_AT),
            number_next: get(block, NUMBER_NEXT_AT),
            epochs: get(block, EPOCHS_AT),
            free: (free != UNKNOWN).then_some(free),
            hint: get(block, HINT_AT),
            reserved: core::array::from_fn(|slot| {
                decode_file(&table[slot], layout).filter(|file| file.clusters > 0)
            }),
        })
    }

    /// The file in a slot.
    pub(super) fn file(&self, slot: u8) -> Option<File> {
        self.reserved.get(usize::from(slot)).copied().flatten()
    }
}

/// Whether a block is a record of any journal, as it was written.
pub(super) fn is_whole(block: &Block) -> bool {
    block.starts_with(&MAGIC) && get(block, CRC_AT) == checksum(block)
}

/// The number that a record has in order of writing.
pub(super) fn sequence_of(block: &Block) -> u32 {
    get(block, SEQUENCE_AT)
}

/// Epochs that a record says were given out.
pub(super) fn epochs_of(block: &Block) -> u32 {
    get(block, EPOCHS_AT)
}

fn encode_file(file: Option<File>, bytes: &mut [u8]) {
    let Some(file) = file else { return };
    bytes[..11].copy_from_slice(&file.name);
    bytes[11] = file.place.index;
    put(bytes, 12, file.place.block);
    put(bytes, 16, file.first);
    put(bytes, 20, file.clusters);
    put(bytes, 24, file.epoch);
    put(bytes, 28, file.note);
}

fn decode_file(bytes: &[u8], layout: &Layout) -> Option<File> {
    let file = File {
        name: core::array::from_fn(|at| bytes[at]),
        place: Place {
            block: get(bytes, 12),
            index: bytes[11],
        },
        first: get(bytes, 16),
        clusters: get(bytes, 20),
        epoch: get(bytes, 24),
        note: get(bytes, 28),
    };
    let is_empty = file.first == 0 && file.clusters == 0;
    let is_possible = file.name[0] != 0
        && usize::from(file.place.index) < ENTRIES_OF_BLOCK
        && layout.is_block(file.place.block)
        && (is_empty || layout.has(file.first, file.clusters))
        && file.clusters <= u32::MAX / layout.cluster_bytes();
    is_possible.then_some(file)
}

pub(super) fn put(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

pub(super) fn get(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(core::array::from_fn(|index| bytes[at + index]))
}

/// CRC-32 over a block, its own place taken as zeros.
fn checksum(block: &Block) -> u32 {
    let before = crc32(0, &block[..CRC_AT]);
    crc32(crc32(before, &[0; 4]), &block[CRC_AT + 4..])
}
