//! Records of the journal and their encoding; docs/formats.md documents it byte by byte.

use super::guest_record::{self, FirstRun, NamePlace, Target, WholeChain};
use super::layout::Layout;
use super::names::{HIDDEN_NAMES, hidden_name, number_of, upload_name};
use super::root::JOURNAL;
use super::upload::UPLOADS_MAX;
use crate::crc32::crc32;
use crate::volume::{FileId, Name, RESERVED_MAX, name_of};
use cardiograph_card::{BLOCK_BYTES, Block};
use hadris_fat_raw::{ENTRY_SIZE, FIRST_DATA_CLUSTER};

/// Blocks from the journal's first copy to the second, so that a failed write does not damage both.
pub(super) const COPY_STEP_BLOCKS: u32 = 64;
/// Blocks of the journal: two copies [`COPY_STEP_BLOCKS`] apart, and the same number of blocks after the second.
pub(super) const JOURNAL_BLOCKS: u32 = 2 * COPY_STEP_BLOCKS + 1;

/// Every record begins with these bytes and its version.
const MAGIC: [u8; 7] = *b"CARDIOJ";
const VERSION_AT: usize = MAGIC.len();
/// Version of the recorder 0.1, which stored names instead of numbers and had no series.
const VERSION_0_1: u8 = b'1';
/// Last version with addresses of the card. They are wrong once the volume begins at another block.
const VERSION_OF_CARD: u8 = b'2';
/// Current version, with addresses relative to the boot sector.
const VERSION: u8 = b'3';
const INTENT_AT: usize = 8;
const SLOT_AT: usize = 9;
const SEQUENCE_AT: usize = 12;
const CRC_AT: usize = 16;
const SERIAL_AT: usize = 20;
const JOURNAL_AT: usize = 24;
const FIRST_AT: usize = 28;
const SECOND_AT: usize = 32;
const DATA_AT: usize = 36;
const CLUSTER_BLOCKS_AT: usize = 40;
const EPOCHS_AT: usize = 44;
const FREE_AT: usize = 48;
const HINT_AT: usize = 52;
pub(super) const FILE_AT: usize = 64;
const TABLE_AT: usize = FILE_AT + FILE_BYTES;
const FILE_BYTES: usize = 32;
const SERIES_AT: usize = TABLE_AT + RESERVED_MAX * FILE_BYTES;
const SERIES_BYTES: usize = 16;
const _: () = assert!(SERIES_AT + SERIES_MAX * SERIES_BYTES <= BLOCK_BYTES);

/// Number of prefixes whose numbers the journal stores; those of unfinished files are always among them.
pub(super) const SERIES_MAX: usize = RESERVED_MAX;

/// Value that FSInfo and the journal contain if the number of free clusters is unknown.
pub(super) const UNKNOWN: u32 = 0xFFFF_FFFF;

/// Directory entries per block.
pub(super) const ENTRIES_OF_BLOCK: usize = BLOCK_BYTES / ENTRY_SIZE;

/// Position of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Block address on the card.
    pub(super) block: u32,
    /// Index of the entry in the block, below [`ENTRIES_OF_BLOCK`].
    pub(super) index: u8,
}

/// Purpose of a run of clusters, which determines its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Space under a hidden entry in the root directory; the number is part of that entry's name.
    Prepared,
    /// A recording with its number, in its folder.
    Named,
    /// A recording reserved by version 0.1, in the root directory.
    Version0_1,
    /// A folder and its index; the number is the folder's.
    Folder,
    /// The journal itself.
    Journal,
    /// A file that a guest is writing, under a hidden entry; the number is part of that entry's name.
    Upload,
}

/// A file or folder of consecutive clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct File {
    pub(super) kind: Kind,
    pub(super) prefix: [u8; 3],
    pub(super) extension: [u8; 3],
    pub(super) number: u32,
    pub(super) place: Place,
    /// The first cluster; 0 if there is none.
    pub(super) first: u32,
    pub(super) clusters: u32,
    pub(super) epoch: u32,
    pub(super) note: u32,
}

