//! Files of the card for other tasks, such as a file server, before, during and after a recording.
//!
//! ```text
//!   CardFiles ── paths, listings, contents                              (mod.rs)
//!     ├── finished recordings, from the indices of their folders        (recordings.rs)
//!     ├── Walk ── directories and chains of any program's files         (fat/walk.rs)
//!     │     └── CardReader ── a block at a time                         (reader.rs)
//!     ├── unfinished recordings, as the recorder publishes them         (unfinished.rs)
//!     └── ReadDesk ── reads between the recorder's writes               (reads.rs)
//! ```
//!
//! These operations run in the caller's task, and only their block reads go through the recorder. Between two of
//! them the recorder may change the file system, so a file remembers the [`generation`](ReadDesk::generation) in
//! which it was looked up. The generation changes whenever clusters are freed that a reader may have located; the
//! reader then looks up the entry again, and continues if it is the same file.

mod reader;
mod recordings;
mod unfinished;

pub use recordings::RecordingPosition;
pub(crate) use unfinished::Table;
pub use unfinished::Unfinished;

use crate::fat::{ChainPosition, DirCursor, DosTime, Error, Layout, Node, Walk};
use crate::format::{binary, mark};
use crate::reads::{Lent, ReadClass, ReadDesk, ReadError};
use crate::volume::Extent;
use cardiograph_card::{BLOCK_BYTES, Block};
use core::cell::Cell;
use core::fmt;
use core::ops::Deref;
use reader::CardReader;

/// Number of blocks of a file that are located at once: 4 MiB, usually one block of the FAT.
const RUN_BLOCKS: u32 = 8192;

/// Longest name in a listing, in bytes; longer ones are shown by their short name.
const LISTED_NAME_BYTES_MAX: usize = 255;

/// File system of a mounted card, as the recorder's volume hands it to readers.
#[derive(Clone, Copy, Debug)]
pub struct FileSystem(pub(crate) Layout);

