//! The root directory: looking for entries, places for new ones, and changing them.

use super::layout::Root;
use super::record::{ENTRIES_OF_BLOCK, File, Place};
use super::table::SLICE_BLOCKS;
use super::{Error, FatVolume};
use crate::volume::{Blocks, Name};
use hadris_fat_raw::{
    ATTR_DIRECTORY, ATTR_READ_ONLY, ATTR_SYSTEM, ATTR_VOLUME_ID, ENTRY_FREE, ENTRY_SIZE,
    MAX_DIR_ENTRIES, ShortEntry, Slot,
};

/// The journal's file.
pub(super) const JOURNAL: Name = *b"CARDIOGRJNL";
/// The last number that a name can have.
pub(super) const NUMBER_LAST: u32 = 99_999;
/// What names of recordings that are removed end with.
const RECORDINGS: [[u8; 3]; 2] = [*b"CSV", *b"BIN"];

const BLOCKS_MAX: u32 = MAX_DIR_ENTRIES / ENTRIES_OF_BLOCK as u32;

/// How a root directory without an end mark ends.
#[derive(Clone, Copy)]
pub(super) struct RootEnd {
    /// Its last cluster, or 0 if it has a fixed place.
    pub(super) last: u32,
    /// It has as many entries as a directory can have.
    pub(super) is_longest: bool,
}

/// Where a new entry can go.
pub(super) enum Room {
    At(Place),
    Full(RootEnd),
}

/// What is in the root directory.
pub(super) struct Seen {
    pub(super) journal: Option<(Place, ShortEntry)>,
    /// The highest number in a name of the pattern LLLddddd.
    pub(super) number_last: u32,
}

impl FatVolume {
    /// Shows every entry, until one is not passed over or the end mark was shown. Gives the end of a
    /// directory that has been shown in full and has no end mark.
    async fn scan_root<B: Blocks>(
        &mut self,
        card: &mut B,
        pass: &mut dyn FnMut(Place, Slot) -> bool,
    ) -> Result<Option<RootEnd>, Error<B::Error>> {
        let (mut start, blocks, mut cluster) = match self.layout.root {
            Root::Fixed { start, blocks } => (start, blocks, 0),
            Root::Cluster(first) => (
                self.layout.block_of(first),
                self.layout.cluster_blocks,
                first,
            ),
        };
        let mut seen_blocks = 0;
        loop {
            for block in start..start + blocks {
                self.read(card, block).await?;
                for (index, raw) in self.block.as_chunks::<ENTRY_SIZE>().0.iter().enumerate() {
                    let slot = Slot::parse(raw);
                    let index = index as u8;
                    if !pass(Place { block, index }, slot) || slot == Slot::End {
                        return Ok(None);
                    }
                }
            }
            seen_blocks += blocks;
            let end = RootEnd {
                last: cluster,
                is_longest: seen_blocks + blocks > BLOCKS_MAX,
            };
            if cluster == 0 {
                return Ok(Some(end));
            }
            let entry = self.entry(card, cluster).await?;
            let next = self.layout.kind.next(entry, self.layout.clusters_end - 1);
            match next {
                Ok(None) => return Ok(Some(end)),
                Ok(Some(next)) if !end.is_longest => cluster = next,
                _ => return Err(Error::DamagedRoot),
            }
            start = self.layout.block_of(cluster);
        }
    }

    /// Looks for what a mount has to know.
    pub(super) async fn look_at_root<B: Blocks>(
        &mut self,
        card: &mut B,
    ) -> Result<Seen, Error<B::Error>> {
        let mut journal = None;
        let mut number_last = 0;
        self.scan_root(card, &mut |place, slot| {
            if let Slot::Short(entry) = slot {
                if entry.name() == JOURNAL && is_file(&entry) {
                    journal = Some((place, entry));
                }
                number_last = number_last.max(number_of(&entry.name()).unwrap_or(0));
            }
            true
        })
        .await?;
        Ok(Seen {
            journal,
            number_last,
        })
    }

    /// Where a new entry can go.
    pub(super) async fn room<B: Blocks>(&mut self, card: &mut B) -> Result<Room, Error<B::Error>> {
        let mut place = None;
        let end = self
            .scan_root(card, &mut |at, slot| {
                let is_free = matches!(slot, Slot::Free | Slot::End);
                if is_free {
                    place = Some(at);
                }
                !is_free
            })
            .await?;
        match (place, end) {
            (Some(place), _) => Ok(Room::At(place)),
            (None, Some(end)) if end.last != 0 && !end.is_longest => Ok(Room::Full(end)),
            _ => Err(Error::DirectoryFull),
        }
    }

    /// The finished recording with the lowest number that is not below `least`.
    pub(super) async fn oldest<B: Blocks>(
        &mut self,
        card: &mut B,
        least: u32,
    ) -> Result<Option<(u32, Place, ShortEntry)>, Error<B::Error>> {
        let mut oldest: Option<(u32, Place, ShortEntry)> = None;
        let mut has_long_name = false;
        self.scan_root(card, &mut |place, slot| {
            let had_long_name =
                core::mem::replace(&mut has_long_name, matches!(slot, Slot::Long(_)));
            let Slot::Short(entry) = slot else {
                return true;
            };
            let number = number_of(&entry.name()).filter(|number| *number >= least);
            if let Some(number) = number
                && !had_long_name
                && is_finished_recording(&entry)
                && oldest.is_none_or(|(lowest, ..)| number < lowest)
            {
                oldest = Some((number, place, entry));
            }
            true
        })
        .await?;
        Ok(oldest)
    }

