//! Free runs, and changes of chains.

use super::*;
use crate::fat::Error;
use crate::fat::table::Chain;
use crate::volume::Request;
use cardiograph_sim_world::{Random, Seed};
use core::ops::Range;

const KINDS: [FatKind; 2] = [FatKind::Fat16, FatKind::Fat32];

/// Entries per block.
fn per_block(kind: FatKind) -> u32 {
    match kind {
        FatKind::Fat32 => 128,
        _ => 256,
    }
}

/// Number of FAT blocks with entries of these clusters.
fn blocks_of(clusters: &Range<u32>, per_block: u32) -> u32 {
    (clusters.end - 1) / per_block - clusters.start / per_block + 1
}

/// A search for free clusters according to the documentation of `free_run`.
struct Reference<'a> {
    table: &'a [u32],
    enough: u32,
    wanted: u32,
    hint: u32,
    is_begin: &'a dyn Fn(u32) -> bool,
}

impl Reference<'_> {
    /// Returns the first run that is long enough, or the longest.
    fn in_range(&self, range: Range<u32>) -> (u32, u32) {
        let mut runs = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let length = (at..range.end)
                .take_while(|it| self.table[*it as usize] == 0)
                .count() as u32;
            let end = at + length;
            if let Some(begin) = (at..end).find(|it| (self.is_begin)(*it)) {
                runs.push((begin, end - begin));
            }
            at = end + 1;
        }
        let first = runs.iter().find(|run| run.1 >= self.enough);
        let longest = runs.iter().rev().max_by_key(|run| run.1);
        let (begin, length) = *first.or(longest).unwrap_or(&(0, 0));
        (begin, length.min(self.wanted))
    }

    fn run(&self) -> (u32, u32) {
        let end = self.table.len() as u32;
        let behind = self.in_range(self.hint..end);
        if behind.1 >= self.enough || self.hint == 2 {
            return behind;
        }
        let before = self.in_range(2..end.min(self.hint + self.wanted));
        if before.1 >= behind.1 { before } else { behind }
    }
}

/// Fills a table with runs of free and used clusters.
fn fill(rig: &mut Rig, random: &mut Random) {
    let mut at = if rig.layout.kind == FatKind::Fat32 {
        3
    } else {
        2
    };
    let longest = [3, 20, 120][random.below(3) as usize];
    let mut is_free = random.below(2) == 0;
    while at < rig.layout.clusters_end {
        let end = at + 1 + random.below(longest) as u32;
        for cluster in at..end.min(rig.layout.clusters_end) {
            let value = match random.below(4) {
                _ if is_free => 0,
                // Reserved bits of an entry that is otherwise 0.
                0 if rig.layout.kind == FatKind::Fat32 => 0x3000_0000,
                _ => cluster + 1,
            };
            rig.put(cluster, value);
        }
        at = end;
        is_free = !is_free;
    }
}

#[test]
fn a_free_run_is_the_first_that_is_long_enough_or_the_longest() {
    let mut random = Seed::new(20_261_126).stream("runs");
    for number in 0..600 {
        let cluster_blocks = [1, 2, 4][random.below(3) as usize];
        let shift = random.below(2) as u32 % cluster_blocks;
        let mut rig = Rig::new(Shape {
            kind: KINDS[number % 2],
            clusters: 280,
            cluster_blocks,
            shift,
        });
        fill(&mut rig, &mut random);
        let table = rig.table();
        let wanted = 1 + random.below(130) as u32;
        let enough = [wanted, 1, wanted.div_ceil(2)][random.below(3) as usize];
        let mut volume = rig.volume();
        volume.record.hint = random.below(300) as u32;
        let hint = match volume.record.hint {
            hint @ 2..282 => hint,
            _ => 2,
        };
        let (first, length) = done(volume.free_run(&mut rig.disk, enough, wanted));

        // At most an eighth of a file is left unused before the next one, and a unit is at most 1/128 of the card.
        let blocks = wanted * cluster_blocks;
        let wastes = |unit: u32| 8 * (blocks.next_multiple_of(unit) - blocks) > blocks;
        let fits = |unit: &u32| unit * 128 <= 280 * cluster_blocks;
        let mut units = (0..14).map(|it| 1 << it).filter(fits);
        let unit = units.rfind(|unit| !wastes(*unit));
        let unit = unit.unwrap_or(1);
        let data = rig.layout.data;
        let is_aligned =
            |cluster: u32| (data + (cluster - 2) * cluster_blocks).is_multiple_of(unit);
        let is_by_unit = unit > cluster_blocks && shift == 0;
        let mut due = Reference {
            table: &table,
            enough,
            wanted,
            hint,
            is_begin: &is_aligned,
        };
        let mut found = (0, 0);
        if is_by_unit {
            found = due.run();
        }
        if found.1 < enough {
            due.is_begin = &|_| true;
            found = due.run();
        }
        let what = format!("{number}: {enough} to {wanted} of {cluster_blocks} from {hint}");
        assert_eq!(length, found.1, "{what}");
        assert!(
            length == 0 || first == found.0,
            "{what}: {first}, {found:?}"
        );
        // The search reads the FAT once.
        let per_block = per_block(rig.layout.kind);
        let most = blocks_of(&(hint..282), per_block) + blocks_of(&(2..282), per_block);
        assert!(rig.disk.reads.len() as u32 <= most, "{what}");
    }
}

