//! Names and chains of guests' files, whole and after a power cut.

use super::*;
use crate::fat::guest_record::{FirstRun, NamePlace, WholeChain};
use cardiograph_sim_world::{Random, Seed};
use hadris_fat_raw::{ShortEntry, Slot};

const SMALL: Shape = Shape {
    kind: FatKind::Fat16,
    clusters: 24,
    cluster_blocks: 1,
    shift: 0,
};

fn name_at(place: Place) -> NamePlace {
    NamePlace::of_short(place, &SHORT).unwrap()
}

/// Returns a name of `entries` parts, whose short entry is at this index of the last of three blocks.
fn name_in(blocks: [u32; 3], index: usize, entries: usize) -> NamePlace {
    let [far, near, last] = blocks;
    let mut name = name_at(place(last, index));
    name.long_entries = entries as u8;
    if entries > index {
        name.before[0] = near;
    }
    if entries > index + 16 {
        name.before[1] = far;
    }
    name
}

/// Every position and length of a name, among entries with the same checksum.
#[test]
fn a_name_is_deleted_with_its_parts_only() {
    let sum = sum_of(&SHORT);
    let part = long(1, sum, &[65; 13]);
    let clean = Rig::new(SMALL);
    let start = clean.layout.data;
    let blocks = [start + 9, start + 4, start + 6];
    let mut volume = clean.volume();
    for index in 0..16 {
        for entries in 0..=20 {
            // The entry is there, is already deleted, or is that of another file.
            for (first_byte, first) in [(b'S', 7), (0xE5, 7), (b'S', 8)] {
                let mut rig = clean.clone();
                for block in 0..rig.disk.blocks.len() as u32 {
                    (0..16).for_each(|at| rig.disk.put_entry(place(block, at), part));
                }
                // A part of another name.
                let other = long(1, sum.wrapping_add(1), &[66]);
                rig.disk.put_entry(place(blocks[1], 14), other);
                let mut entry = short(&SHORT, 0x20, first, 700);
                entry[0] = first_byte;
                rig.disk.put_entry(place(blocks[2], index), entry);
                let mut due = rig.disk.clone();
                let places = blocks
                    .iter()
                    .flat_map(|block| (0..16).map(|at| place(*block, at)));
                let places: Vec<Place> = places.collect();
                let at = 32 + index;
                for (number, place) in places.iter().enumerate() {
                    let is_here = place.block == blocks[2];
                    let is_part = (at - entries..=at).contains(&number);
                    let is_due = match (first_byte, first) {
                        (_, 8) => false,
                        // The entries in its block were deleted with it.
                        (0xE5, _) => is_part && !is_here,
                        _ => is_part,
                    };
                    let mut entry = due.entry(*place);
                    if is_due && entry != other {
                        entry[0] = 0xE5;
                        due.put_entry(*place, entry);
                    }
                }
                let name = name_in(blocks, index, entries);
                done(volume.delete_name(&mut rig.disk, name, 7));
                assert!(
                    rig.disk.blocks == due.blocks,
                    "{name:?} {first_byte} {first}"
                );
                let changed = blocks.iter().filter(|block| {
                    let of = |rig: &Disk| rig.blocks[**block as usize];
                    of(&rig.disk)[..] != [part; 16].concat()[..]
                        && of(&rig.disk)
                            .as_chunks::<32>()
                            .0
                            .iter()
                            .any(|it| it[0] == 0xE5)
                });
                assert!(rig.disk.writes.len() <= changed.count(), "{name:?}");
            }
        }
    }
    // A record without the blocks before: nothing else is touched.
    let mut rig = clean.clone();
    (0..16).for_each(|at| rig.disk.put_entry(place(0, at), part));
    rig.disk
        .put_entry(place(start, 0), short(&SHORT, 0x20, 7, 1));
    let mut name = name_at(place(start, 0));
    name.long_entries = 20;
    done(volume.delete_name(&mut rig.disk, name, 7));
    assert_eq!(rig.disk.blocks[0][0], 1);
    assert_eq!(rig.disk.writes, [(start, 1)]);
}