impl File {
    /// Returns the name in its directory entry.
    pub(super) fn name(&self) -> Name {
        match self.kind {
            Kind::Prepared => hidden_name(self.number),
            Kind::Named => self.file_id().short_name(),
            Kind::Version0_1 => name_of(self.prefix, self.number, self.extension),
            Kind::Folder => name_of(self.prefix, self.number, *b"   "),
            Kind::Journal => JOURNAL,
            Kind::Upload => upload_name(self.number),
        }
    }

    /// Returns the identity of the recording, if it is named.
    pub(super) fn id(&self) -> Option<FileId> {
        matches!(self.kind, Kind::Named | Kind::Version0_1).then_some(self.file_id())
    }

    fn file_id(&self) -> FileId {
        FileId {
            prefix: self.prefix,
            extension: self.extension,
            number: self.number,
        }
    }
}

/// Numbering of the recordings with one prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Series {
    pub(super) prefix: [u8; 3],
    /// True if `folder` is known.
    pub(super) has_folder: bool,
    /// Number of the next recording.
    pub(super) next: u32,
    /// Lower bound of the numbers of finished recordings in the index.
    pub(super) low: u32,
    /// Number and first cluster of the most recently used folder. The journal does not store it.
    pub(super) folder: (u32, u32),
}

/// The operation in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    Nothing,
    /// Writes a file's chain, then its entry.
    Reserve(File),
    /// Sets the length of the file in this slot, then frees the rest of its chain.
    Close {
        slot: u8,
        bytes: u32,
    },
    /// Deletes the entry of the file in this slot, then frees its chain.
    Discard {
        slot: u8,
    },
    /// Deletes the entry of this file, then frees its chain.
    Remove(File),
    /// Appends a cluster to a directory.
    ExtendDirectory {
        last: u32,
        new: u32,
    },
    /// Writes the chain of the journal's own file, whose entry exists. If the root directory was full, the
    /// entry is in the new cluster `new`, which is linked to `last`; otherwise both are 0.
    MakeJournal {
        last: u32,
        new: u32,
    },
    /// Adds the folder entry of the file in this slot, then deletes its hidden entry.
    Name {
        slot: u8,
        file: File,
    },
    /// Writes a folder's chain, then its entry.
    MakeFolder(File),
    /// Deletes the entry of an empty folder, then frees its chain.
    RemoveFolder(File),
    /// Deletes a name, or ends a chain at cluster `end`, and frees the first run of a chain. Later records
    /// free the rest.
    Erase {
        name: Option<NamePlace>,
        end: u32,
        run: FirstRun,
    },
    /// Writes an entry with this first cluster, deletes another, and frees the chain that the entry had
    /// before. If the entry is a directory, its `..` receives the cluster of the new parent.
    Move {
        from: Option<NamePlace>,
        to: Target,
        first: u32,
        parent: u32,
        old: WholeChain,
    },
    /// Appends a run to an upload that ends with cluster `last`.
    Grow {
        last: u32,
        first: u32,
        clusters: u32,
    },
    /// Writes the chain of a directory, one cluster, then its name.
    MakeDirectory {
        to: Target,
        first: u32,
    },
}

impl Intent {
    /// Returns the file or folder that the operation stores itself.
    pub(super) fn file(&self) -> Option<File> {
        match *self {
            Intent::Reserve(file)
            | Intent::Remove(file)
            | Intent::Name { file, .. }
            | Intent::MakeFolder(file)
            | Intent::RemoveFolder(file) => Some(file),
            _ => None,
        }
    }
}

/// A record of the journal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// Sequence number, incremented with each write.
    pub(super) sequence: u32,
    /// First cluster of the journal's file.
    pub(super) journal: u32,
    pub(super) intent: Intent,
    /// Number of epochs used so far.
    pub(super) epochs: u32,
    /// Number of free clusters before the operation, if FSInfo knows it.
    pub(super) free: Option<u32>,
    /// Cluster at which the next search for free clusters begins.
    pub(super) hint: u32,
    /// The unfinished files.
    pub(super) reserved: [Option<File>; RESERVED_MAX],
    /// Known prefixes, most recent first.
    pub(super) series: [Option<Series>; SERIES_MAX],
}

