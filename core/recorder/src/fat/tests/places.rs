//! Places for the names of guests.

use super::folder::{EMPTY, with_folder};
use super::*;
use crate::fat::Node;
use crate::fat::place::cluster_of;
use crate::fat::{Error, Refusal};
use cardiograph_sim_world::{Random, Seed};
use hadris_fat_raw::{ShortEntry, Slot};

const NEW: [u8; 32] = {
    let mut entry = [0; 32];
    entry[11] = 0x20;
    entry[28] = 99;
    entry
};

fn new_entry() -> ShortEntry {
    let mut raw = NEW;
    raw[0] = b'X';
    match Slot::parse(&raw) {
        Slot::Short(entry) => entry,
        _ => panic!("not a short entry"),
    }
}

/// A name with this number of entries: a short one alone, or with a long one.
fn name_of(entries: usize) -> String {
    match entries {
        1 => "NEWNAMES.TXT".into(),
        _ => "n".repeat(13 * (entries - 1)),
    }
}

/// A directory with random entries.
struct Directory {
    rig: Rig,
    node: Node,
    blocks: Vec<u32>,
}

impl Directory {
    /// Returns the root directory, or one in it.
    fn new(number: u64, random: &mut Random) -> Directory {
        let kind = [FatKind::Fat16, FatKind::Fat32][(number % 2) as usize];
        let mut rig = Rig::new(Shape {
            kind,
            clusters: 30,
            cluster_blocks: 1 + random.below(2) as u32,
            shift: 0,
        });
        let is_root = random.below(2) == 0;
        let first = if is_root { 2 } else { 12 };
        let blocks = if is_root && kind == FatKind::Fat16 {
            (rig.root_block()..rig.root_block() + ROOT_BLOCKS).collect()
        } else {
            let clusters = [first, 7, 20];
            let clusters = &clusters[..1 + random.below(3) as usize];
            rig.chain(clusters);
            let blocks = clusters.iter().flat_map(|it| rig.blocks_of(*it));
            blocks.collect()
        };
        let mut directory = Directory {
            rig,
            node: Node::Root,
            blocks,
        };
        directory.fill(random);
        if !is_root {
            directory.enter(first);
        }
        directory
    }

    fn fill(&mut self, random: &mut Random) {
        let entries = self.blocks.len() * 16;
        // Most directories end within their last block, or have no end mark.
        let end = match random.below(3) {
            0 => entries,
            1 => random.below(entries as u64) as usize,
            _ => entries - 1 - random.below(16) as usize,
        };
        let holes = 1 + random.below(12);
        let mut is_free = false;
        for at in 0..entries {
            if random.below(holes) == 0 {
                is_free = random.below(3) == 0;
            }
            let number = format!("N{at:07}TXT");
            let stale = format!("STALE{at:03}TXT");
            let is_used = at < end && !is_free;
            let name = if at < end { number } else { stale };
            let name = name.as_bytes().try_into().unwrap();
            let mut entry = short(name, 0x20, 0, 1);
            if at < end && !is_used {
                entry = EMPTY;
            } else if at == end || at / 16 > end / 16 {
                entry = [0; 32];
            }
            let place = place(self.blocks[at / 16], at % 16);
            self.rig.disk.put_entry(place, entry);
        }
    }

    /// Makes this a directory in the root directory.
    fn enter(&mut self, first: u32) {
        let root = place(self.rig.root_block(), 0);
        self.rig
            .disk
            .put_entry(root, short(b"DIR        ", 0x10, first, 0));
        let mut volume = self.rig.volume();
        let found = done(volume.walk(&mut self.rig.disk).find_in(&Node::Root, "dir"));
        self.node = Node::Entry(found.unwrap());
    }

    /// Returns all places, and the entries up to the end mark.
    fn slots(&self) -> Vec<(Place, [u8; 32])> {
        let places = self.blocks.iter();
        let places = places.flat_map(|block| (0..16).map(|at| place(*block, at)));
        let slots = places.map(|place| (place, self.rig.disk.entry(place)));
        slots.take_while(|(_, entry)| entry[0] != 0).collect()
    }

