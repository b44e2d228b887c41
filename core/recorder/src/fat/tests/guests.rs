//! Power cuts in changes by guests, on a small volume: recovery finds each change done or not begun.

use super::journal::put_fs_info;
use super::recordings::free_of;
use super::*;
use crate::fat::Error;
use crate::fat::record::Record;
use std::collections::BTreeMap;

/// A change by a guest.
pub(super) type Change = fn(&mut FatVolume, &mut Disk) -> Result<(), Error<NoPower>>;

/// First cluster and length of each file and directory, by path. The clusters of a file identify it.
pub(super) type Tree = BTreeMap<String, (u32, u32)>;

pub(super) const LONG: &str = "Some longer name.txt";
/// Longer than the entries of a block that are left.
const LONGER: &str = "D/A directory whose name takes some entries";

pub(super) fn made(kind: FatKind) -> Rig {
    let mut rig = Rig::new(Shape {
        kind,
        clusters: 40,
        cluster_blocks: 1,
        shift: 0,
    });
    rig.chain(&[5, 6, 12, 13, 9]);
    rig.chain(&[20, 8]);
    rig.chain(&[30]);
    rig.chain(&[31]);
    rig.chain(&[32, 33]);
    rig.chain(&[35]);
    let root = rig.root_block();
    let sum = sum_of(b"SOMELO~1TXT");
    let units: Vec<u16> = LONG.encode_utf16().collect();
    let entries = [
        short(b"A          ", 0x20, 5, 2500),
        long(0x42, sum, &units[13..]),
        long(1, sum, &units[..13]),
        short(b"SOMELO~1TXT", 0x20, 20, 1000),
        short(b"B       TXT", 0x20, 30, 500),
        short(b"D          ", 0x10, 31, 0),
        short(b"E          ", 0x10, 35, 0),
    ];
    for (at, entry) in entries.into_iter().enumerate() {
        rig.disk.put_entry(place(root, at), entry);
    }
    for (cluster, used) in [(31, 14), (35, 0)] {
        let block = rig.layout.block_of(cluster);
        let dots = [
            short(b".          ", 0x10, cluster, 0),
            short(b"..         ", 0x10, 0, 0),
        ];
        for (at, dot) in dots.into_iter().enumerate() {
            rig.disk.put_entry(place(block, at), dot);
        }
        for at in 2..used {
            let name = format!("N{at:07}TXT");
            let first = if at == 9 { 32 } else { 0 };
            let size = if at == 9 { 513 } else { 0 };
            let name = name.as_bytes().try_into().unwrap();
            rig.disk
                .put_entry(place(block, at), short(name, 0x20, first, size));
        }
    }
    let free = free_clusters(&rig);
    put_fs_info(&mut rig, free);
    rig
}

fn free_clusters(rig: &Rig) -> u32 {
    rig.table().iter().filter(|it| **it == 0).count() as u32
}

/// Returns a volume in the state after a mount. Its next search for free clusters begins at a free one.
pub(super) fn mounted(rig: &Rig) -> FatVolume {
    let mut volume = rig.volume();
    volume.record.hint = 14;
    volume.record.free = Some(free_of(rig));
    volume
}

/// Returns everything on a volume. Each cluster in use must belong to one file.
pub(super) fn tree(rig: &Rig) -> Tree {
    let mut tree = Tree::new();
    let mut table = rig.table();
    let mut todo = vec![(String::new(), 0_u32)];
    while let Some((path, first)) = todo.pop() {
        let blocks = match (first, rig.layout.root) {
            (0, Root::Fixed { start, blocks }) => (start..start + blocks).collect(),
            (0, Root::Cluster(first)) => taken(&mut table, rig, first),
            _ => taken(&mut table, rig, first),
        };
        let places = blocks.iter();
        let places = places.flat_map(|block| (0..16).map(|at| place(*block, at)));
        let slots = places.map(|place| (place, rig.disk.entry(place)));
        let slots: Vec<_> = slots.take_while(|(_, entry)| entry[0] != 0).collect();
        // Each entry of a long name belongs to a short one.
        let parts = slots
            .iter()
            .filter(|(_, it)| it[11] == 0x0F && it[0] != 0xE5);
        let all = found(&slots);
        let named: usize = all.iter().map(|it| usize::from(it.long_entries)).sum();
        assert_eq!(parts.count(), named, "in {path}");
        for Found { name, place, .. } in all {
            let entry = rig.disk.entry(place);
            let [low, high] = [26, 20].map(|at| u16::from_le_bytes([entry[at], entry[at + 1]]));
            let first = u32::from(low) | u32::from(high) << 16;
            let size = u32::from_le_bytes([entry[28], entry[29], entry[30], entry[31]]);
            let name = name.replace(' ', "_").to_lowercase();
            match &*name {
                name if name.starts_with("._") => continue,
                // `..` is the only directory without a chain, or links to the one above.
                name if name.starts_with(".._") => {
                    assert_eq!(first, above(rig, &path), "in {path}");
                    continue;
                }
                _ => (),
            }
            let path = format!("{path}{name}");
            if entry[11] & 0x10 != 0 {
                todo.push((format!("{path}/"), first));
            } else if first != 0 {
                let clusters = taken(&mut table, rig, first).len() as u32;
                assert_eq!(clusters, size.div_ceil(512), "{path}");
            }
            assert!(tree.insert(path, (first, size)).is_none());
        }
    }
    let lost: Vec<usize> = (2..table.len()).filter(|it| table[*it] != 0).collect();
    assert_eq!(lost, [0_usize; 0]);
    tree
}

