//! Reads directories and chains, without the state of the volume: all that it needs is the layout.
//!
//! Everything is bounded, whatever a card contains: a directory ends after 65,536 entries, and a chain after the number
//! of clusters in the volume. A chain that is longer, or leaves the volume, is an error.

use super::entry::{
    ChainPosition, DirCursor, DirEntry, LongParts, NameSink, Node, Text, is_name, is_short_name,
};
use super::layout::Layout;
use super::record::{ENTRIES_OF_BLOCK, Place};
use super::{Error, FatVolume};
use crate::recover::Reader;
use crate::volume::{Blocks, Extent};
use cardiograph_card::Block;
use core::ops::Deref;
use core::slice::from_mut;
use hadris_fat_raw::{ENTRY_SIZE, MAX_DIR_ENTRIES, Slot};

/// Reads the directories and chains of a volume, a block at a time. Nothing else may use the reader
/// meanwhile: a block that it holds already is not read again.
pub(crate) struct Walk<'l, R> {
    reader: R,
    layout: &'l Layout,
    /// The block that the reader holds.
    held: Option<u32>,
}

impl<'l, R: Reader> Walk<'l, R> {
    pub(crate) fn new(reader: R, layout: &'l Layout) -> Self {
        Walk {
            reader,
            layout,
            held: None,
        }
    }