/// Returns the entries of a chain's clusters, according to the documentation of `Chain`.
fn entries_of(chain: Chain, end_mark: u32) -> Vec<u32> {
    let numbers = 1..=chain.clusters;
    let entry = |number: u32| match number {
        _ if number > chain.kept => 0,
        _ if number == chain.kept || number == chain.head => end_mark,
        _ => chain.first + number,
    };
    numbers.map(entry).collect()
}

/// Writes a chain to a FAT with other entries, and checks the FAT and the number of accesses.
fn write(kind: FatKind, clusters: Range<u32>, from: u32, random: &mut Random) {
    let per_block = per_block(kind);
    let mut rig = Rig::new(Shape {
        kind,
        clusters: 19 * per_block,
        cluster_blocks: 1,
        shift: 0,
    });
    let chain = Chain {
        first: clusters.start - from,
        clusters: clusters.end - clusters.start + from,
        kept: random.below(2) as u32 * random.below(3000) as u32,
        head: random.below(3000) as u32,
    };
    let chain = Chain {
        kept: chain.kept.min(chain.clusters),
        ..chain
    };
    // Other entries have any bits.
    for cluster in 2..rig.layout.clusters_end {
        let is_in = clusters.contains(&cluster);
        let value = if is_in {
            0x0123_4567
        } else {
            random.next_u64() as u32
        };
        rig.put(cluster, value);
    }
    let mut due = rig.table();
    let entries = entries_of(chain, rig.end());
    let range = clusters.start as usize..clusters.end as usize;
    due[range].copy_from_slice(&entries[from as usize..]);
    let mut volume = rig.volume();
    done(volume.write_chain(&mut rig.disk, chain, from));
    assert_eq!(rig.table(), due, "{chain:?} from {from}");

    // Only blocks with other entries are read. A command has up to 16 blocks, of which one is preserved.
    let parts = [clusters.start, clusters.end].map(|it| it % per_block != 0);
    let blocks = blocks_of(&clusters, per_block);
    let are_same = blocks == 1 && parts[0] && parts[1];
    let parts = parts.into_iter().filter(|is_part| *is_part).count();
    let reads = if are_same { 1 } else { parts };
    assert_eq!(rig.disk.reads.len(), reads, "{chain:?} from {from}");
    let is_split = parts == 2 && (2..=16).contains(&blocks);
    let commands = 2 * (blocks.div_ceil(16) + u32::from(is_split));
    assert_eq!(rig.disk.writes.len() as u32, commands, "{chain:?}");
    let written: u32 = rig.disk.writes.iter().map(|it| it.1).sum();
    assert_eq!(written, 2 * blocks, "{chain:?} from {from}");
    assert!(rig.disk.writes.iter().all(|it| it.1 <= 16));
}

/// Returns the length of the longest run of free clusters.
fn longest(table: &[u32]) -> u32 {
    let runs = table[2..].split(|entry| *entry != 0);
    runs.map(|run| run.len() as u32).max().unwrap_or(0)
}

/// Asks for a run of at least this length, and at most 2000 clusters more.
fn ask(rig: &mut Rig, volume: &mut FatVolume, least: u32, more: u32) -> Option<(u32, u32)> {
    rig.disk.reads.clear();
    let request = Request {
        prefix: *b"REC",
        extension: *b"CSV",
        blocks: least + more,
        blocks_min: least,
        shares: 1,
        note: 0,
    };
    match poll(volume.run_for(&mut rig.disk, &request)) {
        Ok(run) => Some(run),
        Err(Error::NoSpace { .. }) => None,
        Err(error) => panic!("{error:?}"),
    }
}