impl Record {
    pub(super) const NEW: Record = Record {
        sequence: 0,
        journal: 0,
        intent: Intent::Nothing,
        epochs: 0,
        free: None,
        hint: FIRST_DATA_CLUSTER,
        reserved: [None; RESERVED_MAX],
        series: [None; SERIES_MAX],
    };

    /// Encodes the record into a block.
    pub(super) fn encode(&self, layout: &Layout, block: &mut Block) {
        block.fill(0);
        block[..VERSION_AT].copy_from_slice(&MAGIC);
        block[VERSION_AT] = VERSION;
        let (kind, slot, first, second) = match self.intent {
            Intent::Nothing => (0, 0, 0, 0),
            Intent::Reserve(_) => (1, 0, 0, 0),
            Intent::Close { slot, bytes } => (2, slot, bytes, 0),
            Intent::Discard { slot } => (3, slot, 0, 0),
            Intent::Remove(_) => (4, 0, 0, 0),
            Intent::ExtendDirectory { last, new } => (5, 0, last, new),
            Intent::MakeJournal { last, new } => (6, 0, last, new),
            Intent::Name { slot, .. } => (7, slot, 0, 0),
            Intent::MakeFolder(_) => (8, 0, 0, 0),
            Intent::RemoveFolder(_) => (9, 0, 0, 0),
            Intent::Erase { .. }
            | Intent::Move { .. }
            | Intent::Grow { .. }
            | Intent::MakeDirectory { .. } => (0, 0, 0, 0),
        };
        block[INTENT_AT] = kind;
        block[SLOT_AT] = slot;
        for (at, value) in [
            (SEQUENCE_AT, self.sequence),
            (SERIAL_AT, layout.serial),
            (JOURNAL_AT, self.journal),
            (FIRST_AT, first),
            (SECOND_AT, second),
            (DATA_AT, layout.relative(layout.data)),
            (CLUSTER_BLOCKS_AT, layout.cluster_blocks),
            (EPOCHS_AT, self.epochs),
            (FREE_AT, self.free.unwrap_or(UNKNOWN)),
            (HINT_AT, self.hint),
        ] {
            put(block, at, value);
        }
        encode_file(self.intent.file(), layout, &mut block[FILE_AT..TABLE_AT]);
        if let Some(kind) = guest_record::encode(&self.intent, layout, block) {
            block[INTENT_AT] = kind;
        }
        let (table, _) = block[TABLE_AT..SERIES_AT].as_chunks_mut::<FILE_BYTES>();
        for (file, bytes) in self.reserved.iter().zip(table) {
            encode_file(*file, layout, bytes);
        }
        let (table, _) = block[SERIES_AT..].as_chunks_mut::<SERIES_BYTES>();
        for (series, bytes) in self.series.iter().zip(table) {
            if let Some(series) = series {
                bytes[..3].copy_from_slice(&series.prefix);
                put(bytes, 4, series.next);
                put(bytes, 8, series.low);
            }
        }
        let crc = checksum(block);
        put(block, CRC_AT, crc);
    }

