//! The operations of guests, as records of the journal store them; docs/formats.md documents them byte by
//! byte.

use super::entry::{BLOCKS_BEFORE_MAX, DirEntry};
use super::layout::Layout;
use super::record::{ENTRIES_OF_BLOCK, FILE_AT, Intent, Place, get, put};
use crate::volume::Name;
use cardiograph_card::Block;
use core::num::NonZeroU32;
use hadris_fat_raw::{lfn, lfn_checksum};

const MORE_AT: usize = 480;
/// Offsets from the beginning of a name that is deleted.
const BEFORE_AT: usize = FILE_AT + 4;
const INDEX_AT: usize = FILE_AT + 12;
const LONG_AT: usize = FILE_AT + 13;
const SUM_AT: usize = FILE_AT + 14;
const HAS_NAME_AT: usize = FILE_AT + 15;
/// Offsets of the entry that is written.
const TO_AT: usize = FILE_AT + 16;
const TO_INDEX_AT: usize = FILE_AT + 20;
const TO_SUM_AT: usize = FILE_AT + 21;
const CLUSTER_AT: usize = FILE_AT + 24;
const PARENT_AT: usize = FILE_AT + 28;

/// Value of a parent that does not change.
pub(super) const SAME_PARENT: u32 = u32::MAX;

/// The entries of a name. Block and index are separate fields, because a [`Place`] would add padding and
/// records stay in RAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NamePlace {
    /// Block with the short entry. No directory is in block 0.
    block: NonZeroU32,
    /// Blocks before it that contain a part of the long name, the nearest first; 0 for none.
    pub(super) before: [u32; BLOCKS_BEFORE_MAX],
    index: u8,
    /// Number of entries of the long name.
    pub(super) long_entries: u8,
    /// Checksum of the short name.
    pub(super) sum: u8,
}

impl NamePlace {
    pub(super) fn of(entry: &DirEntry) -> Option<NamePlace> {
        Some(NamePlace {
            before: entry.before,
            long_entries: entry.long_entries,
            ..NamePlace::of_short(entry.place, &entry.short)?
        })
    }

    /// Returns the entries of a name without a long one.
    pub(super) fn of_short(place: Place, name: &Name) -> Option<NamePlace> {
        Some(NamePlace {
            block: NonZeroU32::new(place.block)?,
            before: [0; BLOCKS_BEFORE_MAX],
            index: place.index,
            long_entries: 0,
            sum: lfn_checksum(name),
        })
    }

    /// Returns the position of the short entry.
    pub(super) fn place(&self) -> Place {
        Place {
            block: self.block.get(),
            index: self.index,
        }
    }
}

/// Position and checksum of the short entry to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    block: u32,
    index: u8,
    /// Checksum of the short name.
    pub(super) sum: u8,
}

impl Target {
    pub(super) fn new(place: Place, sum: u8) -> Target {
        let Place { block, index } = place;
        Target { block, index, sum }
    }

    /// Returns the position of the entry.
    pub(super) fn place(&self) -> Place {
        Place {
            block: self.block,
            index: self.index,
        }
    }
}

/// A chain, fragmented or not, and a checksum by which it is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WholeChain {
    /// The first cluster; 0 if there is none.
    pub(super) first: u32,
    pub(super) clusters: u32,
    /// Checksum: the sum of `mix` over its clusters.
    pub(super) sum: u32,
}

impl WholeChain {
    pub(super) const NONE: WholeChain = WholeChain {
        first: 0,
        clusters: 0,
        sum: 0,
    };
}

/// The first run of a chain that is freed, and the chain after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FirstRun {
    pub(super) first: u32,
    pub(super) clusters: u32,
    pub(super) rest: WholeChain,
}

/// Encodes the operation of a guest, and returns its number. `None` for operations of the recorder.
pub(super) fn encode(intent: &Intent, layout: &Layout, block: &mut Block) -> Option<u8> {
    match *intent {
        Intent::Erase { name, end, run } => {
            encode_name(name, layout, block);
            put(block, CLUSTER_AT, end);
            encode_run(run, block);
            Some(10)
        }
        Intent::Move {
            from,
            to,
            first,
            parent,
            old,
        } => {
            encode_name(from, layout, block);
            encode_target(to, layout, block);
            put(block, CLUSTER_AT, first);
            put(block, PARENT_AT, parent);
            let run = FirstRun {
                first: 0,
                clusters: 0,
                rest: old,
            };
            encode_run(run, block);
            Some(11)
        }
        Intent::Grow {
            last,
            first,
            clusters,
        } => {
            put(block, CLUSTER_AT, last);
            let rest = WholeChain::NONE;
            let run = FirstRun {
                first,
                clusters,
                rest,
            };
            encode_run(run, block);
            Some(12)
        }
        Intent::MakeDirectory { to, first } => {
            encode_target(to, layout, block);
            put(block, CLUSTER_AT, first);
            Some(13)
        }
        _ => None,
    }
}

/// Decodes the operation of a guest with this number. `moved` is added to all addresses.
pub(super) fn decode(number: u8, block: &Block, layout: &Layout, moved: u32) -> Option<Intent> {
    let cluster = get(block, CLUSTER_AT);
    let is_one = layout.has(cluster, 1);
    match number {
        10 if is_one || cluster == 0 => Some(Intent::Erase {
            name: decode_name(block, layout, moved)?,
            end: cluster,
            run: decode_run(block, layout)?,
        }),
        11 if is_one || cluster == 0 => {
            let parent = get(block, PARENT_AT);
            let is_parent = matches!(parent, 0 | SAME_PARENT) || layout.has(parent, 1);
            is_parent.then_some(Intent::Move {
                from: decode_name(block, layout, moved)?,
                to: decode_target(block, layout, moved)?,
                first: cluster,
                parent,
                old: decode_run(block, layout)?.rest,
            })
        }
        12 if is_one => {
            let run = decode_run(block, layout)?;
            (run.clusters > 0).then_some(Intent::Grow {
                last: cluster,
                first: run.first,
                clusters: run.clusters,
            })
        }
        13 if is_one => Some(Intent::MakeDirectory {
            to: decode_target(block, layout, moved)?,
            first: cluster,
        }),
        _ => None,
    }
}