    /// Returns the first position of this number of free entries in one block.
    fn room(&self, entries: usize) -> Option<usize> {
        let slots = self.slots();
        let is_free = |at: usize| slots.get(at).is_none_or(|(_, entry)| entry[0] == 0xE5);
        (0..self.blocks.len() * 16)
            .find(|at| at % 16 + entries <= 16 && (*at..at + entries).all(is_free))
    }

    /// Follows the chain, which may have grown.
    fn grow(&mut self) {
        let last = *self.blocks.last().unwrap();
        let layout = &self.rig.layout;
        let last = (last - layout.data) / layout.cluster_blocks + 2;
        let next = self.rig.get(last);
        if next != self.rig.end() {
            self.blocks.extend(self.rig.blocks_of(next));
        }
    }
}

#[test]
fn a_name_gets_the_first_place_with_room_and_nothing_else_changes() {
    let mut random = Seed::new(20_261_126).stream("places");
    let (mut grown, mut full) = (0, 0);
    for number in 0..1500 {
        let mut directory = Directory::new(number, &mut random);
        let entries = 1 + random.below(16) as usize;
        let name = name_of(entries);
        let due = directory.room(entries);
        let before = found(&directory.slots());
        let mut volume = directory.rig.volume();
        volume.record.hint = 22;
        let (node, disk) = (directory.node, &mut directory.rig.disk);
        let room = poll(volume.room_for(disk, &node, &name, None));
        let is_fixed = node == Node::Root && directory.rig.layout.kind == FatKind::Fat16;
        let Ok((new, room)) = room else {
            let blanks = *b"           ";
            assert!(matches!(room, Err(Error::DirectoryFull(name)) if name == blanks));
            assert!(due.is_none() && is_fixed);
            full += 1;
            continue;
        };
        let at = room.short(&new);
        done(volume.write_new_name(&mut directory.rig.disk, room, &new, &new_entry()));
        if !is_fixed {
            directory.grow();
        }
        let place = match due {
            Some(at) => place(directory.blocks[at / 16], at % 16 + entries - 1),
            None => {
                grown += 1;
                assert_eq!((volume.record.hint, volume.is_ready), (23, true));
                place(directory.rig.layout.block_of(22), entries - 1)
            }
        };
        assert_eq!(at, place, "{number}");
        assert_eq!(directory.rig.disk.entry(place)[11..], NEW[11..]);
        let mut now = found(&directory.slots());
        let added = now.iter().position(|it| it.place == place).unwrap();
        let added = now.remove(added);
        assert_eq!(now, before, "{number}");
        assert_eq!(
            (added.name, usize::from(added.long_entries)),
            (name, entries - 1)
        );
    }
    assert!(grown > 50 && full > 50, "{grown} {full}");
}

#[test]
fn a_directory_is_as_long_as_fat_allows() {
    const MOST: u32 = 65_536 / 16 / 128;
    let mut rig = Rig::new(Shape {
        kind: FatKind::Fat32,
        clusters: MOST + 1,
        cluster_blocks: 128,
        shift: 0,
    });
    let used = short(&SHORT, 0x20, 0, 0).repeat(16);
    rig.disk.blocks[rig.layout.data as usize..].fill(used.try_into().unwrap());
    for count in [MOST - 1, MOST] {
        rig.chain(&(2..2 + count).collect::<Vec<u32>>());
        let mut disk = rig.disk.clone();
        let room = poll(rig.volume().room_for(&mut disk, &Node::Root, "name", None));
        let is_full = matches!(room, Err(Error::DirectoryFull(_)));
        assert_eq!(is_full, count == MOST);
        assert_eq!(room.is_err(), is_full);
    }
}