    /// Decodes a block, if it is a valid record of this volume's journal at this first cluster. `old_start` is the
    /// block at which the volume began when it wrote a record with addresses of the card.
    pub(super) fn decode(
        block: &Block,
        layout: &Layout,
        journal: u32,
        old_start: u32,
    ) -> Option<Record> {
        let is_of_card = has_card_addresses(block);
        let geometry = (get(block, DATA_AT), get(block, CLUSTER_BLOCKS_AT));
        let is_same =
            is_of_card || geometry == (layout.relative(layout.data), layout.cluster_blocks);
        if !is_whole(block)
            || !is_same
            || get(block, SERIAL_AT) != layout.serial
            || get(block, JOURNAL_AT) != journal
        {
            return None;
        }
        let moved = match is_of_card {
            true => layout.start.wrapping_sub(old_start),
            false => layout.start,
        };
        let (first, second) = (get(block, FIRST_AT), get(block, SECOND_AT));
        let is_old = block[VERSION_AT] == VERSION_0_1;
        let file_of = |bytes: &[u8]| decode_file(bytes, layout, moved, is_old);
        let file = || file_of(&block[FILE_AT..TABLE_AT]);
        let folder = || file().filter(|file| file.kind == Kind::Folder);
        let slot = block[SLOT_AT];
        let are_clusters = layout.has(first, 1) && layout.has(second, 1);
        let intent = match block[INTENT_AT] {
            0 => Intent::Nothing,
            1 => Intent::Reserve(file().filter(|file| file.clusters > 0)?),
            2 => Intent::Close { slot, bytes: first },
            3 => Intent::Discard { slot },
            4 => Intent::Remove(file()?),
            5 if are_clusters => Intent::ExtendDirectory {
                last: first,
                new: second,
            },
            6 if are_clusters || (first, second) == (0, 0) => Intent::MakeJournal {
                last: first,
                new: second,
            },
            // Files of version 0.1 are of none of these kinds.
            7 => Intent::Name {
                slot,
                file: file().filter(|file| file.kind == Kind::Named)?,
            },
            8 => Intent::MakeFolder(folder()?),
            9 => Intent::RemoveFolder(folder()?),
            number if !is_old => guest_record::decode(number, block, layout, moved)?,
            _ => return None,
        };
        let free = get(block, FREE_AT);
        let (table, _) = block[TABLE_AT..SERIES_AT].as_chunks::<FILE_BYTES>();
        let (series, _) = block[SERIES_AT..].as_chunks::<SERIES_BYTES>();
        Some(Record {
            sequence: get(block, SEQUENCE_AT),
            journal,
            intent,
            epochs: get(block, EPOCHS_AT),
            free: (free != UNKNOWN).then_some(free),
            hint: get(block, HINT_AT),
            reserved: core::array::from_fn(|slot| {
                let is_unfinished = |file: &File| !matches!(file.kind, Kind::Folder | Kind::Upload);
                file_of(&table[slot]).filter(|file| file.clusters > 0 && is_unfinished(file))
            }),
            series: core::array::from_fn(|at| decode_series(&series[at]).filter(|_| !is_old)),
        })
    }

    pub(super) fn file(&self, slot: u8) -> Option<File> {
        self.reserved.get(usize::from(slot)).copied().flatten()
    }
}

/// Returns true if a block is a valid record of any journal.
pub(super) fn is_whole(block: &Block) -> bool {
    let is_known =
        block.starts_with(&MAGIC) && (VERSION_0_1..=VERSION).contains(&block[VERSION_AT]);
    is_known && get(block, CRC_AT) == checksum(block)
}

/// Returns true if the addresses in a record are those of the card, not relative to the boot sector.
pub(super) fn has_card_addresses(block: &Block) -> bool {
    block[VERSION_AT] <= VERSION_OF_CARD
}

/// Returns the sequence number of a record.
pub(super) fn sequence_of(block: &Block) -> u32 {
    get(block, SEQUENCE_AT)
}

/// Returns the number of epochs used according to a record.
pub(super) fn epochs_of(block: &Block) -> u32 {
    get(block, EPOCHS_AT)
}

fn encode_file(file: Option<File>, layout: &Layout, bytes: &mut [u8]) {
    let Some(file) = file else { return };
    bytes[..3].copy_from_slice(&file.prefix);
    bytes[3..6].copy_from_slice(&file.extension);
    bytes[6] = match file.kind {
        Kind::Prepared => 1,
        Kind::Named => 2,
        Kind::Version0_1 => 3,
        Kind::Folder => 4,
        Kind::Journal => 0,
        Kind::Upload => 5,
    };
    put(bytes, 7, file.number);
    bytes[11] = file.place.index;
    put(bytes, 12, layout.relative(file.place.block));
    put(bytes, 16, file.first);
    put(bytes, 20, file.clusters);
    put(bytes, 24, file.epoch);
    put(bytes, 28, file.note);
}