/// Reason why an operation on a file failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileError {
    /// There is no such file or directory.
    NotFound,
    /// A component of the path is a file, or a directory was expected.
    NotDirectory,
    /// A file was expected.
    IsDirectory,
    /// A component of the path is not a valid name.
    NameInvalid,
    /// The entry belongs to the recorder or the operating system.
    Hidden,
    /// The recorder is writing the file, or will use its folder or name.
    Recording,
    /// The entry is marked as read-only, or is the root directory.
    ReadOnly,
    /// Something already has this path.
    Exists,
    /// The directory is not empty.
    NotEmpty,
    /// The card or a directory has no room.
    Full,
    /// The file would be longer than 4 GiB.
    TooLong,
    /// The maximum number of uploads is in progress.
    Busy,
    /// A directory or a chain of clusters is damaged.
    Damaged,
    /// The file was replaced, removed or shortened since it was looked up.
    Changed,
    /// The card could not be read, for this reason.
    Read(ReadError),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            FileError::NotFound => f.write_str("there is no such file or directory"),
            FileError::NotDirectory => f.write_str("not a directory"),
            FileError::IsDirectory => f.write_str("a directory"),
            FileError::NameInvalid => f.write_str("the name is invalid"),
            FileError::Hidden => f.write_str("the file belongs to the recorder"),
            FileError::Recording => {
                f.write_str("the recorder uses the file, its folder or its name")
            }
            FileError::ReadOnly => f.write_str("the entry is read-only"),
            FileError::Exists => f.write_str("something already has this path"),
            FileError::NotEmpty => f.write_str("the directory is not empty"),
            FileError::Full => f.write_str("the card is full"),
            FileError::TooLong => f.write_str("the file would be longer than 4 GiB"),
            FileError::Busy => f.write_str("other uploads are in progress; try again later"),
            FileError::Damaged => {
                f.write_str("the file system is damaged here; check the card with fsck or chkdsk")
            }
            FileError::Changed => f.write_str("the file has changed since it was looked up"),
            FileError::Read(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for FileError {}

impl From<Error<ReadError>> for FileError {
    fn from(error: Error<ReadError>) -> FileError {
        match error {
            Error::Card(ReadError::Changed) | Error::Changed(_) => FileError::Changed,
            Error::Card(error) => FileError::Read(error),
            Error::NotFound => FileError::NotFound,
            Error::NotDirectory => FileError::NotDirectory,
            Error::NameInvalid | Error::BadName => FileError::NameInvalid,
            _ => FileError::Damaged,
        }
    }
}

impl From<ReadError> for FileError {
    fn from(error: ReadError) -> FileError {
        match error {
            ReadError::Changed => FileError::Changed,
            error => FileError::Read(error),
        }
    }
}

/// Files of the card behind a desk.
#[derive(Clone, Copy)]
pub struct CardFiles<'d, 'a> {
    desk: &'d ReadDesk<'a>,
}

/// An open file or directory of a card. It reserves nothing, so dropping it has no effect.
#[derive(Clone, Debug)]
pub struct CardFile {
    node: Node,
    /// Recording in progress that the file is or was.
    unfinished: Option<Unfinished>,
    generation: Cell<u32>,
    position: Cell<ChainPosition>,
    /// The run of blocks that was read last, and the number of its first block in the file.
    run: Cell<(u32, Extent)>,
}

impl CardFile {
    fn new(node: Node, unfinished: Option<Unfinished>, generation: u32) -> CardFile {
        let first = match &node {
            Node::Entry(entry) => entry.contents(),
            Node::Root => ChainPosition::of(0),
        };
        let run = match &unfinished {
            Some(file) => (0, file.extent),
            None => (
                0,
                Extent {
                    start: 0,
                    blocks: 0,
                },
            ),
        };
        CardFile {
            node,
            unfinished,
            generation: Cell::new(generation),
            position: Cell::new(first),
            run: Cell::new(run),
        }
    }

    /// Returns true for a directory.
    pub fn is_directory(&self) -> bool {
        self.unfinished.is_none()
            && match &self.node {
                Node::Root => true,
                Node::Entry(entry) => entry.is_directory(),
            }
    }

    /// Returns the recording in progress, if this file was one at its last lookup.
    pub fn unfinished(&self) -> Option<&Unfinished> {
        self.unfinished.as_ref()
    }

    /// Returns the length in bytes: for a recording in progress, its durable length without the last mark.
    pub fn bytes(&self) -> u64 {
        match (&self.unfinished, &self.node) {
            (Some(file), _) => file.bytes.into(),
            (None, Node::Entry(entry)) if !entry.is_directory() => entry.bytes.into(),
            (None, _) => 0,
        }
    }

    /// Returns the time of the last change; `None` for the root directory and a recording in progress.
    pub fn modified(&self) -> Option<DosTime> {
        match &self.node {
            Node::Entry(entry) if self.unfinished.is_none() => Some(entry.modified),
            _ => None,
        }
    }

    /// Returns the first cluster; 0 for an empty file, the root directory, and a recording that its directory does not
    /// name yet.
    pub fn first_cluster(&self) -> u32 {
        match &self.node {
            Node::Entry(entry) => entry.first,
            Node::Root => 0,
        }
    }
}

/// Position in a directory, with the block read last.
#[derive(Clone, Debug)]
pub struct Listing {
    cursor: DirCursor,
    reader: CardReader,
    /// Folder of recordings, whose unnamed recordings in progress come last.
    folder: Option<crate::volume::Name>,
    /// Number of slots of unfinished files passed; `None` before the end of the directory.
    slot: Option<u8>,
    name: [u8; LISTED_NAME_BYTES_MAX],
}

/// An entry of a listing.
#[derive(Clone, Debug)]
pub struct ListedFile<'l> {
    /// Name in its directory.
    pub name: &'l str,
    /// The file or directory.
    pub file: CardFile,
}

/// Bytes of a file, lent by the desk. Dropping them returns the buffer.
pub struct CardBytes<'d, 'a> {
    lent: Option<Lent<'d, 'a>>,
    from: usize,
    to: usize,
}