#[test]
fn an_entry_is_recognised_by_checksum_and_cluster() {
    let volume = Rig::new(SMALL).volume();
    let sum = sum_of(&SHORT);
    for first in [0, 5, 6] {
        for size in [0, 9] {
            for expected in [sum, sum + 1] {
                let raw = short(&SHORT, 0x20, first, size);
                let Slot::Short(entry) = Slot::parse(&raw) else {
                    panic!("not a short entry");
                };
                let entry: ShortEntry = entry;
                let is_its = matches!((first, size), (5, _) | (0, 0)) && expected == sum;
                assert_eq!(
                    volume.is_entry_of(&entry, expected, 5),
                    is_its,
                    "{first} {size}"
                );
            }
        }
    }
}

/// Returns the runs of consecutive clusters: the first cluster and the length of each.
fn runs_of(clusters: &[u32]) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for cluster in clusters {
        match runs.last_mut() {
            Some((first, length)) if *first + *length == *cluster => *length += 1,
            _ => runs.push((*cluster, 1)),
        }
    }
    runs
}

/// Returns different clusters from 3 on, often consecutive ones, upwards or downwards.
fn some_clusters(count: usize, random: &mut Random) -> Vec<u32> {
    let mut clusters: Vec<u32> = Vec::new();
    while clusters.len() < count {
        let any = 3 + random.below(22) as u32;
        let next = match (random.below(4), clusters.last()) {
            (0 | 1, Some(last)) => last + 1,
            (2, Some(last)) => last - 1,
            _ => any,
        };
        if (3..=25).contains(&next) && !clusters.contains(&next) {
            clusters.push(next);
        }
    }
    clusters
}

fn whole(clusters: &[u32]) -> WholeChain {
    WholeChain {
        first: clusters.first().copied().unwrap_or(0),
        clusters: clusters.len() as u32,
        sum: clusters
            .iter()
            .fold(0, |sum, cluster| sum.wrapping_add(mix(*cluster))),
    }
}

fn small(number: u64) -> Shape {
    let kind = [FatKind::Fat16, FatKind::Fat32][(number % 2) as usize];
    Shape { kind, ..SMALL }
}

#[test]
fn every_run_of_a_chain_is_freed() {
    let mut random = Seed::new(20_261_126).stream("chains");
    for number in 0..400 {
        let mut rig = Rig::new(small(number));
        let count = random.below(9) as usize;
        let mut clusters = some_clusters(count + 2, &mut random);
        let (kept, other) = (clusters.pop().unwrap(), clusters.pop().unwrap());
        rig.put(other, rig.end());
        // The chain of a name, or the end of a chain that becomes shorter.
        let root = place(rig.root_block(), 3);
        let has_name = number % 3 != 0;
        let (name, end) = match has_name || clusters.is_empty() {
            true => (Some(name_at(root)), 0),
            false => (None, kept),
        };
        let linked = [&[kept], &clusters[..]].concat();
        rig.chain(if name.is_some() { &clusters } else { &linked });
        let first = clusters.first().copied().unwrap_or(0);
        rig.disk.put_entry(root, short(&SHORT, 0x20, first, 0));
        let mut due = rig.table();
        clusters.iter().for_each(|it| due[*it as usize] = 0);
        if name.is_none() {
            due[kept as usize] = rig.end();
        }

        let mut volume = rig.volume();
        volume.record.free = Some(5);
        volume.record.hint = 3 + random.below(23) as u32;
        let runs = runs_of(&clusters);
        let mut hint = volume.record.hint;
        for (first, length) in &runs {
            hint = if hint == first + length { *first } else { hint };
        }
        let chain = done(volume.survey(&mut rig.disk, first));
        assert_eq!(chain, whole(&clusters));
        done(volume.free_chain(&mut rig.disk, name, end, chain));
        assert_eq!(rig.table(), due, "{clusters:?}");
        assert_eq!(rig.disk.entry(root)[0] == 0xE5, name.is_some());
        assert_eq!(volume.record.free, Some(5 + count as u32));
        assert_eq!(volume.record.hint, hint, "{clusters:?}");
        assert!(volume.is_ready && volume.record.intent == Intent::Nothing);
        // One record per run, and one when all is done.
        let journal = rig.journal();
        let records = rig.disk.writes.iter().filter(|it| it.0 >= journal);
        assert_eq!(records.count(), runs.len().max(1) + 1, "{clusters:?}");
    }
}

