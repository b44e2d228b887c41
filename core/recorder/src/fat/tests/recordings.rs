//! Power cuts in the recorder's own operations, on a small volume: recovery finds each done or not begun.

use super::folder::rec;
use super::guests::{Tree, tree};
use super::journal::put_fs_info;
use super::*;
use crate::fat::Error;
use crate::fat::record::{Record, get};
use crate::volume::{FileId, FileRecord, Request, Volume};

/// Clusters of a folder: 335 of its directory, and 250 of its index.
pub(super) const FOLDER: u32 = 585;
const INDEX_AT: u32 = 335;
const REQUEST: Request = Request {
    prefix: *b"REC",
    extension: *b"CSV",
    blocks: 6,
    blocks_min: 2,
    shares: 1,
    note: 0,
};

/// An operation, after others that prepare it.
pub(super) struct Operation {
    pub(super) title: &'static str,
    pub(super) prepare: fn(&mut FatVolume, &mut Disk),
    pub(super) run: fn(&mut FatVolume, &mut Disk) -> Result<(), Error<NoPower>>,
}

/// All that remains of the operations on a card.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    pub(super) tree: Tree,
    /// Slots, first clusters and names of unfinished files.
    pub(super) unfinished: Vec<(usize, u32, Option<FileId>)>,
    pub(super) next: u32,
    /// Numbers in the index, modulo 1000.
    pub(super) listed: Vec<usize>,
}

pub(super) fn new_rig(kind: FatKind) -> Rig {
    let mut rig = Rig::new(Shape {
        kind,
        clusters: FOLDER + 55,
        cluster_blocks: 1,
        shift: 0,
    });
    // Files that were deleted.
    let (data, end) = (rig.layout.data as usize, rig.journal() as usize);
    let root = if kind == FatKind::Fat32 { 1 } else { 0 };
    rig.disk.blocks[data + root..end].fill([0x77; 512]);
    let free = rig.table().iter().filter(|it| **it == 0).count();
    put_fs_info(&mut rig, free as u32);
    rig
}

/// Returns the newest record of the journal.
pub(super) fn newest(rig: &Rig) -> Option<Record> {
    let copies = rig.volume().copies;
    let copies = copies.map(|block| rig.disk.blocks[block as usize]);
    let records = copies.iter();
    let records = records.filter_map(|block| Record::decode(block, &rig.layout, 0, 0));
    records.max_by_key(|record| record.sequence)
}

/// Does what a mount does with the files of the recorder: continues with the newest record.
pub(super) fn mount(rig: &mut Rig) -> Result<FatVolume, Error<NoPower>> {
    let mut volume = rig.volume();
    volume.record.series[0] = Some(series(*b"REC", 3000));
    if let Some(newest) = newest(rig) {
        volume.record = newest;
    }
    poll(async {
        if volume.record.intent == Intent::Nothing {
            volume.record.free = volume.read_free(&mut rig.disk).await?;
        } else {
            volume.recover(&mut rig.disk).await?;
        }
        volume.forget_changed(&mut rig.disk).await?;
        volume.clear_unfinished(&mut rig.disk).await
    })?;
    Ok(volume)
}

pub(super) fn free_of(rig: &Rig) -> u32 {
    get(&rig.disk.blocks[0], 488)
}

pub(super) fn outcome(rig: &Rig, volume: &FatVolume) -> Outcome {
    let free = rig.table().iter().filter(|it| **it == 0).count() as u32;
    assert_eq!(free_of(rig), free, "FSInfo");
    assert_eq!(volume.record.free, Some(free));
    assert!(volume.is_ready && volume.record.intent == Intent::Nothing);
    let tree = tree(rig);
    let files = volume.record.reserved.iter().enumerate();
    let unfinished =
        files.filter_map(|(slot, file)| file.map(|file| (slot, file.first, file.id())));
    let folder = tree.get("rec00003.___").map(|it| it.0);
    let mut listed = Vec::new();
    if let Some(first) = folder {
        let start = rig.layout.block_of(first + INDEX_AT);
        for at in 0..1000 {
            let block = &rig.disk.blocks[start as usize + at / 4];
            if block[at % 4 * 128..][..128] != [0; 128] {
                listed.push(at);
            }
        }
    }
    Outcome {
        tree,
        unfinished: unfinished.collect(),
        next: volume.series(*b"REC").unwrap().next,
        listed,
    }
}

fn reserve(volume: &mut FatVolume, disk: &mut Disk) -> Result<(), Error<NoPower>> {
    poll(Volume::reserve(volume, disk, REQUEST)).map(drop)
}

