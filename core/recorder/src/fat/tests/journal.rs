//! The journal's file: its creation, the conditions under which it is used, and its removal.

use super::layout::boot;
use super::*;
use crate::fat::Error;
use crate::fat::record::{Record, get, put};
use crate::fat::root::JOURNAL;
use crate::volume::Volume;

/// Blocks of a journal, and the block of the second copy.
const BLOCKS: u32 = 129;
const SECOND: u32 = 64;
/// Length up to the end of the second copy.
const BYTES_MIN: u32 = 65 * 512;

/// Volumes with clusters of 1 to 128 blocks, with room for two journals of any layout.
fn shapes() -> [Shape; 5] {
    [
        (FatKind::Fat16, 400, 1),
        (FatKind::Fat16, 110, 4),
        (FatKind::Fat16, 14, 64),
        (FatKind::Fat16, 12, 128),
        (FatKind::Fat32, 110, 4),
    ]
    .map(|(kind, clusters, cluster_blocks)| Shape {
        kind,
        clusters,
        cluster_blocks,
        shift: 0,
    })
}

/// Mounts as far as the journal is concerned.
fn load(volume: &mut FatVolume, disk: &mut Disk) -> Result<(), Error<NoPower>> {
    (volume.record, volume.is_ready) = (Record::NEW, false);
    let seen = done(volume.survey_root(disk));
    poll(volume.load_journal(disk, &seen))?;
    match volume.record.intent {
        Intent::Nothing => Ok(()),
        _ => poll(volume.recover(disk)),
    }
}

/// Adds a journal with these clusters and this length.
fn put_journal(rig: &mut Rig, chain: &[u32], bytes: u32) {
    let at = place(rig.root_block(), 0);
    rig.disk
        .put_entry(at, short(&JOURNAL, 0x06, chain[0], bytes));
    rig.chain(chain);
}

/// Returns the attributes, the first cluster and the length in the journal's entry.
fn entry(rig: &Rig) -> (u8, u32, u32) {
    let entry = rig.disk.entry(place(rig.root_block(), 0));
    assert_eq!(entry[..11], JOURNAL);
    let first = u16::from_le_bytes([entry[26], entry[27]]);
    (entry[11], first.into(), get(&entry, 28))
}

/// Every other cluster from the given one on.
fn scattered(first: u32, count: u32) -> Vec<u32> {
    (0..count).map(|at| first + 2 * at).collect()
}

/// Writes FSInfo to block 0 (FAT specification, section 5).
pub(super) fn put_fs_info(rig: &mut Rig, free: u32) {
    rig.layout.fs_info = Some(0);
    let block = &mut rig.disk.blocks[0];
    put(block, 0, 0x4161_5252);
    put(block, 484, 0x6141_7272);
    put(block, 488, free);
    put(block, 508, 0xAA55_0000);
}

/// Returns all entries of the FAT of a volume with nothing but a new journal at this cluster.
fn with_journal(shape: Shape, first: u32) -> Vec<u32> {
    let mut rig = Rig::new(shape);
    let clusters: Vec<u32> = (first..first + BLOCKS.div_ceil(shape.cluster_blocks)).collect();
    rig.chain(&clusters);
    rig.table()
}

/// Checks that the volume has created its journal; returns the first cluster.
fn new_journal(rig: &Rig, volume: &FatVolume, shape: Shape) -> u32 {
    let first = volume.record.journal;
    let clusters = BLOCKS.div_ceil(shape.cluster_blocks);
    let bytes = clusters * shape.cluster_blocks * 512;
    assert_eq!(entry(rig), (0x06, first, bytes), "{shape:?}");
    let start = rig.layout.block_of(first);
    assert_eq!(volume.copies, [start, start + SECOND]);
    assert_eq!(volume.record.journal, first);
    for copy in volume.copies {
        let block = &rig.disk.blocks[copy as usize];
        assert!(block.starts_with(b"CARDIOJ3"), "{shape:?}");
    }
    first
}