/// The FAT specification forbids entries after the end mark.
#[test]
fn a_directory_that_continues_after_its_end_is_refused() {
    let mut rig = Rig::new(Shape {
        kind: FatKind::Fat16,
        clusters: 20,
        cluster_blocks: 1,
        shift: 0,
    });
    let start = rig.root_block();
    let used = short(&SHORT, 0x20, 0, 0);
    (0..14).for_each(|at| rig.disk.put_entry(place(start, at), used));
    rig.disk.put_entry(place(start + 1, 0), used);
    let mut volume = rig.volume();
    let name = name_of(5);
    let room = poll(volume.room_for(&mut rig.disk, &Node::Root, &name, None));
    assert!(matches!(room, Err(Error::DamagedDirectory)));
    assert_eq!(rig.disk.writes, []);
}

#[test]
fn guests_do_not_use_the_positions_of_future_recordings() {
    for shape in super::folder::shapes() {
        let mut folder = with_folder(shape);
        let blocks = folder.blocks();
        folder.fill();
        let (mut rig, mut volume) = (folder.rig, folder.volume);
        let found = done(volume.walk(&mut rig.disk).find_in(&Node::Root, "REC00003"));
        let node = Node::Entry(found.unwrap());
        // Three positions share a block, and the first block has none.
        for (next, due) in [
            (1, 1),
            (3000, 1),
            (3001, 1),
            (3003, 2),
            (3005, 2),
            (3999, 334),
            (4000, 335),
            (9000, 335),
        ] {
            for block in [0, 1, 2, 333, 334] {
                let mut disk = rig.disk.clone();
                disk.put_entry(place(blocks.start + block, 7), EMPTY);
                let mut known = series(*b"REC", next);
                (known.has_folder, known.folder) = (true, (3, folder.first));
                volume.record.series[0] = Some(known);
                let room = poll(volume.room_for(&mut disk, &node, "X.TXT", None));
                let at = room.map(|(name, room)| room.short(&name));
                let due = match block < due {
                    true => Ok(place(blocks.start + block, 7)),
                    false => Err(Error::DirectoryFull(*b"REC00003   ")),
                };
                assert_eq!(at, due, "next {next}, block {block}");
            }
        }
        // Neither do they use the names of future recordings, except in a directory that is not the recorder's.
        volume.record.series[0] = Some(series(*b"REC", 3003));
        let mut disk = rig.disk.clone();
        disk.put_entry(place(blocks.start, 7), EMPTY);
        let mut refusal = |node: &Node, name: &str| {
            let room = poll(volume.room_for(&mut disk, node, name, None));
            matches!(room, Err(Error::Forbidden(Refusal::Recordings)))
        };
        assert!(refusal(&node, "REC03007.CSV") && refusal(&node, "REC99999.TXT"));
        assert!(refusal(&node, "rec03003 flight.csv") && refusal(&node, "Rec03003.Csv"));
        assert!(!refusal(&node, "ABC03007.CSV") && !refusal(&node, "REC03002.CSV"));
        assert!(refusal(&Node::Root, "REC00004") && !refusal(&Node::Root, "ABC00004"));
        assert!(refusal(&Node::Root, "Rec00003") && !refusal(&Node::Root, "REC00002"));
        let free = rig.layout.clusters_end - 1;
        rig.chain(&[free]);
        rig.disk.blocks[rig.layout.block_of(free) as usize] = [0; 512];
        let root = rig.root_block();
        // A directory with such a name, and one in it that links to the recorder's folder.
        let foreign = short(b"REC00007   ", 0x10, free, 0);
        rig.disk.put_entry(place(root, 1), foreign);
        let inside = short(b"REC00003   ", 0x10, folder.first, 0);
        rig.disk
            .put_entry(place(rig.layout.block_of(free), 0), inside);
        for path in ["REC00007", "REC00007/REC00003"] {
            let node = done(volume.lookup(&mut rig.disk, path));
            let mut disk = rig.disk.clone();
            disk.put_entry(place(blocks.start, 7), EMPTY);
            let room = poll(volume.room_for(&mut disk, &node, "REC03007.CSV", None));
            assert!(room.is_ok(), "{path}");
        }
    }
}