impl Deref for CardBytes<'_, '_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let bytes = self.lent.as_ref().map_or(&[][..], Lent::bytes);
        bytes.get(self.from..self.to).unwrap_or_default()
    }
}

impl<'d, 'a> CardFiles<'d, 'a> {
    /// Gives access to the files of the card behind `desk`.
    pub fn new(desk: &'d ReadDesk<'a>) -> Self {
        CardFiles { desk }
    }

    fn layout(&self) -> Result<Layout, FileError> {
        let system = self.desk.file_system();
        Ok(system.ok_or(ReadError::NoCard)?.0)
    }

    /// Looks up a file or directory. Components of the path are separated by `/`, are long or short names, and are
    /// matched without regard to case. A recording in progress is found under its final name, even before the directory
    /// contains that name.
    ///
    /// # Errors
    /// [`FileError::NotFound`], [`FileError::NotDirectory`], [`FileError::NameInvalid`], [`FileError::Hidden`],
    /// [`FileError::Damaged`], or a failed read.
    pub async fn open(&self, path: &str) -> Result<CardFile, FileError> {
        loop {
            match self.look_up(path).await {
                // A recording was removed during the lookup.
                Err(FileError::Changed) => (),
                result => return result,
            }
        }
    }

    async fn look_up(&self, path: &str) -> Result<CardFile, FileError> {
        let layout = self.layout()?;
        let generation = self.desk.generation();
        let mut reader = CardReader::new(generation);
        let found = Walk::new(reader.on(self.desk), &layout).lookup(path).await;
        let node = match found {
            Ok(node) => node,
            Err(Error::NotFound) => return self.unnamed(path, generation),
            Err(error) => return Err(error.into()),
        };
        if let Node::Entry(entry) = &node
            && entry.is_hidden
        {
            return Err(FileError::Hidden);
        }
        let unfinished = self.unfinished_of(&node, &layout)?;
        Ok(CardFile::new(node, unfinished, generation))
    }

    /// Finds a recording in progress that its directory does not name yet.
    fn unnamed(&self, path: &str, generation: u32) -> Result<CardFile, FileError> {
        let found = self.desk.unfinished(|file| file.is_at(path));
        let file = found.ok_or(FileError::NotFound)?;
        Ok(CardFile::new(Node::Root, Some(file), generation))
    }

    /// Returns the recording in progress behind an entry.
    fn unfinished_of(&self, node: &Node, layout: &Layout) -> Result<Option<Unfinished>, FileError> {
        let Node::Entry(entry) = node else {
            return Ok(None);
        };
        let first = match layout.is_cluster(entry.first) {
            true => layout.first_block(entry.first),
            false => return Ok(None),
        };
        let found = self.desk.unfinished(|file| file.extent.start == first);
        match found {
            // Its length is that of its preallocated space, until a mount has recovered it.
            None if entry.is_unfinished() => Err(FileError::NotFound),
            found => Ok(found),
        }
    }

    /// Returns the first recording in progress at or after `slot`, and its slot.
    pub fn next_unfinished(&self, slot: u8) -> Option<(u8, Unfinished)> {
        self.desk.next_unfinished(slot, |_| true)
    }

    /// Returns the epoch of a recording, which identifies it from its first mark on; `None` for any other file.
    ///
    /// # Errors
    /// [`FileError::Changed`], [`FileError::Damaged`], or a failed read.
    pub async fn epoch(&self, file: &CardFile) -> Result<Option<u32>, FileError> {
        if let Some(unfinished) = &file.unfinished {
            return Ok(Some(unfinished.epoch));
        }
        if file.is_directory() || file.bytes() < BLOCK_BYTES as u64 {
            return Ok(None);
        }
        let bytes = self.read(file, 0, BLOCK_BYTES).await?;
        Ok(bytes.first_chunk().and_then(epoch_of))
    }