fn name(volume: &mut FatVolume, disk: &mut Disk, slot: u8) -> Result<(), Error<NoPower>> {
    let number = volume.series(*b"REC").unwrap().next;
    poll(Volume::name(
        volume,
        disk,
        slot,
        rec(number),
        "a-session-name",
    ))
}

/// Closes the file in a slot, whose number follows the highest.
fn close(
    volume: &mut FatVolume,
    disk: &mut Disk,
    slot: u8,
    bytes: u64,
) -> Result<(), Error<NoPower>> {
    let file = volume.record.file(slot).unwrap();
    let next = volume.series(*b"REC").unwrap().next;
    let id = file.id().unwrap_or(rec(next));
    poll(Volume::close(
        volume,
        disk,
        slot,
        &FileRecord::of_length(id, bytes),
    ))
}

fn with_folder(volume: &mut FatVolume, disk: &mut Disk) {
    done(volume.folder_for(disk, rec(3000)));
}

fn with_reserved(volume: &mut FatVolume, disk: &mut Disk) {
    with_folder(volume, disk);
    reserve(volume, disk).unwrap();
    reserve(volume, disk).unwrap();
}

fn with_named(volume: &mut FatVolume, disk: &mut Disk) {
    with_reserved(volume, disk);
    name(volume, disk, 1).unwrap();
}

fn with_closed(volume: &mut FatVolume, disk: &mut Disk) {
    with_named(volume, disk);
    close(volume, disk, 1, 1000).unwrap();
    reserve(volume, disk).unwrap();
}

/// Fills the root directory up to the end of its cluster, or of its last block.
fn with_full_root(volume: &mut FatVolume, disk: &mut Disk) {
    with_reserved(volume, disk);
    let start = match volume.layout.root {
        Root::Fixed { start, .. } => start,
        Root::Cluster(_) => volume.layout.data,
    };
    for at in 3..16 {
        let name = format!("N{at:07}TXT");
        let entry = short(name.as_bytes().try_into().unwrap(), 0x20, 0, 0);
        disk.put_entry(place(start, at), entry);
    }
}

pub(super) const OPERATIONS: [Operation; 12] = [
    Operation {
        title: "reserve",
        prepare: with_folder,
        run: reserve,
    },
    Operation {
        title: "extend the root directory",
        prepare: with_full_root,
        run: reserve,
    },
    Operation {
        title: "name",
        prepare: with_reserved,
        run: |volume, disk| name(volume, disk, 0),
    },
    Operation {
        title: "close",
        prepare: with_named,
        run: |volume, disk| close(volume, disk, 1, 1000),
    },
    Operation {
        title: "close without contents",
        prepare: with_named,
        run: |volume, disk| close(volume, disk, 1, 0),
    },
    Operation {
        title: "close in its whole length",
        prepare: with_named,
        run: |volume, disk| close(volume, disk, 1, 6 * 512),
    },
    Operation {
        title: "discard a prepared file",
        prepare: with_named,
        run: |volume, disk| poll(Volume::discard(volume, disk, 0)),
    },
    Operation {
        title: "discard a named file",
        prepare: with_named,
        run: |volume, disk| poll(Volume::discard(volume, disk, 1)),
    },
    Operation {
        title: "remove the oldest recording",
        prepare: with_closed,
        run: |volume, disk| poll(Volume::remove_oldest(volume, disk)).map(drop),
    },
    Operation {
        title: "remove a recording for a guest",
        prepare: with_closed,
        run: |volume, disk| poll(volume.remove(disk, "REC00003/REC03000.CSV")),
    },
    Operation {
        title: "create a folder",
        prepare: |_, _| (),
        run: |volume, disk| poll(volume.folder_for(disk, rec(3000))).map(drop),
    },
    Operation {
        title: "remove a folder",
        prepare: with_folder,
        run: |volume, disk| poll(volume.remove_folder(disk, rec(3000))).map(drop),
    },
];

/// Restores the blocks that were written.
pub(super) fn restore(rig: &mut Rig, from: &Rig) {
    for (start, count) in rig.disk.writes.drain(..) {
        for at in start as usize..(start + count) as usize {
            rig.disk.blocks[at] = from.disk.blocks[at];
        }
    }
    rig.disk.left = u32::MAX;
    rig.disk.reads.clear();
}

/// Returns true if all blocks are equal except those of the journal.
fn are_equal(one: &Rig, other: &Rig) -> bool {
    let end = one.journal() as usize;
    one.disk.blocks[..end] == other.disk.blocks[..end]
}

