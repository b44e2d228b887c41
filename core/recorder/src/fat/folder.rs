//! Folders: up to 1,000 recordings each, an index, and a fixed position for every name.
//!
//! ```text
//!   cluster   first                                  first + directory_clusters
//!             v                                      v
//!             directory, 335 blocks ................ index, 250 blocks
//!   block     0: `.`, `..`, CARDIOGR.IDX, 13 free entries
//!             1: 5 entries each for 3 recordings, 1 free entry
//!             2: the next 3, and so on: recording n is in block 1 + n % 1000 / 3
//! ```
//!
//! Free entries are marked as deleted, so entries may be written in any order. All entries of a name are in one block,
//! so a power cut leaves either all of them or none.

use super::index::INDEX_BLOCKS;
use super::names::{INDEX, LongName, NAME_ENTRIES_MAX};
use super::record::{ENTRIES_OF_BLOCK, File, Intent, Kind, Place};
use super::root::{is_file, is_free};
use super::table::SLICE_BLOCKS;
use super::{Error, FatVolume};
use crate::volume::{Blocks, FOLDER_RECORDINGS_MAX, FileId, Name, ShortText};
use cardiograph_card::{BLOCK_BYTES, Block};
use hadris_fat_raw::{
    ATTR_DIRECTORY, ATTR_HIDDEN, ATTR_SYSTEM, ENTRY_FREE, ENTRY_SIZE, ShortEntry, Slot,
};

/// Recordings whose names share one block of a directory.
pub(super) const NAMES_OF_BLOCK: u32 = (ENTRIES_OF_BLOCK / NAME_ENTRIES_MAX) as u32;
/// Number of blocks of a directory.
pub(super) const DIRECTORY_BLOCKS: u32 = 1 + FOLDER_RECORDINGS_MAX.div_ceil(NAMES_OF_BLOCK);
const DOT: Name = *b".          ";
const DOT_DOT: Name = *b"..         ";
/// Position of the index's entry in the first block.
const INDEX_ENTRY: usize = 2;

/// Result of a search for a folder.
pub(super) enum Found {
    /// A folder of this recorder that begins at this cluster.
    Own(u32),
    /// A file or folder of another program.
    Foreign,
    Nothing,
}

impl FatVolume {
    /// Finds the folder of a recording.
    pub(super) async fn find_folder<B: Blocks>(
        &mut self,
        card: &mut B,
        id: FileId,
    ) -> Result<Found, Error<B::Error>> {
        let number = id.number / FOLDER_RECORDINGS_MAX;
        if let Some(series) = self.series(id.prefix)
            && series.has_folder
            && series.folder.0 == number
        {
            return Ok(Found::Own(series.folder.1));
        }
        let Some((_, entry)) = self.root_entry(card, &id.folder_name()).await? else {
            return Ok(Found::Nothing);
        };
        let first = entry.first_cluster(self.layout.kind);
        let is_directory = entry.attributes() & ATTR_DIRECTORY != 0;
        if !is_directory || !self.is_own_folder(card, first).await? {
            return Ok(Found::Foreign);
        }
        self.know_folder(id.prefix, number, first);
        Ok(Found::Own(first))
    }

    /// Caches the most recently used folder.
    fn know_folder(&mut self, prefix: [u8; 3], number: u32, first: u32) {
        if let Some(series) = self.series_mut(prefix) {
            series.has_folder = true;
            series.folder = (number, first);
        }
    }

    /// Returns true if a directory is a folder of this recorder: it contains its index, and both are at their
    /// original positions. A copy made by a computer is not.
    pub(super) async fn is_own_folder<B: Blocks>(
        &mut self,
        card: &mut B,
        first: u32,
    ) -> Result<bool, Error<B::Error>> {
        let clusters = self.layout.folder_clusters();
        if !self.layout.has(first, clusters) {
            return Ok(false);
        }
        self.read(card, self.layout.block_of(first)).await?;
        let (entries, _) = self.block.as_chunks::<ENTRY_SIZE>();
        let Slot::Short(index) = Slot::parse(&entries[INDEX_ENTRY]) else {
            return Ok(false);
        };
        let index_first = first + self.layout.directory_clusters();
        let is_own = index.name() == INDEX
            && is_file(&index)
            && index.first_cluster(self.layout.kind) == index_first
            && index.size() == INDEX_BLOCKS * BLOCK_BYTES as u32;
        let folder = self.folder_file([0; 3], 0, Place { block: 0, index: 0 }, first);
        Ok(is_own
            && self
                .is_chain(card, folder.chain(&self.layout, clusters))
                .await?)
    }

    fn folder_file(&self, prefix: [u8; 3], number: u32, place: Place, first: u32) -> File {
        File {
            kind: Kind::Folder,
            prefix,
            extension: *b"   ",
            number,
            place,
            first,
            clusters: self.layout.folder_clusters(),
            epoch: 0,
            note: 0,
        }
    }