/// Decodes a file. `moved` is added to the address of its entry.
fn decode_file(bytes: &[u8], layout: &Layout, moved: u32, is_old: bool) -> Option<File> {
    let name: Name = core::array::from_fn(|at| bytes[at]);
    let [a, b, c, d, e, f, kind, ..] = name;
    let (kind, extension, number) = match (is_old, kind) {
        (true, _) => (
            Kind::Version0_1,
            [name[8], name[9], name[10]],
            number_of(&name)?,
        ),
        (false, 1) => (Kind::Prepared, [d, e, f], get(bytes, 7)),
        (false, 2) => (Kind::Named, [d, e, f], get(bytes, 7)),
        (false, 3) => (Kind::Version0_1, [d, e, f], get(bytes, 7)),
        (false, 4) => (Kind::Folder, [d, e, f], get(bytes, 7)),
        (false, 5) => (Kind::Upload, [d, e, f], get(bytes, 7)),
        _ => return None,
    };
    let file = File {
        kind,
        prefix: [a, b, c],
        extension,
        number,
        place: Place {
            block: get(bytes, 12).wrapping_add(moved),
            index: bytes[11],
        },
        first: get(bytes, 16),
        clusters: get(bytes, 20),
        epoch: get(bytes, 24),
        note: get(bytes, 28),
    };
    let has_name = match kind {
        Kind::Prepared => file.number < HIDDEN_NAMES,
        Kind::Upload => file.number < UPLOADS_MAX as u32,
        Kind::Folder => file.clusters == layout.folder_clusters(),
        _ => file.file_id().is_valid(),
    };
    let is_empty = file.first == 0 && file.clusters == 0;
    let is_possible = has_name
        && usize::from(file.place.index) < ENTRIES_OF_BLOCK
        && layout.is_block(file.place.block)
        && (is_empty || layout.has(file.first, file.clusters))
        && file.clusters <= u32::MAX / layout.cluster_bytes();
    is_possible.then_some(file)
}

fn decode_series(bytes: &[u8]) -> Option<Series> {
    let prefix = [bytes[0], bytes[1], bytes[2]];
    prefix.iter().all(u8::is_ascii_uppercase).then(|| Series {
        prefix,
        has_folder: false,
        next: get(bytes, 4).max(1),
        low: get(bytes, 8),
        folder: (0, 0),
    })
}