/// Mounts a card after a power cut, also if the power is cut again at any time.
fn mounted(cut: &Rig, rig: &mut Rig) -> FatVolume {
    let volume = mount(rig).unwrap();
    let whole = rig.clone();
    let writes: u32 = rig.disk.writes.iter().map(|it| it.1).sum();
    for again in 0..writes {
        restore(rig, cut);
        rig.disk.left = again;
        assert!(mount(rig).is_err());
        rig.disk.left = u32::MAX;
        let second = mount(rig).unwrap();
        assert!(are_equal(rig, &whole), "interrupted after {again}");
        assert_eq!(second.record.reserved, volume.record.reserved);
        assert_eq!(second.series(*b"REC"), volume.series(*b"REC"));
        assert_eq!(second.removed, volume.removed, "interrupted after {again}");
    }
    volume
}

/// A card before an operation.
pub(super) struct Prepared {
    pub(super) rig: Rig,
    pub(super) writes: u32,
    pub(super) before: Outcome,
    pub(super) after: Outcome,
}

pub(super) fn prepared(kind: FatKind, operation: &Operation) -> Prepared {
    let mut rig = new_rig(kind);
    let mut volume = mount(&mut rig).unwrap();
    (operation.prepare)(&mut volume, &mut rig.disk);
    rig.disk.writes.clear();
    rig.disk.reads.clear();
    let before = outcome(&rig, &mount(&mut rig.clone()).unwrap());
    let mut whole = rig.clone();
    let mut volume = mount(&mut whole).unwrap();
    whole.disk.writes.clear();
    (operation.run)(&mut volume, &mut whole.disk).unwrap();
    let after = outcome(&whole, &volume);
    assert_ne!(before, after, "{}", operation.title);
    Prepared {
        writes: whole.disk.writes.iter().map(|it| it.1).sum(),
        rig,
        before,
        after,
    }
}

/// Cuts the power after this number of blocks.
pub(super) fn cut_after(rig: &mut Rig, operation: &Operation, blocks: u32) {
    let mut volume = mount(rig).unwrap();
    rig.disk.left = blocks;
    let result = (operation.run)(&mut volume, &mut rig.disk);
    assert!(matches!(result, Ok(()) | Err(Error::Card(NoPower))));
    rig.disk.left = u32::MAX;
}

/// Returns the numbers of blocks after which the power is cut.
pub(super) fn cuts(writes: u32) -> impl Iterator<Item = u32> {
    // The contents of a new folder are written to free clusters.
    (0..=writes).filter(|at| !(20..FOLDER - 5).contains(at) || at % 100 == 0)
}

#[test]
fn an_interrupted_operation_is_completed_or_undone() {
    for kind in [FatKind::Fat16, FatKind::Fat32] {
        for operation in &OPERATIONS {
            let title = operation.title;
            let clean = prepared(kind, operation);
            let mut outcomes = vec![clean.before];
            let mut rig = clean.rig.clone();
            let mut last: Option<Rig> = None;
            for blocks in cuts(clean.writes) {
                restore(&mut rig, &clean.rig);
                cut_after(&mut rig, operation, blocks);
                let cut = rig.clone();
                rig.disk.writes.clear();
                let volume = mounted(&cut, &mut rig);
                let is_known = last.as_ref().is_some_and(|last| are_equal(last, &rig));
                if !is_known {
                    let now = outcome(&rig, &volume);
                    if outcomes.last() != Some(&now) {
                        outcomes.push(now);
                    }
                }
                last = Some(rig.clone());
                rig = cut;
            }
            assert_eq!(outcomes.len(), 2, "{title}: {outcomes:?}");
            assert_eq!(outcomes.last(), Some(&clean.after), "{title}");
        }
    }
}

/// The record that completes a close no longer contains the file, so the mount does not have to compare it with its
/// entry.
#[test]
fn a_completed_close_frees_its_slot() {
    for operation in OPERATIONS.iter().filter(|it| it.title.starts_with("close")) {
        let clean = prepared(FatKind::Fat16, operation);
        let mut rig = clean.rig.clone();
        let mut count = 0;
        for blocks in 0..clean.writes {
            restore(&mut rig, &clean.rig);
            cut_after(&mut rig, operation, blocks);
            let mut volume = rig.volume();
            volume.record = newest(&rig).unwrap();
            let Intent::Close { slot, .. } = volume.record.intent else {
                continue;
            };
            count += 1;
            done(volume.recover(&mut rig.disk));
            assert_eq!(
                newest(&rig).unwrap().file(slot),
                None,
                "{}",
                operation.title
            );
        }
        assert!(count > 0);
    }
}