    /// Updates the length of a recording in progress, which may have been finished meanwhile.
    ///
    /// # Errors
    /// [`FileError::Changed`] if it is another file now, or a failed read.
    pub async fn refresh(&self, file: &mut CardFile, path: &str) -> Result<(), FileError> {
        let Some(unfinished) = &file.unfinished else {
            return self.verify(file).await;
        };
        let (start, epoch) = (unfinished.extent.start, unfinished.epoch);
        if let Some(found) = self.desk.unfinished(|file| file.epoch == epoch) {
            file.unfinished = Some(found);
            return Ok(());
        }
        let found = self.open(path).await?;
        let layout = self.layout()?;
        let is_same = matches!(&found.node, Node::Entry(entry)
            if layout.is_cluster(entry.first) && layout.first_block(entry.first) == start);
        if !is_same {
            return Err(FileError::Changed);
        }
        *file = found;
        Ok(())
    }

    /// Checks whether a file is still the one that was looked up, after something was removed from the card.
    async fn verify(&self, file: &CardFile) -> Result<(), FileError> {
        let generation = self.desk.generation();
        if file.generation.get() == generation {
            return Ok(());
        }
        if let Some(unfinished) = &file.unfinished {
            let epoch = unfinished.epoch;
            let found = self.desk.unfinished(|file| file.epoch == epoch);
            found.ok_or(FileError::Changed)?;
        } else if let Node::Entry(entry) = &file.node {
            let layout = self.layout()?;
            let mut reader = CardReader::new(generation);
            let mut walk = Walk::new(reader.on(self.desk), &layout);
            if !walk.is_entry(entry).await? {
                return Err(FileError::Changed);
            }
        }
        file.generation.set(generation);
        Ok(())
    }