    pub(super) fn layout(&self) -> &'l Layout {
        self.layout
    }

    /// Returns the beginning of a directory.
    ///
    /// # Errors
    /// [`Error::NotDirectory`] if it is a file, and [`Error::DamagedDirectory`] if its first cluster does not
    /// exist.
    pub(crate) fn open(&self, node: &Node) -> Result<DirCursor, Error<R::Error>> {
        let cursor = match node {
            Node::Root => DirCursor::root(self.layout),
            Node::Entry(entry) if !entry.is_directory() => return Err(Error::NotDirectory),
            Node::Entry(entry) => DirCursor::of(self.layout, entry.first),
        };
        cursor.ok_or(Error::DamagedDirectory)
    }

    /// Returns the next entry of a directory, and the position of its name in `name`. Passes over volume
    /// labels, `.` and `..`. A long name that is invalid, or does not fit, is replaced by the short one.
    ///
    /// # Errors
    /// [`Error::DamagedDirectory`], or a card error.
    pub(crate) async fn next(
        &mut self,
        cursor: &mut DirCursor,
        name: &mut [u8],
    ) -> Result<Option<(DirEntry, core::ops::Range<usize>)>, Error<R::Error>> {
        let mut sink = NameSink::Text(Text::new(name));
        let Some(entry) = self.find(cursor, &mut sink).await? else {
            return Ok(None);
        };
        Ok(match sink {
            NameSink::Text(text) => Some((entry, text.range())),
            NameSink::Match { .. } => None,
        })
    }

    /// Finds a path: components are separated by `/`, are long or short names, and are matched without regard to case.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotDirectory`], [`Error::NameInvalid`], [`Error::DamagedDirectory`], or
    /// a card error.
    pub(crate) async fn lookup(&mut self, path: &str) -> Result<Node, Error<R::Error>> {
        let mut node = Node::Root;
        let path = path.strip_prefix('/').unwrap_or(path);
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.is_empty() {
            return Ok(node);
        }
        for name in path.split('/') {
            node = self
                .find_in(&node, name)
                .await?
                .map(Node::Entry)
                .ok_or(Error::NotFound)?;
        }
        Ok(node)
    }

    /// Finds a name in a directory. Everything in a hidden directory is hidden too.
    pub(super) async fn find_in(
        &mut self,
        node: &Node,
        name: &str,
    ) -> Result<Option<DirEntry>, Error<R::Error>> {
        if !is_name(name) {
            return Err(Error::NameInvalid);
        }
        let mut cursor = self.open(node)?;
        let is_same = false;
        let mut sink = NameSink::Match { name, is_same };
        let mut found = self.find(&mut cursor, &mut sink).await?;
        if let (Some(found), Node::Entry(above)) = (&mut found, node) {
            found.is_hidden |= above.is_hidden;
        }
        Ok(found)
    }

    /// Returns the next entry whose name the sink accepts.
    async fn find(
        &mut self,
        cursor: &mut DirCursor,
        sink: &mut NameSink<'_>,
    ) -> Result<Option<DirEntry>, Error<R::Error>> {
        let mut parts = LongParts::default();
        while let Some((place, slot)) = self.next_slot(cursor).await? {
            match slot {
                Slot::End => {
                    // The next call finds the end again.
                    cursor.index = place.index;
                    return Ok(None);
                }
                Slot::Long(part) => parts.push(&part, place.block, sink),
                Slot::Short(entry) => {
                    let span = parts.end(&entry, place.block);
                    let is_shown = entry.is_visible() && is_short_name(&entry.name());
                    if is_shown && sink.end(&entry, span) {
                        return Ok(Some(DirEntry::new(self.layout, &entry, place, span)));
                    }
                }
                Slot::Free => parts = LongParts::default(),
            }
        }
        Ok(None)
    }

    /// Returns the next 32 bytes of a directory, or `None` at the end of its last cluster.
    pub(super) async fn next_slot(
        &mut self,
        cursor: &mut DirCursor,
    ) -> Result<Option<(Place, Slot)>, Error<R::Error>> {
        if usize::from(cursor.index) == ENTRIES_OF_BLOCK && !self.next_block(cursor).await? {
            return Ok(None);
        }
        let place = Place {
            block: cursor.block,
            index: cursor.index,
        };
        let slot = self.slot_at(place.block, place.index, cursor.blocks_left + 1);
        let slot = slot.await?;
        cursor.index += 1;
        Ok(Some((place, slot)))
    }

    /// Returns the 32 bytes at a place of a directory, of which `blocks` blocks from this one on are consecutive.
    pub(super) async fn slot_at(
        &mut self,
        block: u32,
        index: u8,
        blocks: u32,
    ) -> Result<Slot, Error<R::Error>> {
        self.load(block, blocks).await?;
        let block = self.reader.block();
        let (entries, _) = block.as_chunks::<ENTRY_SIZE>();
        Ok(Slot::parse(&entries[usize::from(index)]))
    }

    /// Moves a cursor to the next block. Returns false if there is none.
    async fn next_block(&mut self, cursor: &mut DirCursor) -> Result<bool, Error<R::Error>> {
        let passed = cursor.passed + ENTRIES_OF_BLOCK as u32;
        if cursor.blocks_left > 0 {
            cursor.block += 1;
            cursor.blocks_left -= 1;
        } else if cursor.cluster == 0 {
            return Ok(false);
        } else {
            let next = self.next_cluster(cursor.cluster).await;
            let next = next.map_err(|error| match error {
                Error::DamagedChain => Error::DamagedDirectory,
                error => error,
            })?;
            let Some(next) = next else {
                return Ok(false);
            };
            cursor.cluster = next;
            cursor.block = self.layout.block_of(next);
            cursor.blocks_left = self.layout.cluster_blocks - 1;
        }
        // No valid directory is longer: the chain is probably cyclic.
        if passed >= MAX_DIR_ENTRIES {
            return Err(Error::DamagedDirectory);
        }
        cursor.passed = passed;
        cursor.index = 0;
        Ok(true)
    }

    /// Finds block `block` of a chain, and returns the consecutive blocks there, at most `blocks_max`. Begins at the
    /// position of the last call unless that is after the block.
    ///
    /// # Errors
    /// [`Error::DamagedChain`] if the chain ends before that block, or leaves the volume; or a card error.
    pub(crate) async fn extent_at(
        &mut self,
        position: &mut ChainPosition,
        block: u32,
        blocks_max: u32,
    ) -> Result<Extent, Error<R::Error>> {
        let index = block / self.layout.cluster_blocks;
        let within = block % self.layout.cluster_blocks;
        if index >= self.layout.clusters_end || !self.layout.has(position.first, 1) {
            return Err(Error::DamagedChain);
        }
        if position.index > index {
            *position = ChainPosition::of(position.first);
        }
        while position.index < index {
            let next = self.next_cluster(position.cluster).await?;
            position.cluster = next.ok_or(Error::DamagedChain)?;
            position.index += 1;
        }
        let start = self.layout.block_of(position.cluster) + within;
        let mut blocks = self.layout.cluster_blocks - within;
        while blocks < blocks_max {
            match self.next_cluster(position.cluster).await? {
                Some(next) if next == position.cluster + 1 => position.cluster = next,
                _ => break,
            }
            position.index += 1;
            blocks += self.layout.cluster_blocks;
        }
        let blocks = blocks.min(blocks_max);
        Ok(Extent { start, blocks })
    }

    /// Returns the cluster after this one in its chain.
    pub(super) async fn next_cluster(
        &mut self,
        cluster: u32,
    ) -> Result<Option<u32>, Error<R::Error>> {
        let (kind, per_block) = (self.layout.kind, self.layout.entries_of_block());
        self.load(self.layout.fat + cluster / per_block, 1).await?;
        let at = (cluster % per_block) as usize * kind.entry_len();
        let stored = kind.decode(cluster.into(), &self.reader.block()[at..]);
        let next = kind.next(stored, self.layout.clusters_end - 1);
        next.map_err(|_| Error::DamagedChain)
    }

    /// Reads a block, unless the reader holds it. `blocks` blocks from there on will probably be read next.
    async fn load(&mut self, block: u32, blocks: u32) -> Result<(), Error<R::Error>> {
        if self.held != Some(block) {
            self.held = None;
            let read = self.reader.read_ahead(block, blocks).await;
            read.map_err(Error::Card)?;
            self.held = Some(block);
        }
        Ok(())
    }
}