/// A card after a power cut during the removal of a chain, and after changes by another program.
struct Cut {
    rig: Rig,
    /// The run and the chain after it.
    run: Vec<u32>,
    rest: Vec<u32>,
    /// The cluster before the run, or 0.
    end: u32,
    name: Option<NamePlace>,
    /// Place, checksum and first cluster of the root directory's entries.
    entries: Vec<(Place, u8, u32)>,
}

impl Cut {
    fn new(number: u64, random: &mut Random) -> Cut {
        let mut rig = Rig::new(small(number));
        let count = 2 + random.below(6) as usize;
        let mut clusters = some_clusters(count, random);
        let end = clusters.pop().unwrap();
        let (_, length) = runs_of(&clusters)[0];
        let (run, rest) = clusters.split_at(length as usize);
        let (run, rest) = (run.to_vec(), rest.to_vec());
        rig.chain(&clusters);
        // The cut may have come before or after the run was freed.
        if random.below(2) == 0 {
            run.iter().for_each(|it| rig.put(*it, 0));
        }
        let root = rig.root_block();
        let own = place(root, 3);
        let name = (random.below(2) == 0).then(|| name_at(own));
        let end = if name.is_some() { 0 } else { end };
        if end != 0 {
            let reserved = if number % 2 == 1 { 0x5000_0000 } else { 0 };
            let next = [run[0], rig.end(), rig.end() - 7, 0, 3][random.below(5) as usize];
            rig.put(end, next | reserved);
        }
        let mut cut = Cut {
            rig,
            run,
            rest,
            end,
            name,
            entries: Vec::new(),
        };
        if name.is_some() {
            cut.add_entry(own, &SHORT, cut.run[0]);
        }
        cut.change(random);
        cut
    }

    fn add_entry(&mut self, place: Place, name: &[u8; 11], first: u32) {
        self.rig.disk.put_entry(place, short(name, 0x20, first, 1));
        self.entries.retain(|it| it.0 != place);
        self.entries.push((place, sum_of(name), first));
    }

    /// Changes a few entries as another program would.
    fn change(&mut self, random: &mut Random) {
        let root = self.rig.root_block();
        let any = |random: &mut Random| {
            let all = [
                2,
                self.run[0] - 1,
                self.run[0],
                self.run[0] + self.run.len() as u32,
            ];
            let last = self.run.last().copied().unwrap();
            let rest = self.rest.first().copied().unwrap_or(9);
            [all[0], all[1], all[2], all[3], last, rest, rest + 1][random.below(7) as usize]
        };
        match random.below(4) {
            0 => (),
            // A file, which may begin in the run or in the chain after it, at any place.
            1 => {
                let first = any(random);
                let index = 1 + random.below(4) as usize;
                let name = [&SHORT, b"OTHER      "][random.below(2) as usize];
                self.add_entry(place(root, index), name, first);
            }
            _ => {
                let clusters = [&self.run[..], &self.rest[..]].concat();
                let cluster = clusters[random.below(clusters.len() as u64) as usize];
                let end = self.rig.end();
                let value = [
                    0,
                    1,
                    cluster + 1,
                    cluster.wrapping_sub(1),
                    end,
                    end - 7,
                    end - 8,
                ][random.below(7) as usize];
                self.rig.put(cluster, value);
            }
        }
        // The directory must not end before its entries.
        for index in 0..5 {
            let place = place(root, index);
            if self.rig.disk.entry(place)[0] == 0 {
                self.rig.disk.put_entry(place, [0xE5; 32]);
            }
        }
    }