#[test]
fn a_journal_is_created_and_found_again() {
    for shape in shapes() {
        let mut rig = Rig::new(shape);
        let mut volume = rig.volume();
        load(&mut volume, &mut rig.disk).unwrap();
        let first = new_journal(&rig, &volume, shape);
        assert_eq!(rig.table(), with_journal(shape, first));
        let hint = first + BLOCKS.div_ceil(shape.cluster_blocks);
        assert_eq!(volume.record.hint, hint);
        let sequence = volume.record.sequence;
        rig.disk.writes.clear();
        let mut volume = rig.volume();
        load(&mut volume, &mut rig.disk).unwrap();
        assert_eq!(volume.record.sequence, sequence, "another journal was made");
        assert!(rig.disk.writes.is_empty());
    }
}

/// The entry is written before the chain, and the operation is in the second copy.
#[test]
fn an_interrupted_creation_is_completed() {
    for shape in shapes() {
        let mut rig = Rig::new(shape);
        let mut volume = rig.volume();
        let empty = rig.table();
        let seen = done(volume.survey_root(&mut rig.disk));
        done(volume.load_journal(&mut rig.disk, &seen));
        assert_eq!(rig.table(), empty, "the chain comes last");
        let mut volume = rig.volume();
        load(&mut volume, &mut rig.disk).unwrap();
        let first = new_journal(&rig, &volume, shape);
        assert_eq!(rig.table(), with_journal(shape, first));
    }
}

/// Without a free entry, a cluster after the journal extends the root directory.
#[test]
fn a_full_root_directory_grows_for_the_journal() {
    for (clusters, cluster_blocks) in [(110, 4), (12, 64), (12, 128)] {
        let shape = Shape {
            kind: FatKind::Fat32,
            clusters,
            cluster_blocks,
            shift: 0,
        };
        let mut rig = Rig::new(shape);
        for block in rig.root_block()..rig.root_block() + cluster_blocks {
            for at in 0..16 {
                let entry = short(&SHORT, 0x20, 0, 0);
                rig.disk.put_entry(place(block, at), entry);
            }
        }
        // A run that is one cluster too short, then one that is long enough.
        let journal = BLOCKS.div_ceil(cluster_blocks);
        let used = 3 + journal;
        rig.chain(&[used]);
        put_fs_info(&mut rig, clusters - 2);
        let mut volume = rig.volume();
        load(&mut volume, &mut rig.disk).unwrap();
        assert_eq!(volume.record.free, Some(clusters - 2 - journal - 1));
        let (first, new) = (used + 1, used + 1 + journal);
        assert_eq!(volume.record.journal, first, "{shape:?}");
        let mut expected = with_journal(shape, first);
        (expected[2], expected[new as usize]) = (new, rig.end());
        expected[used as usize] = rig.end();
        assert_eq!(rig.table(), expected, "{shape:?}");
        let block = rig.layout.block_of(new);
        let entry = rig.disk.entry(place(block, 0));
        assert_eq!(entry[..12], *b"CARDIOGRJNL\x06");
        assert_eq!(rig.disk.entry(place(block, 1)), [0; 32]);
    }
}

/// Each recording of version 0.1 has taken a number and an epoch.
#[test]
fn epochs_of_a_new_journal_begin_above_the_numbers_of_version_0_1() {
    for (names, highest) in [
        (&[][..], 0),
        (&[*b"LOG00007CSV"], 7),
        (&[*b"LOG00012CSV", *b"ABC00040BIN", *b"NOTES   TXT"], 40),
    ] {
        let mut disk = Disk {
            blocks: vec![[0; 512]; super::layout::BLOCKS as usize],
            left: u32::MAX,
            reads: Vec::new(),
            writes: Vec::new(),
        };
        disk.blocks[0] = boot(false, 2);
        let root = Layout::of::<NoPower>(&disk.blocks[0], 0, super::layout::BLOCKS);
        let Root::Fixed { start, .. } = root.unwrap().root else {
            panic!("a FAT16 volume");
        };
        for (at, name) in names.iter().enumerate() {
            disk.put_entry(place(start, at), short(name, 0x20, 0, 0));
        }
        let mut volume = FatVolume::new(|| DosTime::NO_CLOCK, 0);
        done(volume.mount(&mut disk));
        assert_eq!(volume.record.epochs, highest + 1);
    }
}