    /// Reads bytes of a file at `offset`: at most `bytes_max`, at most as many as a buffer of the desk holds, and
    /// none at the end of the file as of its last lookup.
    ///
    /// # Errors
    /// [`FileError::IsDirectory`], [`FileError::Changed`], [`FileError::Damaged`], or a failed read.
    pub async fn read(
        &self,
        file: &CardFile,
        offset: u64,
        bytes_max: usize,
    ) -> Result<CardBytes<'d, 'a>, FileError> {
        if file.is_directory() {
            return Err(FileError::IsDirectory);
        }
        let left = file.bytes().saturating_sub(offset);
        let bytes = usize::try_from(left).map_or(bytes_max, |left| left.min(bytes_max));
        if bytes == 0 {
            let (lent, from, to) = (None, 0, 0);
            return Ok(CardBytes { lent, from, to });
        }
        // Files are shorter than 4 GiB.
        let block = (offset / BLOCK_BYTES as u64) as u32;
        let from = (offset % BLOCK_BYTES as u64) as usize;
        let blocks = (from + bytes).div_ceil(BLOCK_BYTES) as u32;
        loop {
            let extent = self.extent(file, block, blocks).await;
            let lent = match extent {
                Ok(extent) => {
                    let generation = file.generation.get();
                    let (start, count) = (extent.start, extent.blocks);
                    let lent = self.desk.lend(start, count, ReadClass::Bulk, generation);
                    lent.await.map_err(FileError::from)
                }
                Err(error) => Err(error),
            };
            match lent {
                Ok(lent) => {
                    let to = (from + bytes).min(lent.bytes().len());
                    let lent = Some(lent);
                    return Ok(CardBytes { lent, from, to });
                }
                Err(FileError::Changed) => self.verify(file).await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the blocks of the card that contain blocks of a file.
    async fn extent(&self, file: &CardFile, block: u32, blocks: u32) -> Result<Extent, FileError> {
        let (begin, run) = file.run.get();
        let within = |(begin, run): (u32, Extent)| {
            let skipped = block
                .checked_sub(begin)
                .filter(|skipped| *skipped < run.blocks)?;
            Some(Extent {
                start: run.start + skipped,
                blocks: blocks.min(run.blocks - skipped),
            })
        };
        if let Some(extent) = within((begin, run)) {
            return Ok(extent);
        }
        if file.unfinished.is_some() {
            return Err(FileError::Changed);
        }
        let layout = self.layout()?;
        let mut reader = CardReader::new(file.generation.get());
        let mut position = file.position.get();
        let mut walk = Walk::new(reader.on(self.desk), &layout);
        let run = walk.extent_at(&mut position, block, RUN_BLOCKS).await?;
        file.position.set(position);
        file.run.set((block, run));
        within((block, run)).ok_or(FileError::Damaged)
    }

    /// Begins to list a directory.
    ///
    /// # Errors
    /// Those of [`open`](CardFiles::open), and [`FileError::NotDirectory`].
    pub async fn list(&self, path: &str) -> Result<Listing, FileError> {
        let directory = self.open(path).await?;
        if !directory.is_directory() {
            return Err(FileError::NotDirectory);
        }
        let layout = self.layout()?;
        let mut reader = CardReader::new(directory.generation.get());
        let walk = Walk::new(reader.on(self.desk), &layout);
        let cursor = walk.open(&directory.node)?;
        let folder = match &directory.node {
            Node::Entry(entry) => Some(entry.short_name()),
            Node::Root => None,
        };
        Ok(Listing {
            cursor,
            reader,
            folder,
            slot: None,
            name: [0; LISTED_NAME_BYTES_MAX],
        })
    }

    /// Returns the next entry of a directory, or `None` after the last one. Hidden entries are omitted; recordings
    /// in progress that have no name in the directory yet come last.
    ///
    /// # Errors
    /// [`FileError::Changed`] if the card was exchanged, [`FileError::Damaged`], or a failed read.
    pub async fn next<'l>(
        &self,
        listing: &'l mut Listing,
    ) -> Result<Option<ListedFile<'l>>, FileError> {
        let layout = self.layout()?;
        while listing.slot.is_none() {
            let Listing {
                cursor,
                reader,
                name,
                ..
            } = &mut *listing;
            reader.follow(self.desk)?;
            let mut walk = Walk::new(reader.on(self.desk), &layout);
            let before = *cursor;
            let found = match walk.next(cursor, name).await.map_err(FileError::from) {
                // Files were removed meanwhile, which moves no entry of a directory.
                Err(FileError::Changed) => {
                    *cursor = before;
                    continue;
                }
                found => found?,
            };
            let Some((entry, text)) = found else {
                listing.slot = Some(0);
                break;
            };
            if entry.is_hidden {
                continue;
            }
            let node = Node::Entry(entry);
            let Ok(unfinished) = self.unfinished_of(&node, &layout) else {
                continue;
            };
            let generation = listing.reader.generation();
            let name = core::str::from_utf8(&listing.name[text]).unwrap_or_default();
            let file = CardFile::new(node, unfinished, generation);
            return Ok(Some(ListedFile { name, file }));
        }
        Ok(self.next_unnamed(listing))
    }

    /// Returns the next recording in progress that this directory will name.
    fn next_unnamed<'l>(&self, listing: &'l mut Listing) -> Option<ListedFile<'l>> {
        let folder = listing.folder?;
        let slot = listing.slot?;
        let (slot, file) = self.desk.next_unfinished(slot, |file| {
            !file.is_named && file.id.folder_name() == folder
        })?;
        listing.slot = Some(slot + 1);
        let bytes = file.write_name(&mut listing.name);
        let name = core::str::from_utf8(&listing.name[..bytes]).unwrap_or_default();
        let file = CardFile::new(Node::Root, Some(file), listing.reader.generation());
        Some(ListedFile { name, file })
    }
}

/// Returns the epoch in block 0 of a recording.
fn epoch_of(block: &Block) -> Option<u32> {
    let text = mark::read(block).map(|(mark, _)| (mark.epoch, mark.index));
    let found = text.or_else(|| binary::read(block).map(|head| (head.epoch, head.index)));
    found
        .filter(|(_, index)| *index == 0)
        .map(|(epoch, _)| epoch)
}