/// Returns the first cluster of the directory above, as `..` stores it.
fn above(rig: &Rig, path: &str) -> u32 {
    let path = path.trim_end_matches('/');
    let Some((above, _)) = path.rsplit_once('/') else {
        return 0;
    };
    // The fixture has directories in E and D only.
    let directory = if above.starts_with('e') { 35 } else { 31 };
    assert!(rig.get(directory) != 0);
    directory
}

/// Removes a chain from the table, and returns its blocks.
fn taken(table: &mut [u32], rig: &Rig, first: u32) -> Vec<u32> {
    let mut blocks = Vec::new();
    let mut cluster = first;
    loop {
        blocks.push(rig.layout.block_of(cluster));
        let next = core::mem::take(&mut table[cluster as usize]);
        assert_ne!(
            next, 0,
            "cluster {cluster} is free, or belongs to two files"
        );
        if next == rig.end() {
            return blocks;
        }
        cluster = next;
    }
}

/// Does what a mount does after a power cut: continues with the newest record, and discards uploads.
pub(super) fn recover(rig: &mut Rig) -> Result<(), Error<NoPower>> {
    let mut volume = rig.volume();
    let copies = volume.copies.map(|block| rig.disk.blocks[block as usize]);
    let records = copies.iter();
    let records = records.filter_map(|block| Record::decode(block, &rig.layout, 0, 0));
    if let Some(newest) = records.max_by_key(|record| record.sequence) {
        volume.record = newest;
    }
    if volume.record.intent != Intent::Nothing {
        poll(volume.recover(&mut rig.disk))?;
    }
    poll(volume.discard_uploads(&mut rig.disk))
}

/// Recovers a card after a power cut, also if the power is cut again at any time. Returns everything on the card then.
fn recovered(cut: &Rig) -> Tree {
    let mut rig = cut.clone();
    recover(&mut rig).unwrap();
    let tree_of = tree(&rig);
    assert_eq!(free_of(&rig), free_clusters(&rig), "FSInfo");
    for again in 0.. {
        let mut rig = cut.clone();
        rig.disk.left = again;
        if recover(&mut rig).is_ok() {
            break;
        }
        rig.disk.left = u32::MAX;
        recover(&mut rig).unwrap();
        assert_eq!(tree(&rig), tree_of, "interrupted after {again}");
        assert_eq!(free_of(&rig), free_clusters(&rig), "FSInfo, {again}");
    }
    tree_of
}

fn put(volume: &mut FatVolume, disk: &mut Disk, path: &str) -> Result<(), Error<NoPower>> {
    poll(async {
        let mut upload = volume.begin_upload(disk, 0).await?;
        volume.grow_upload(disk, &mut upload, 2000).await?;
        let time = DosTime::NO_CLOCK;
        volume
            .commit_upload(disk, &mut upload, path, 1300, time, true)
            .await
    })
}

pub(super) const CHANGES: [Change; 13] = [
    |volume, disk| poll(volume.make_directory(disk, LONGER)),
    |volume, disk| poll(volume.make_directory(disk, "e/New directory")),
    |volume, disk| poll(volume.rename(disk, "a", "e/A renamed file", false)),
    |volume, disk| poll(volume.rename(disk, LONG, "b.txt", true)),
    |volume, disk| poll(volume.rename(disk, "b.txt", LONG, true)),
    |volume, disk| poll(volume.rename(disk, "d/n0000009.txt", LONGER, false)),
    |volume, disk| poll(volume.rename(disk, "d", "Other directory", false)),
    |volume, disk| poll(volume.rename(disk, "d", "e/Inner directory", false)),
    |volume, disk| poll(volume.remove(disk, LONG)),
    |volume, disk| poll(volume.remove(disk, "a")),
    |volume, disk| put(volume, disk, "New file.txt"),
    |volume, disk| put(volume, disk, "a"),
    |volume, disk| {
        put(volume, disk, "d/n0000005.txt")?;
        poll(volume.remove(disk, "d/n0000009.txt"))
    },
];

#[test]
fn an_interrupted_change_is_completed_or_undone() {
    for kind in [FatKind::Fat16, FatKind::Fat32] {
        let clean = made(kind);
        let before = tree(&clean);
        for (number, change) in CHANGES.iter().enumerate() {
            let mut rig = clean.clone();
            let mut volume = mounted(&rig);
            change(&mut volume, &mut rig.disk).unwrap();
            assert_eq!(free_of(&rig), free_clusters(&rig), "change {number}");
            let writes: u32 = rig.disk.writes.iter().map(|it| it.1).sum();
            let mut trees = vec![before.clone()];
            let after = tree(&rig);
            assert_ne!(after, before, "change {number}");
            for cut in 0..writes {
                let mut rig = clean.clone();
                rig.disk.left = cut;
                let mut volume = mounted(&rig);
                let error = change(&mut volume, &mut rig.disk).unwrap_err();
                assert_eq!(error, Error::Card(NoPower));
                rig.disk.left = u32::MAX;
                let now = recovered(&rig);
                if trees.last() != Some(&now) {
                    trees.push(now);
                }
            }
            // Of two changes, only the first may have been made.
            let is_two = number == CHANGES.len() - 1;
            assert_eq!(trees.len(), if is_two { 3 } else { 2 }, "change {number}");
            assert_eq!(trees.last(), Some(&after), "change {number}");
        }
    }
}