/// Returns true if the volume uses this file, whose clusters need not be consecutive; false if it replaces it.
fn is_used(rig: &Rig, chain: &[u32]) -> bool {
    let mut rig = rig.clone();
    let (before, table) = (entry(&rig), rig.table());
    let mut volume = rig.volume();
    load(&mut volume, &mut rig.disk).unwrap();
    if (entry(&rig), rig.table()) != (before, table) {
        new_journal(&rig, &volume, shape_of(&rig));
        return false;
    }
    let blocks = rig.layout.cluster_blocks;
    let second = rig.layout.block_of(chain[(SECOND / blocks) as usize]) + SECOND % blocks;
    assert_eq!(volume.copies, [rig.layout.block_of(chain[0]), second]);
    assert!(rig.disk.blocks[second as usize].starts_with(b"CARDIOJ3"));
    true
}

fn shape_of(rig: &Rig) -> Shape {
    Shape {
        kind: rig.layout.kind,
        clusters: rig.layout.clusters_end - 2,
        cluster_blocks: rig.layout.cluster_blocks,
        shift: 0,
    }
}

#[test]
fn a_copied_journal_is_used_if_its_chain_has_its_length() {
    for shape in shapes() {
        let cluster_bytes = shape.cluster_blocks * 512;
        let whole = BLOCKS.div_ceil(shape.cluster_blocks);
        let least = BYTES_MIN.div_ceil(cluster_bytes);
        for (count, bytes, expected) in [
            (whole, whole * cluster_bytes, true),
            (whole, BLOCKS * 512, true),
            (least, BYTES_MIN, true),
            (least, BYTES_MIN - 1, false),
            (whole + 1, whole * cluster_bytes, false),
            (whole + 1, (whole + 2) * cluster_bytes, false),
            (1, whole * cluster_bytes, false),
        ] {
            let mut rig = Rig::new(shape);
            let chain = scattered(3, count);
            put_journal(&mut rig, &chain, bytes);
            assert_eq!(
                is_used(&rig, &chain),
                expected,
                "{shape:?}, {count}, {bytes}"
            );
        }
        // The first cluster, or a link, does not exist.
        for outside in [shape.clusters + 2, shape.clusters + 3] {
            let mut rig = Rig::new(shape);
            let mut chain = scattered(3, whole + 1);
            chain[whole as usize] = outside;
            put_journal(&mut rig, &chain, (whole + 1) * cluster_bytes);
            assert!(!is_used(&rig, &chain), "{shape:?}, {outside}");
        }
        for first in [0, 1, shape.clusters + 2, 0xFFFF] {
            let mut rig = Rig::new(shape);
            put_journal(&mut rig, &[3], whole * cluster_bytes);
            let at = place(rig.root_block(), 0);
            rig.disk
                .put_entry(at, short(&JOURNAL, 0x06, first, whole * cluster_bytes));
            assert!(!is_used(&rig, &[first]), "{shape:?}, {first}");
        }
    }
}