fn encode_name(name: Option<NamePlace>, layout: &Layout, block: &mut Block) {
    let Some(name) = name else { return };
    put(block, FILE_AT, layout.relative(name.block.get()));
    for (at, before) in name.before.iter().enumerate() {
        if *before != 0 {
            put(block, BEFORE_AT + 4 * at, layout.relative(*before));
        }
    }
    block[INDEX_AT] = name.index;
    block[LONG_AT] = name.long_entries;
    block[SUM_AT] = name.sum;
    block[HAS_NAME_AT] = 1;
}

/// Decodes a name. Returns `None` if it is invalid, and `Some(None)` if the record has none.
fn decode_name(block: &Block, layout: &Layout, moved: u32) -> Option<Option<NamePlace>> {
    if block[HAS_NAME_AT] == 0 {
        return Some(None);
    }
    let place = place_at(block, FILE_AT, INDEX_AT, layout, moved)?;
    let name = NamePlace {
        block: NonZeroU32::new(place.block)?,
        index: place.index,
        before: core::array::from_fn(|at| match get(block, BEFORE_AT + 4 * at) {
            0 => 0,
            before => before.wrapping_add(moved),
        }),
        long_entries: block[LONG_AT],
        sum: block[SUM_AT],
    };
    let are_blocks = name
        .before
        .iter()
        .all(|it| *it == 0 || layout.is_block(*it));
    let is_possible = are_blocks && usize::from(name.long_entries) <= lfn::MAX_ENTRIES;
    is_possible.then_some(Some(name))
}

fn encode_target(to: Target, layout: &Layout, block: &mut Block) {
    put(block, TO_AT, layout.relative(to.block));
    block[TO_INDEX_AT] = to.index;
    block[TO_SUM_AT] = to.sum;
}

fn decode_target(block: &Block, layout: &Layout, moved: u32) -> Option<Target> {
    let place = place_at(block, TO_AT, TO_INDEX_AT, layout, moved)?;
    Some(Target::new(place, block[TO_SUM_AT]))
}

fn place_at(
    block: &Block,
    block_at: usize,
    index_at: usize,
    layout: &Layout,
    moved: u32,
) -> Option<Place> {
    let place = Place {
        block: get(block, block_at).wrapping_add(moved),
        index: block[index_at],
    };
    let is_place = layout.is_block(place.block) && usize::from(place.index) < ENTRIES_OF_BLOCK;
    is_place.then_some(place)
}

fn encode_run(run: FirstRun, block: &mut Block) {
    let rest = run.rest;
    let values = [run.first, run.clusters, rest.first, rest.clusters, rest.sum];
    for (at, value) in values.into_iter().enumerate() {
        put(block, MORE_AT + 4 * at, value);
    }
}

fn decode_run(block: &Block, layout: &Layout) -> Option<FirstRun> {
    let [first, clusters, next, rest, sum] =
        core::array::from_fn(|at| get(block, MORE_AT + 4 * at));
    // Without clusters the first one has no meaning.
    let first_of = |first, clusters| match clusters {
        0 => Some(0),
        _ => layout.has(first, clusters).then_some(first),
    };
    Some(FirstRun {
        first: first_of(first, clusters)?,
        clusters,
        rest: WholeChain {
            first: first_of(next, rest.min(1))?,
            clusters: rest,
            sum,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::layout::Root;
    use super::super::record::Record;
    use super::*;

    const TO: Target = Target {
        block: 71,
        index: 3,
        sum: 0xA5,
    };
    const CHAIN: WholeChain = WholeChain {
        first: 9,
        clusters: 3,
        sum: 0xDEAD_BEEF,
    };
    const RUN: FirstRun = FirstRun {
        first: 4,
        clusters: 2,
        rest: CHAIN,
    };

    fn intents() -> [Intent; 7] {
        let name = Some(NamePlace {
            block: NonZeroU32::MIN.saturating_add(59),
            index: 15,
            before: [61, 62],
            long_entries: 20,
            sum: 7,
        });
        let [end, last] = [5, 6];
        let moved = |from, parent, old| Intent::Move {
            from,
            to: TO,
            first: 8,
            parent,
            old,
        };
        [
            Intent::Erase {
                name,
                end: 0,
                run: RUN,
            },
            Intent::Erase {
                name: None,
                end,
                run: RUN,
            },
            moved(name, SAME_PARENT, CHAIN),
            moved(None, SAME_PARENT, WholeChain::NONE),
            moved(name, 0, WholeChain::NONE),
            Intent::Grow {
                last,
                first: 10,
                clusters: 90,
            },
            Intent::MakeDirectory { to: TO, first: 7 },
        ]
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let layout = Layout {
            root: Root::Cluster(2),
            data: 50,
            clusters_end: 100,
            ..Layout::NONE
        };
        for intent in intents() {
            let record = Record {
                intent,
                journal: 3,
                ..Record::NEW
            };
            let mut block = [0; 512];
            record.encode(&layout, &mut block);
            let read = Record::decode(&block, &layout, 3, 0).map(|record| record.intent);
            assert_eq!(read, Some(intent));
            // On a volume that is too small, no position is valid.
            let small = Layout {
                clusters_end: 4,
                ..layout
            };
            assert!(Record::decode(&block, &small, 3, 0).is_none());
        }
    }
}