    /// Finds the folder of a recording, or creates it.
    pub(super) async fn folder_for<B: Blocks>(
        &mut self,
        card: &mut B,
        id: FileId,
    ) -> Result<u32, Error<B::Error>> {
        match self.find_folder(card, id).await? {
            Found::Own(first) => Ok(first),
            Found::Foreign => Err(Error::NameTaken(id.folder_name())),
            Found::Nothing => self.make_folder(card, id).await,
        }
    }

    /// Creates a folder: writes its contents to free clusters, then its chain, then its entry.
    async fn make_folder<B: Blocks>(
        &mut self,
        card: &mut B,
        id: FileId,
    ) -> Result<u32, Error<B::Error>> {
        let place = self.place_for_entry(card).await?;
        let clusters = self.layout.folder_clusters();
        let (first, found) = self.free_run(card, clusters, clusters).await?;
        if found < clusters {
            let longest_blocks = found * self.layout.cluster_blocks;
            return Err(Error::NoSpace { longest_blocks });
        }
        let number = id.number / FOLDER_RECORDINGS_MAX;
        let file = self.folder_file(id.prefix, number, place, first);
        self.is_ready = false;
        self.fill_folder(card, first).await?;
        self.begin(card, Intent::MakeFolder(file)).await?;
        self.write_chain(card, file.chain(&self.layout, clusters), 0)
            .await?;
        self.slot(card, place).await?;
        let mut entry = self.new_entry(file.name(), ATTR_DIRECTORY);
        entry.set_first_cluster(self.layout.kind, first);
        self.write_entry(card, place, &entry).await?;
        self.record.hint = first + clusters;
        self.know_folder(id.prefix, number, first);
        let free = self.record.free.map(|free| free.saturating_sub(clusters));
        self.done(card, free).await?;
        Ok(first)
    }

    /// Writes an empty directory and an empty index.
    async fn fill_folder<B: Blocks>(
        &mut self,
        card: &mut B,
        first: u32,
    ) -> Result<(), Error<B::Error>> {
        let head = self.folder_head(first);
        let start = self.layout.block_of(first);
        let directory_blocks = self.layout.directory_clusters() * self.layout.cluster_blocks;
        let blocks = self.layout.folder_clusters() * self.layout.cluster_blocks;
        for at in (0..blocks).step_by(SLICE_BLOCKS as usize) {
            let count = SLICE_BLOCKS.min(blocks - at);
            let mut make = |index: u32, out: &mut Block| {
                out.fill(0);
                if at + index >= directory_blocks {
                    return;
                }
                let (entries, _) = out.as_chunks_mut::<ENTRY_SIZE>();
                entries.iter_mut().for_each(|entry| entry[0] = ENTRY_FREE);
                if at + index == 0 {
                    let here = entries.iter_mut().zip(&head);
                    here.for_each(|(out, entry)| *out = entry.encode());
                }
            };
            let written = card.write(start + at, count, &mut make).await;
            written.map_err(Error::Card)?;
        }
        Ok(())
    }

    /// Returns the first entries of a directory.
    fn folder_head(&self, first: u32) -> [ShortEntry; INDEX_ENTRY + 1] {
        let kind = self.layout.kind;
        let mut dot = self.new_entry(DOT, ATTR_DIRECTORY);
        dot.set_first_cluster(kind, first);
        // In this field the root directory is cluster 0, even on FAT32.
        let dot_dot = self.new_entry(DOT_DOT, ATTR_DIRECTORY);
        let mut index = self.new_entry(INDEX, ATTR_HIDDEN | ATTR_SYSTEM);
        index.set_first_cluster(kind, first + self.layout.directory_clusters());
        index.set_size(INDEX_BLOCKS * BLOCK_BYTES as u32);
        [dot, dot_dot, index]
    }

    /// Finds consecutive free entries for a name in one block and leaves that block in the buffer: the
    /// entries at the number's own position, or any others if those are occupied.
    pub(super) async fn place_for_name<B: Blocks>(
        &mut self,
        card: &mut B,
        folder: u32,
        id: FileId,
        entries: usize,
    ) -> Result<Place, Error<B::Error>> {
        let start = self.layout.block_of(folder);
        let at = id.number % FOLDER_RECORDINGS_MAX;
        let block = start + 1 + at / NAMES_OF_BLOCK;
        let index = (at % NAMES_OF_BLOCK) as usize * NAME_ENTRIES_MAX;
        self.read_names(card, block, id).await?;
        if self.are_free(index, entries) {
            let index = index as u8;
            return Ok(Place { block, index });
        }
        let blocks = self.layout.directory_clusters() * self.layout.cluster_blocks;
        for block in start..start + blocks {
            self.read_names(card, block, id).await?;
            let found = (0..=ENTRIES_OF_BLOCK - entries).find(|at| self.are_free(*at, entries));
            if let Some(index) = found {
                let index = index as u8;
                return Ok(Place { block, index });
            }
        }
        Err(Error::DirectoryFull(id.folder_name()))
    }