/// On a full card, a recorder removes recordings one by one, and asks for room after each.
#[test]
fn freed_clusters_are_found_without_another_search() {
    let mut random = Seed::new(20_261_128).stream("freed");
    let mut found_at_once = 0;
    for case in 0..200 {
        let mut rig = Rig::new(Shape {
            kind: KINDS[case % 2],
            clusters: 900,
            cluster_blocks: 1,
            shift: 0,
        });
        fill(&mut rig, &mut random);
        let mut volume = rig.volume();
        assert_eq!(ask(&mut rig, &mut volume, 60_000, 0), None);
        // Kept clusters may divide the longest run, which the volume does not notice.
        let mut most = 0;
        for _ in 0..8 {
            most = longest(&rig.table()).max(most);
            let first = 3 + random.below(850) as u32;
            let clusters = 1 + random.below(40) as u32;
            let chain = Chain {
                first,
                clusters,
                kept: random.below(2) as u32 * random.below(u64::from(clusters)) as u32,
                head: clusters,
            };
            for cluster in first..first + clusters {
                rig.put(cluster, cluster + 1);
            }
            done(volume.write_chain(&mut rig.disk, chain, chain.kept));
            let now = longest(&rig.table());
            let more = random.below(2000) as u32;
            assert_eq!(ask(&mut rig, &mut volume, now + 1, more), None);
            let run = ask(&mut rig, &mut volume, now, more).expect("there is such a run");
            assert_eq!(run.1, now);
            let table = rig.table();
            assert!((run.0..run.0 + run.1).all(|at| table[at as usize] == 0));
            if now > most {
                let blocks = blocks_of(&(run.0..run.0 + run.1 + 1), per_block(KINDS[case % 2]));
                assert!(rig.disk.reads.len() as u32 <= blocks, "{run:?}");
                found_at_once += 1;
            }
        }
    }
    assert!(found_at_once > 100, "{found_at_once}");
}

#[test]
fn a_chain_is_written_without_other_entries() {
    let mut random = Seed::new(20_261_127).stream("chains");
    for kind in KINDS {
        let per_block = per_block(kind);
        for blocks in [0, 1, 2, 16, 17] {
            for (before, after) in [(0, 0), (1, 1), (0, 1), (1, 0), (0, 9), (7, 0), (5, 6)] {
                let begin = per_block - before;
                let end = (1 + blocks) * per_block + after;
                if begin < end {
                    let from = random.below(2) as u32 * random.below(50) as u32;
                    write(kind, begin..end, from, &mut random);
                }
            }
        }
        write(kind, 20..per_block - 20, 0, &mut random);
    }
}

/// Compares the result for all entries of three clusters in two blocks of the FAT.
#[test]
fn a_chain_is_recognised_by_all_of_its_entries() {
    for kind in KINDS {
        let mut rig = Rig::new(Shape {
            kind,
            clusters: 300,
            cluster_blocks: 1,
            shift: 0,
        });
        let first = per_block(kind) - 1;
        let end = rig.end();
        let mut values = vec![0, 5, end, end - 7, end - 8];
        if kind == FatKind::Fat32 {
            values.extend([0x8000_0000, end | 0x1000_0000]);
        }
        let clusters = 3;
        let values_of = |cluster: u32| values.iter().copied().chain([cluster + 1]);
        let is_as =
            |entry: u32, due: u32| entry == due || due == end && (end - 7..=end).contains(&entry);
        let mut volume = rig.volume();
        for kept in 0..=3 {
            for head in 1..=3 {
                let chain = Chain {
                    first,
                    clusters,
                    kept,
                    head,
                };
                let [part, whole] = [kept, 3].map(|kept| entries_of(Chain { kept, ..chain }, end));
                for a in values_of(first) {
                    for b in values_of(first + 1) {
                        for c in values_of(first + 2) {
                            for (at, value) in (first..).zip([a, b, c]) {
                                rig.put(at, value);
                            }
                            let of = |due: &[u32]| {
                                [is_as(a, due[0]), is_as(b, due[1]), is_as(c, due[2])]
                            };
                            let (of_part, of_whole) = (of(&part), of(&whole));
                            let is_any =
                                |at: usize| [a, b, c][at] == 0 || of_part[at] || of_whole[at];
                            let what = format!("{chain:?} {:x?}", [a, b, c]);
                            let is_chain = done(volume.is_chain(&mut rig.disk, chain));
                            assert_eq!(is_chain, of_part == [true; 3], "{what}");
                            let is_part = done(volume.is_part_done(&mut rig.disk, chain));
                            assert_eq!(is_part, (0..3).all(is_any), "{what}");
                        }
                    }
                }
            }
        }
    }
}