/// A program that only reads needs a journal with a record of this volume.
#[test]
fn a_volume_that_only_reads_makes_no_journal() {
    let shape = shapes()[1];
    for (bytes, serial, expected) in [
        (0, 0, Err(Error::NoJournal)),
        (BYTES_MIN, 0, Ok(())),
        (BYTES_MIN, 1, Err(Error::ForeignJournal)),
        (BYTES_MIN - 1, 0, Err(Error::DamagedJournal)),
    ] {
        let mut rig = Rig::new(shape);
        let chain = scattered(3, BYTES_MIN.div_ceil(shape.cluster_blocks * 512));
        if bytes > 0 {
            put_journal(&mut rig, &chain, bytes);
        }
        let mut volume = rig.volume().with_journal_only();
        let record = Record {
            journal: chain[0],
            sequence: 4,
            epochs: 9,
            ..Record::NEW
        };
        let layout = Layout {
            serial,
            ..rig.layout
        };
        let copy = rig.layout.block_of(chain[0]) as usize;
        record.encode(&layout, &mut rig.disk.blocks[copy]);
        assert_eq!(
            load(&mut volume, &mut rig.disk),
            expected,
            "{bytes}, {serial}"
        );
        assert!(rig.disk.writes.is_empty());
        if expected == Ok(()) {
            assert_eq!(volume.record.epochs, 9);
        }
    }
}

#[test]
fn the_later_record_is_loaded() {
    let shape = shapes()[0];
    let chain = scattered(3, BYTES_MIN.div_ceil(512));
    for (sequences, is_damaged, epochs) in [
        ([5, 6], [false; 2], 200),
        ([7, 6], [false; 2], 100),
        ([u32::MAX, 0], [false; 2], 200),
        ([0, u32::MAX], [false; 2], 100),
        ([1 << 31, (1 << 31) - 1], [false; 2], 100),
        ([5, 6], [false, true], 100),
        ([7, 6], [true, false], 200),
    ] {
        let mut rig = Rig::new(shape);
        put_journal(&mut rig, &chain, BYTES_MIN);
        for at in [0, 1] {
            let record = Record {
                journal: chain[0],
                sequence: sequences[at],
                epochs: [100, 200][at],
                ..Record::NEW
            };
            let copy = rig.layout.block_of(chain[64 * at]) as usize;
            let block = &mut rig.disk.blocks[copy];
            record.encode(&rig.layout, block);
            block[500] ^= u8::from(is_damaged[at]);
        }
        let mut volume = rig.volume();
        load(&mut volume, &mut rig.disk).unwrap();
        assert_eq!(volume.record.epochs, epochs, "{sequences:?}");
    }
}

/// A file that cannot be the journal is replaced. Its clusters are freed if all of them are certainly its own.
#[test]
fn a_file_that_cannot_be_the_journal_is_removed() {
    const CLUSTERS: u32 = 10;
    for shape in [shapes()[0], shapes()[1]] {
        for (chain, is_claimed, is_freed) in [
            ((10..20).collect(), false, true),
            ((10..20).collect(), true, false),
            (scattered(10, CLUSTERS), false, false),
        ] {
            let mut rig = Rig::new(shape);
            let free = shape.clusters - CLUSTERS;
            put_fs_info(&mut rig, free);
            put_journal(&mut rig, &chain, CLUSTERS * shape.cluster_blocks * 512);
            if is_claimed {
                let claim = short(&SHORT, 0x20, chain[2], 100);
                rig.disk.put_entry(place(rig.root_block(), 1), claim);
            }
            let before = rig.table();
            let mut volume = rig.volume();
            load(&mut volume, &mut rig.disk).unwrap();
            let first = new_journal(&rig, &volume, shape);
            let mut expected = with_journal(shape, first);
            for (new, old) in expected.iter_mut().zip(before) {
                if !is_freed && *new == 0 {
                    *new = old;
                }
            }
            assert_eq!(rig.table(), expected, "{chain:?}, {is_claimed}");
            let freed = if is_freed { CLUSTERS } else { 0 };
            let left = free + freed - BLOCKS.div_ceil(shape.cluster_blocks);
            assert_eq!(volume.record.free, Some(left), "{chain:?}, {is_claimed}");
        }
    }
}