    /// Reads a directory block and checks that no entry in it has the recording's name.
    async fn read_names<B: Blocks>(
        &mut self,
        card: &mut B,
        block: u32,
        id: FileId,
    ) -> Result<(), Error<B::Error>> {
        self.read(card, block).await?;
        let name = id.short_name();
        let (entries, _) = self.block.as_chunks::<ENTRY_SIZE>();
        let has_name = |raw| matches!(Slot::parse(raw), Slot::Short(entry) if entry.name() == name);
        match entries.iter().any(has_name) {
            true => Err(Error::NameTaken(name)),
            false => Ok(()),
        }
    }

    /// Fails if any entry of the folder has the name, even if a computer has put it elsewhere.
    pub(super) async fn check_name<B: Blocks>(
        &mut self,
        card: &mut B,
        id: FileId,
    ) -> Result<(), Error<B::Error>> {
        let first = match self.find_folder(card, id).await? {
            Found::Own(first) => first,
            Found::Foreign => return Err(Error::NameTaken(id.folder_name())),
            Found::Nothing => return Ok(()),
        };
        let start = self.layout.block_of(first);
        let blocks = self.layout.directory_clusters() * self.layout.cluster_blocks;
        for block in start..start + blocks {
            self.read_names(card, block, id).await?;
        }
        Ok(())
    }

    fn are_free(&self, index: usize, count: usize) -> bool {
        let (entries, _) = self.block.as_chunks::<ENTRY_SIZE>();
        entries[index..index + count].iter().all(is_free)
    }

    /// Writes a name's entries to the buffered block, from `begin` on.
    pub(super) async fn write_name<B: Blocks>(
        &mut self,
        card: &mut B,
        begin: Place,
        long: &LongName,
        entry: &ShortEntry,
    ) -> Result<(), Error<B::Error>> {
        let (entries, _) = self.block.as_chunks_mut::<ENTRY_SIZE>();
        let begin_at = usize::from(begin.index);
        for at in 0..long.entries() {
            entries[begin_at + at] = long.entry(at);
        }
        entries[begin_at + long.entries()] = entry.encode();
        self.write_back(card, begin.block).await
    }

    /// Removes a folder that contains nothing but its index. Returns false if it contains more.
    pub(super) async fn remove_folder<B: Blocks>(
        &mut self,
        card: &mut B,
        id: FileId,
    ) -> Result<bool, Error<B::Error>> {
        let Some((place, entry)) = self.root_entry(card, &id.folder_name()).await? else {
            return Ok(false);
        };
        let first = entry.first_cluster(self.layout.kind);
        let is_empty =
            self.is_own_folder(card, first).await? && self.is_empty_folder(card, first).await?;
        if !is_empty {
            return Ok(false);
        }
        let number = id.number / FOLDER_RECORDINGS_MAX;
        let file = self.folder_file(id.prefix, number, place, first);
        if let Some(series) = self.series_mut(id.prefix) {
            series.has_folder = false;
        }
        self.begin(card, Intent::RemoveFolder(file)).await?;
        self.erase(card, file).await?;
        self.done_freeing(card, file, 0).await?;
        Ok(true)
    }

    async fn is_empty_folder<B: Blocks>(
        &mut self,
        card: &mut B,
        first: u32,
    ) -> Result<bool, Error<B::Error>> {
        let start = self.layout.block_of(first);
        let blocks = self.layout.directory_clusters() * self.layout.cluster_blocks;
        for block in start..start + blocks {
            self.read(card, block).await?;
            let own = if block == start { INDEX_ENTRY + 1 } else { 0 };
            if !self.are_free(own, ENTRIES_OF_BLOCK - own) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the highest number of a recording in a folder of this recorder.
    pub(super) async fn highest_in<B: Blocks>(
        &mut self,
        card: &mut B,
        prefix: [u8; 3],
        folder: u32,
        first: u32,
    ) -> Result<Option<u32>, Error<B::Error>> {
        let start = self.layout.block_of(first);
        let blocks = self.layout.directory_clusters() * self.layout.cluster_blocks;
        let mut highest = None;
        for block in start..start + blocks {
            self.read(card, block).await?;
            for raw in self.block.as_chunks::<ENTRY_SIZE>().0 {
                if let Slot::Short(entry) = Slot::parse(raw) {
                    let name = entry.name();
                    let number = super::names::number_of(&name).unwrap_or(0);
                    let number = folder * FOLDER_RECORDINGS_MAX + number % FOLDER_RECORDINGS_MAX;
                    let id = FileId {
                        prefix,
                        extension: [name[8], name[9], name[10]],
                        number,
                    };
                    if is_file(&entry) && id.short_name() == name {
                        highest = highest.max(Some(number));
                    }
                }
            }
        }
        Ok(highest)
    }

    /// Returns the long name of a recording that belongs to a session.
    pub(super) fn long_name<E>(id: FileId, session: &str) -> Result<LongName, Error<E>> {
        let session = ShortText::new(session).ok_or(Error::BadName)?;
        Ok(LongName::new(id, session))
    }
}