#[test]
fn a_short_name_is_one_that_no_other_entry_has() {
    let mut rig = Rig::new(Shape {
        kind: FatKind::Fat16,
        clusters: 20,
        cluster_blocks: 1,
        shift: 0,
    });
    let start = rig.root_block();
    let mut names: Vec<[u8; 11]> = Vec::new();
    for count in 0..30 {
        // A deleted entry, and one after the end mark, do not count.
        let mut deleted = short(b"LONGNA~1TXT", 0x20, 0, 0);
        deleted[0] = 0xE5;
        rig.disk.put_entry(place(start + 2, 0), deleted);
        let at = place(start + count / 16, count as usize % 16);
        if count % 16 != 15 {
            let behind = place(at.block, usize::from(at.index) + 1);
            rig.disk
                .put_entry(behind, short(b"LONGNA~1TXT", 0x20, 0, 0));
        }
        rig.disk.put_entry(at, [0; 32]);
        let mut volume = rig.volume();
        let (name, _) = done(volume.room_for(&mut rig.disk, &Node::Root, "Long name.txt", None));
        let mut entry = [0; 11];
        let mut disk = rig.disk.clone();
        let room = done(volume.room_for(&mut disk, &Node::Root, "Long name.txt", None)).1;
        let at_short = room.short(&name);
        done(volume.write_new_name(&mut disk, room, &name, &new_entry()));
        entry.copy_from_slice(&disk.entry(at_short)[..11]);
        assert!(!names.contains(&entry), "{entry:?}");
        // LONGNA~1, or two letters, four digits of a hash and a number.
        let is_plain = entry.starts_with(b"LONGNA~");
        assert!(entry.ends_with(b"TXT") && (is_plain || entry[6] == b'~'));
        assert!(count != 0 || entry == *b"LONGNA~1TXT");
        names.push(entry);
        rig.disk.put_entry(at, short(&entry, 0x20, 0, 0));
    }
    let all = names.iter().filter(|name| name.starts_with(b"LONGNA~"));
    assert_eq!(all.count(), 4);
}

#[test]
fn nothing_is_created_under_a_hidden_directory() {
    let mut rig = Rig::new(Shape {
        kind: FatKind::Fat16,
        clusters: 20,
        cluster_blocks: 1,
        shift: 0,
    });
    let start = rig.root_block();
    for (index, (name, attributes, first)) in [
        (b"HIDDEN     ", 0x16, 5),
        (b"SHOWN      ", 0x10, 6),
        (b"FILE    TXT", 0x26, 0),
    ]
    .into_iter()
    .enumerate()
    {
        let entry = short(name, attributes, first, 0);
        rig.disk.put_entry(place(start, index), entry);
    }
    rig.chain(&[5]);
    rig.chain(&[6]);
    let hidden = Err(Error::Forbidden(Refusal::Hidden));
    for (path, due) in [
        ("hidden/new", hidden),
        ("file.txt", hidden),
        ("shown/new", Ok(())),
    ] {
        let mut disk = rig.disk.clone();
        let made = poll(rig.volume().make_directory(&mut disk, path));
        assert_eq!(made, due, "{path}");
    }
    // The new directory stores that above it.
    let mut volume = rig.volume();
    done(volume.make_directory(&mut rig.disk, "shown/new"));
    let Node::Entry(new) = done(volume.lookup(&mut rig.disk, "shown/new")) else {
        panic!("it is not the root directory");
    };
    assert_eq!(new.place, place(rig.layout.block_of(6), 0));
    let above = rig.disk.entry(place(rig.layout.block_of(new.first), 1));
    assert_eq!(above[26], 6);
    assert_eq!(cluster_of(&Node::Entry(new)), new.first);
    assert_eq!(cluster_of(&Node::Root), 0);
}