pub(super) fn put(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

pub(super) fn get(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(core::array::from_fn(|index| bytes[at + index]))
}

/// Returns the CRC-32 of a block, with the checksum field taken as zeros.
fn checksum(block: &Block) -> u32 {
    let before = crc32(0, &block[..CRC_AT]);
    crc32(crc32(before, &[0; 4]), &block[CRC_AT + 4..])
}

#[cfg(test)]
pub(in crate::fat) mod tests {
    use super::super::layout::Root;
    use super::*;

    /// Clusters 2 to 999, in blocks 50 to 8,033; the root directory is in blocks 20 to 39.
    pub(in crate::fat) const LAYOUT: Layout = Layout {
        root: Root::Fixed {
            start: 20,
            blocks: 20,
        },
        data: 50,
        cluster_blocks: 8,
        clusters_end: 1000,
        ..Layout::NONE
    };

    /// Clusters of a folder's directory (335 blocks) and of its index (250 blocks).
    const FOLDER_CLUSTERS: u32 = 42 + 32;

    const FILE: File = File {
        kind: Kind::Named,
        prefix: *b"LOG",
        extension: *b"CSV",
        number: 12,
        place: Place {
            block: 60,
            index: 3,
        },
        first: 100,
        clusters: 50,
        epoch: 7,
        note: 1,
    };

    /// Returns true if the file is read as it was written; false if the record is refused.
    fn is_read(file: File) -> bool {
        let mut bytes = [0; FILE_BYTES];
        encode_file(Some(file), &LAYOUT, &mut bytes);
        let read = decode_file(&bytes, &LAYOUT, 0, false);
        assert!(read.is_none_or(|read| read == file), "{file:?}: {read:?}");
        read.is_some()
    }

    #[test]
    fn a_file_is_read_if_its_entry_and_its_clusters_exist() {
        assert!(is_read(FILE));
        for (block, index, is_possible) in [
            (19, 0, false),
            (20, 15, true),
            (20, 16, false),
            (39, 0, true),
            (40, 0, false),
            (49, 0, false),
            (50, 0, true),
            (50 + 998 * 8 - 1, 15, true),
            (50 + 998 * 8, 0, false),
        ] {
            let place = Place { block, index };
            assert_eq!(is_read(File { place, ..FILE }), is_possible, "{place:?}");
        }
        for (first, clusters, is_possible) in [
            (0, 0, true),
            (0, 1, false),
            (1, 1, false),
            (2, 0, true),
            (2, 998, true),
            (2, 999, false),
            (999, 1, true),
            (999, 2, false),
            (u32::MAX, 2, false),
        ] {
            let file = File {
                first,
                clusters,
                ..FILE
            };
            assert_eq!(is_read(file), is_possible, "{first}, {clusters}");
        }
    }

    #[test]
    fn a_file_is_read_if_its_kind_has_this_number() {
        for (kind, number, is_possible) in [
            (Kind::Prepared, 99, true),
            (Kind::Prepared, 100, false),
            (Kind::Upload, UPLOADS_MAX as u32 - 1, true),
            (Kind::Upload, UPLOADS_MAX as u32, false),
            (Kind::Named, 99_999_999, true),
            (Kind::Named, 100_000_000, false),
            (Kind::Version0_1, 99_999, true),
            (Kind::Folder, 5, false),
            (Kind::Journal, 0, false),
        ] {
            let file = File {
                kind,
                number,
                ..FILE
            };
            assert_eq!(is_read(file), is_possible, "{kind:?}, {number}");
        }
        for (clusters, is_possible) in [(-1, false), (0, true), (1, false)] {
            let file = File {
                kind: Kind::Folder,
                clusters: FOLDER_CLUSTERS.wrapping_add_signed(clusters),
                ..FILE
            };
            assert_eq!(is_read(file), is_possible, "{clusters}");
        }
    }

    #[test]
    fn a_file_of_4_gib_is_not_read() {
        let large = Layout {
            cluster_blocks: 128,
            clusters_end: 200_000,
            ..LAYOUT
        };
        for (clusters, is_possible) in [(65_535, true), (65_536, false)] {
            let mut bytes = [0; FILE_BYTES];
            encode_file(Some(File { clusters, ..FILE }), &large, &mut bytes);
            let read = decode_file(&bytes, &large, 0, false);
            assert_eq!(read.is_some(), is_possible, "{clusters} clusters");
        }
    }

    #[test]
    fn unfinished_files_have_clusters_and_are_neither_folders_nor_uploads() {
        let folder = File {
            kind: Kind::Folder,
            clusters: FOLDER_CLUSTERS,
            ..FILE
        };
        let upload = File {
            kind: Kind::Upload,
            number: 1,
            ..FILE
        };
        let empty = File {
            first: 0,
            clusters: 0,
            ..FILE
        };
        let prepared = File {
            kind: Kind::Prepared,
            ..FILE
        };
        for (file, is_unfinished) in [
            (FILE, true),
            (prepared, true),
            (folder, false),
            (upload, false),
            (empty, false),
        ] {
            let mut record = Record {
                journal: 3,
                ..Record::NEW
            };
            record.reserved[5] = Some(file);
            let mut block = [0; BLOCK_BYTES];
            record.encode(&LAYOUT, &mut block);
            let read = Record::decode(&block, &LAYOUT, 3, 0).unwrap();
            let expected = is_unfinished.then_some(file);
            assert_eq!(read.file(5), expected, "{:?}", file.kind);
            assert_eq!(epochs_of(&block), record.epochs);
        }
    }

    #[test]
    fn the_number_of_epochs_is_in_the_record() {
        for epochs in [0, 1, 7, u32::MAX] {
            let record = Record {
                epochs,
                ..Record::NEW
            };
            let mut block = [0; BLOCK_BYTES];
            record.encode(&LAYOUT, &mut block);
            assert!(is_whole(&block));
            assert_eq!(epochs_of(&block), epochs);
            block[EPOCHS_AT] ^= 1;
            assert!(!is_whole(&block), "the checksum is wrong");
        }
    }
}