/// A card, with the block buffer of its volume.
pub(super) struct OnCard<'a, B> {
    card: &'a mut B,
    block: &'a mut Block,
}

impl<B: Blocks> Reader for OnCard<'_, B> {
    type Error = B::Error;

    async fn read(&mut self, block: u32) -> Result<(), B::Error> {
        self.card.read(block, from_mut(self.block)).await
    }

    fn block(&self) -> impl Deref<Target = Block> {
        &*self.block
    }
}

impl FatVolume {
    /// Reads this card through the volume's own buffer.
    pub(super) fn walk<'a, B: Blocks>(&'a mut self, card: &'a mut B) -> Walk<'a, OnCard<'a, B>> {
        let block = &mut self.block;
        Walk::new(OnCard { card, block }, &self.layout)
    }

    /// Finds a path: components are separated by `/`, are long or short names, and are matched without regard to case.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotDirectory`], [`Error::NameInvalid`], [`Error::DamagedDirectory`],
    /// [`Error::NotMounted`], or a card error.
    pub async fn lookup<B: Blocks>(
        &mut self,
        card: &mut B,
        path: &str,
    ) -> Result<Node, Error<B::Error>> {
        self.check_ready()?;
        self.walk(card).lookup(path).await
    }

    /// Returns the beginning of a directory.
    ///
    /// # Errors
    /// [`Error::NotDirectory`] if it is a file, [`Error::DamagedDirectory`], or [`Error::NotMounted`].
    pub fn open_directory<B: Blocks>(
        &mut self,
        card: &mut B,
        node: &Node,
    ) -> Result<DirCursor, Error<B::Error>> {
        self.check_ready()?;
        self.walk(card).open(node)
    }

    /// Calls `show` with the entries of a directory and their names, from `cursor` on, until it returns false:
    /// the cursor is then before the refused entry, so that the listing can continue there. Returns true at
    /// the end of the directory. Hidden entries are included, volume labels, `.` and `..` are not. A long name
    /// that is invalid, or does not fit into `name`, is replaced by the short one.
    ///
    /// # Errors
    /// [`Error::DamagedDirectory`], [`Error::NotMounted`], or a card error.
    pub async fn list_directory<B: Blocks>(
        &mut self,
        card: &mut B,
        cursor: &mut DirCursor,
        name: &mut [u8],
        mut show: impl FnMut(&DirEntry, &str) -> bool,
    ) -> Result<bool, Error<B::Error>> {
        self.check_ready()?;
        let mut walk = self.walk(card);
        loop {
            let before = *cursor;
            let Some((entry, text)) = walk.next(cursor, name).await? else {
                return Ok(true);
            };
            let text = core::str::from_utf8(&name[text]).unwrap_or_default();
            if !show(&entry, text) {
                *cursor = before;
                return Ok(false);
            }
        }
    }

    /// Finds block `block` of a file, and returns the consecutive blocks of the card there, at most
    /// `blocks_max`. Faster if the position is that of an earlier call for a block before this one.
    ///
    /// # Errors
    /// [`Error::DamagedChain`] if the file's chain ends before that block, [`Error::NotMounted`], or a card
    /// error.
    pub async fn extent_at<B: Blocks>(
        &mut self,
        card: &mut B,
        position: &mut ChainPosition,
        block: u32,
        blocks_max: u32,
    ) -> Result<Extent, Error<B::Error>> {
        self.check_ready()?;
        self.walk(card).extent_at(position, block, blocks_max).await
    }
}