/// A file that another program has created under this name stays as it is. Without the attributes of the recorder's files,
/// only a record shows that a file is a journal.
#[test]
fn a_file_of_another_program_with_the_journals_name_is_left_alone() {
    for shape in shapes() {
        let cluster_bytes = shape.cluster_blocks * 512;
        let whole = BLOCKS.div_ceil(shape.cluster_blocks);
        for (count, bytes, attributes) in [
            (1, 0, 0x20),
            (1, 20, 0x20),
            (1, 20, 0x22),
            (whole, whole * cluster_bytes, 0x20),
            (whole, whole * cluster_bytes, 0x24),
            (whole + 1, 7, 0x20),
            (1, 0, 0x10),
        ] {
            let mut rig = Rig::new(shape);
            put_journal(&mut rig, &scattered(3, count), bytes);
            let at = place(rig.root_block(), 0);
            let first = if bytes > 0 || attributes == 0x10 {
                3
            } else {
                0
            };
            rig.disk
                .put_entry(at, short(&JOURNAL, attributes, first, bytes));
            for block in rig.blocks_of(3) {
                rig.disk.blocks[block as usize].fill(b'x');
            }
            let before = rig.disk.blocks.clone();
            let error = load(&mut rig.volume(), &mut rig.disk).unwrap_err();
            assert_eq!(error, Error::NameTaken(JOURNAL), "{bytes}, {attributes}");
            assert!(rig.disk.blocks == before, "{bytes}, {attributes}");
            // A computer may have copied a journal without its attributes.
            if bytes == whole * cluster_bytes {
                let block = rig.layout.block_of(3) as usize;
                let record = Record {
                    journal: 77,
                    epochs: 9,
                    ..Record::NEW
                };
                record.encode(&rig.layout, &mut rig.disk.blocks[block]);
                let mut volume = rig.volume();
                load(&mut volume, &mut rig.disk).unwrap();
                assert_eq!((volume.record.journal, volume.record.epochs), (3, 9));
            }
        }
    }
}

#[test]
fn an_operation_is_recorded_before_it_begins() {
    let mut rig = Rig::new(shapes()[0]);
    let mut volume = rig.volume();
    let copies = volume.copies;
    volume.record.sequence = 6;
    done(volume.begin(&mut rig.disk, Intent::Discard { slot: 3 }));
    assert!(!volume.is_ready);
    assert_eq!(rig.disk.writes, [(copies[1], 1)]);
    let block = &rig.disk.blocks[copies[1] as usize];
    assert_eq!((block[8], block[9], get(block, 12)), (3, 3, 7));
    done(volume.done_unchanged(&mut rig.disk));
    assert!(volume.is_ready);
    let block = &rig.disk.blocks[copies[0] as usize];
    assert_eq!((block[8], get(block, 12)), (0, 8));
}

/// The count is used if all three signatures are right, and there are that many clusters.
#[test]
fn free_clusters_are_known_from_fs_info_alone() {
    let shape = shapes()[4];
    let free = |rig: &mut Rig| done(rig.volume().read_free(&mut rig.disk));
    let mut rig = Rig::new(shape);
    assert_eq!(free(&mut rig), None);
    for (count, is_known) in [
        (0, true),
        (1, true),
        (shape.clusters, true),
        (shape.clusters + 1, false),
        (u32::MAX, false),
    ] {
        put_fs_info(&mut rig, count);
        assert_eq!(free(&mut rig), is_known.then_some(count), "{count}");
    }
    for signature in [0, 484, 508] {
        put_fs_info(&mut rig, 7);
        assert_eq!(free(&mut rig), Some(7));
        rig.disk.blocks[0][signature + 1] ^= 0x10;
        assert_eq!(free(&mut rig), None, "the signature at {signature}");
        let before = rig.disk.blocks[0];
        done(rig.volume().write_free(&mut rig.disk, Some(3)));
        assert!(rig.disk.blocks[0] == before, "the signature at {signature}");
    }
}