    /// Whether an entry of another name begins with one of some clusters: a computer that repairs a card
    /// makes files of chains that have none.
    pub(super) async fn is_claimed<B: Blocks>(
        &mut self,
        card: &mut B,
        first: u32,
        clusters: u32,
        own: &Name,
    ) -> Result<bool, Error<B::Error>> {
        let kind = self.layout.kind;
        let mut is_claimed = false;
        self.scan_root(card, &mut |_, slot| {
            if let Slot::Short(entry) = slot {
                let is_in = entry.first_cluster(kind).wrapping_sub(first) < clusters;
                is_claimed |= is_in && entry.name() != *own;
            }
            !is_claimed
        })
        .await?;
        Ok(is_claimed)
    }

    /// Reads an entry; its block is at hand afterwards.
    pub(super) async fn slot<B: Blocks>(
        &mut self,
        card: &mut B,
        place: Place,
    ) -> Result<Slot, Error<B::Error>> {
        self.read(card, place.block).await?;
        let (entries, _) = self.block.as_chunks::<ENTRY_SIZE>();
        Ok(Slot::parse(&entries[usize::from(place.index)]))
    }

    /// The entry of a file, if it is still there.
    pub(super) async fn entry_of<B: Blocks>(
        &mut self,
        card: &mut B,
        file: &File,
        first: u32,
    ) -> Result<Option<ShortEntry>, Error<B::Error>> {
        let slot = self.slot(card, file.place).await?;
        let Slot::Short(entry) = slot else {
            return Ok(None);
        };
        let is_it = entry.name() == file.name
            && is_file(&entry)
            && entry.first_cluster(self.layout.kind) == first;
        Ok(is_it.then_some(entry))
    }

    /// Writes an entry, whose block is at hand.
    pub(super) async fn write_entry<B: Blocks>(
        &mut self,
        card: &mut B,
        place: Place,
        entry: &ShortEntry,
    ) -> Result<(), Error<B::Error>> {
        let at = usize::from(place.index) * ENTRY_SIZE;
        self.block[at..at + ENTRY_SIZE].copy_from_slice(&entry.encode());
        self.write_back(card, place.block).await
    }

    /// Deletes an entry, whose block is at hand.
    pub(super) async fn delete_entry<B: Blocks>(
        &mut self,
        card: &mut B,
        place: Place,
    ) -> Result<(), Error<B::Error>> {
        self.block[usize::from(place.index) * ENTRY_SIZE] = ENTRY_FREE;
        self.write_back(card, place.block).await
    }

    /// Empties a cluster, but for an entry at its start.
    pub(super) async fn write_directory<B: Blocks>(
        &mut self,
        card: &mut B,
        cluster: u32,
        entry: Option<ShortEntry>,
    ) -> Result<(), Error<B::Error>> {
        let start = self.layout.block_of(cluster);
        let blocks = self.layout.cluster_blocks;
        for at in (0..blocks).step_by(SLICE_BLOCKS as usize) {
            let count = SLICE_BLOCKS.min(blocks - at);
            card.write(start + at, count, &mut |index, out| {
                out.fill(0);
                if let Some(entry) = entry
                    && at + index == 0
                {
                    out[..ENTRY_SIZE].copy_from_slice(&entry.encode());
                }
            })
            .await
            .map_err(Error::Card)?;
        }
        Ok(())
    }
}

fn is_file(entry: &ShortEntry) -> bool {
    entry.attributes() & (ATTR_DIRECTORY | ATTR_VOLUME_ID) == 0
}

fn is_finished_recording(entry: &ShortEntry) -> bool {
    let name = entry.name();
    is_file(entry)
        && entry.attributes() & (ATTR_SYSTEM | ATTR_READ_ONLY) == 0
        && RECORDINGS.iter().any(|extension| name.ends_with(extension))
}

/// The number in a name of the pattern LLLddddd.
fn number_of(name: &Name) -> Option<u32> {
    let is_pattern =
        name[..3].iter().all(u8::is_ascii_uppercase) && name[3..8].iter().all(u8::is_ascii_digit);
    let digits = || name[3..8].iter().map(|digit| u32::from(digit - b'0'));
    is_pattern.then(|| digits().fold(0, |number, digit| 10 * number + digit))
}

/// The name with a number, if its characters can be.
pub(super) fn name_of(prefix: [u8; 3], number: u32, extension: [u8; 3]) -> Option<Name> {
    let is_good = prefix.iter().all(u8::is_ascii_uppercase)
        && extension
            .iter()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    let digit = |at: u32| b'0' + (number / 10_u32.pow(at) % 10) as u8;
    is_good.then(|| {
        core::array::from_fn(|at| match at {
            0..3 => prefix[at],
            3..8 => digit(7 - at as u32),
            _ => extension[at - 8],
        })
    })
}