    fn begins_in(&self, first: u32, clusters: u32, own: Option<NamePlace>) -> bool {
        let own = own.map(|own| (own.place(), own.sum));
        self.entries.iter().any(|(place, sum, begin)| {
            (first..first + clusters).contains(begin) && own != Some((*place, *sum))
        })
    }

    /// Returns the clusters of a chain, if it is intact.
    fn followed(&self, first: u32) -> Option<Vec<u32>> {
        let mut clusters = vec![first];
        loop {
            let next = self.rig.get(*clusters.last()?) & self.rig.end();
            match next {
                _ if next > self.rig.end() - 8 => return Some(clusters),
                2.. if next < self.rig.layout.clusters_end && clusters.len() < 30 => {
                    clusters.push(next);
                }
                _ => return None,
            }
        }
    }

    /// Returns true if the run is free or linked as before, and no other file has any part of it.
    fn is_own(&self) -> bool {
        let is_linked = self.run.iter().enumerate().all(|(at, cluster)| {
            let entry = self.rig.get(*cluster) & self.rig.end();
            let next = self.run.get(at + 1).or(self.rest.first());
            entry == 0 || next.map_or(entry > self.rig.end() - 8, |next| entry == *next)
        });
        let is_rest = self.rest.is_empty()
            || self.followed(self.rest[0]).as_ref() == Some(&self.rest)
                && !self.begins_in(self.rest[0], 1, None);
        is_linked && is_rest && !self.begins_in(self.run[0], self.run.len() as u32, self.name)
    }

    /// Returns true if the cluster before the run is linked to it, or is already the last.
    fn is_end(&self) -> bool {
        let next = self.rig.get(self.end) & self.rig.end();
        self.end == 0 || next == self.run[0] || next > self.rig.end() - 8
    }
}

#[test]
fn an_interrupted_removal_is_completed_unless_another_program_changed_it() {
    let mut random = Seed::new(20_261_128).stream("cuts");
    let mut completed = 0;
    for number in 0..3000 {
        let mut cut = Cut::new(number, &mut random);
        let run = FirstRun {
            first: cut.run[0],
            clusters: cut.run.len() as u32,
            rest: whole(&cut.rest),
        };
        let is_due = cut.is_own() && cut.is_end();
        let is_name_due = cut.name.is_some_and(|name| {
            let entry = cut.entries.iter().find(|it| it.0 == name.place());
            entry.is_some_and(|it| it.1 == name.sum && it.2 == run.first)
        });
        let before = cut.rig.disk.clone();
        let mut due = cut.rig.table();
        if is_due {
            cut.run.iter().for_each(|it| due[*it as usize] = 0);
            if cut.end != 0 {
                due[cut.end as usize] |= cut.rig.end();
            }
        }
        let mut volume = cut.rig.volume();
        let is_done = done(volume.finish_run(&mut cut.rig.disk, cut.name, cut.end, run));
        let what = format!("{number}: {run:?} {:?} {}", cut.name, cut.end);
        assert_eq!(is_done, is_due, "{what}");
        assert_eq!(cut.rig.table(), due, "{what}");
        if !is_due {
            assert!(cut.rig.disk.blocks == before.blocks, "{what}");
            continue;
        }
        completed += 1;
        let deleted = cut
            .name
            .map(|name| cut.rig.disk.entry(name.place())[0] == 0xE5);
        assert_eq!(deleted.unwrap_or(false), is_name_due, "{what}");
    }
    assert!((1000..2500).contains(&completed), "{completed}");
}
