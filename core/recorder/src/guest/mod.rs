//! Files of the card for other tasks, such as a file server, before, during and after a recording.
//!
//! ```text
//!   CardFiles ── paths, listings, contents                              (mod.rs)
//!     ├── finished recordings, from the indices of their folders        (recordings.rs)
//!     ├── Walk ── directories and chains of any program's files         (fat/walk.rs)
//!     │     └── OnDesk ── a block at a time                             (reader.rs)
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
#[cfg(test)]
mod tests;
mod unfinished;

pub use recordings::RecordingPosition;
pub(crate) use unfinished::Table;
pub use unfinished::{Growing, Unfinished};

use crate::fat::{ChainPosition, DirCursor, DosTime, Error, Layout, Node, Walk};
use crate::format::{binary, mark};
use crate::reads::{Lent, ReadClass, ReadDesk, ReadError};
use crate::volume::{Extent, FileId};
use cardiograph_card::{BLOCK_BYTES, Block};
use core::cell::Cell;
use core::fmt::{self, Write as _};
use core::ops::Deref;
use reader::OnDesk;

/// Number of blocks of a file that are located at once: 4 MiB, usually one block of the FAT.
const RUN_BLOCKS: u32 = 8192;

/// Longest name in a listing, in bytes; longer ones are shown by their short name.
pub const LISTED_NAME_BYTES_MAX: usize = 255;

/// Path of a recording, such as `LOG00000/LOG00012.CSV`.
type RecordingPath = heapless::String<24>;

/// File system of a mounted card, as the recorder's volume hands it to readers.
#[derive(Clone, Copy, Debug)]
pub struct FileSystem(pub(crate) Layout);

/// Reason why an operation on a file failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
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
    growing: Option<Growing>,
    generation: Cell<u32>,
    position: Cell<ChainPosition>,
    /// The run of blocks that was read last, and the number of its first block in the file.
    run: Cell<(u32, Extent)>,
}

impl CardFile {
    fn new(node: Node, growing: Option<Growing>, generation: u32) -> CardFile {
        let first = match &node {
            Node::Entry(entry) => entry.contents(),
            Node::Root => ChainPosition::of(0),
        };
        let run = match &growing {
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
            growing,
            generation: Cell::new(generation),
            position: Cell::new(first),
            run: Cell::new(run),
        }
    }

    /// Returns true for a directory.
    pub fn is_directory(&self) -> bool {
        self.growing.is_none()
            && match &self.node {
                Node::Root => true,
                Node::Entry(entry) => entry.is_directory(),
            }
    }

    /// Returns the recording in progress, if this file was one at its last lookup.
    pub fn growing(&self) -> Option<&Growing> {
        self.growing.as_ref()
    }

    /// Returns the length in bytes: for a recording in progress, its durable length without the last mark.
    pub fn bytes(&self) -> u64 {
        match (&self.growing, &self.node) {
            (Some(file), _) => file.bytes.into(),
            (None, Node::Entry(entry)) if !entry.is_directory() => entry.bytes.into(),
            (None, _) => 0,
        }
    }

    /// Returns the blocks of the card that contain blocks of the file, if it is known.
    fn located(&self, block: u32, blocks: u32) -> Option<Extent> {
        let (begin, run) = self.run.get();
        let skipped = block
            .checked_sub(begin)
            .filter(|skipped| *skipped < run.blocks)?;
        Some(Extent {
            start: run.start + skipped,
            blocks: blocks.min(run.blocks - skipped),
        })
    }

    /// Returns the time of the last change; `None` for the root directory and a recording in progress.
    pub fn modified(&self) -> Option<DosTime> {
        match &self.node {
            Node::Entry(entry) if self.growing.is_none() => Some(entry.modified),
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

/// Position in a directory.
#[derive(Clone, Debug)]
pub struct Listing {
    cursor: DirCursor,
    generation: u32,
    /// Folder of recordings, whose unnamed recordings in progress come last.
    folder: Option<crate::volume::Name>,
    /// Number of slots of unfinished files passed; `None` before the end of the directory.
    slot: Option<u8>,
}

/// An entry of a listing.
#[derive(Clone, Debug)]
pub struct ListedFile<'n> {
    /// Name in its directory.
    pub name: &'n str,
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
        let file = self.open_protected(path).await?;
        match &file.node {
            Node::Entry(entry) if entry.is_hidden => Err(FileError::Hidden),
            _ => Ok(file),
        }
    }

    /// Looks up like [`open`](CardFiles::open), but also finds [protected](crate::is_protected) files, such as a device's
    /// settings. For the device itself: a server would give them away.
    ///
    /// # Errors
    /// Those of [`open`](CardFiles::open) except [`FileError::Hidden`].
    pub async fn open_protected(&self, path: &str) -> Result<CardFile, FileError> {
        loop {
            match self.look_up(path).await {
                // A recording was removed during the lookup.
                Err(FileError::Changed) => (),
                result => return result,
            }
        }
    }

    /// Looks up a recording.
    ///
    /// # Errors
    /// Those of [`open`](CardFiles::open).
    pub async fn open_recording(&self, id: FileId) -> Result<CardFile, FileError> {
        let mut path = RecordingPath::new();
        // The longest path of a recording fits.
        let _ = write!(path, "{id}");
        self.open(&path).await
    }

    async fn look_up(&self, path: &str) -> Result<CardFile, FileError> {
        let layout = self.layout()?;
        let generation = self.desk.generation();
        let reader = OnDesk::new(self.desk, generation);
        let found = Walk::new(reader, &layout).lookup(path).await;
        let node = match found {
            Ok(node) => node,
            Err(Error::NotFound) => return self.unnamed(path, generation),
            Err(error) => return Err(error.into()),
        };
        let growing = self.growing_of(&node, &layout)?;
        Ok(CardFile::new(node, growing, generation))
    }

    /// Finds a recording in progress that its directory does not name yet.
    fn unnamed(&self, path: &str, generation: u32) -> Result<CardFile, FileError> {
        let found = self.desk.unfinished(|file| file.is_at(path));
        let file = found.ok_or(FileError::NotFound)?;
        Ok(CardFile::new(Node::Root, Some(file.into()), generation))
    }

    /// Returns the recording in progress behind an entry.
    fn growing_of(&self, node: &Node, layout: &Layout) -> Result<Option<Growing>, FileError> {
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
            found => Ok(found.map(Growing::from)),
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
        if let Some(growing) = &file.growing {
            return Ok(Some(growing.epoch));
        }
        if file.bytes() < BLOCK_BYTES as u64 {
            return Ok(None);
        }
        let bytes = self.read(file, 0, BLOCK_BYTES).await?;
        Ok(bytes.first_chunk().and_then(epoch_of))
    }

    /// Updates the length of a recording in progress, which may have been finished meanwhile.
    ///
    /// # Errors
    /// [`FileError::Changed`] if it is another file now, or a failed read.
    pub async fn refresh(&self, file: &mut CardFile) -> Result<(), FileError> {
        let Some(growing) = file.growing else {
            return self.verify(file).await;
        };
        if let Some(found) = self.desk.unfinished(|file| file.epoch == growing.epoch) {
            file.growing = Some(found.into());
            return Ok(());
        }
        let found = match self.open_recording(growing.id).await {
            Err(FileError::NotFound) => return Err(FileError::Changed),
            found => found?,
        };
        let layout = self.layout()?;
        let start = growing.extent.start;
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
        if let Some(growing) = &file.growing {
            let found = self.desk.unfinished(|file| file.epoch == growing.epoch);
            found.ok_or(FileError::Changed)?;
        } else if let Node::Entry(entry) = &file.node {
            let layout = self.layout()?;
            let mut walk = Walk::new(OnDesk::new(self.desk, generation), &layout);
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
        loop {
            if let Some(bytes) = self.read_located(file, offset, bytes_max).await? {
                return Ok(bytes);
            }
            self.locate(file, offset).await?;
        }
    }

    /// Reads like [`read`](CardFiles::read), but looks nothing up: returns `None` if the blocks have to be
    /// [located](CardFiles::locate) first.
    ///
    /// # Errors
    /// [`FileError::IsDirectory`], or a failed read.
    pub async fn read_located(
        &self,
        file: &CardFile,
        offset: u64,
        bytes_max: usize,
    ) -> Result<Option<CardBytes<'d, 'a>>, FileError> {
        if file.is_directory() {
            return Err(FileError::IsDirectory);
        }
        let left = file.bytes().saturating_sub(offset);
        let bytes = usize::try_from(left).map_or(bytes_max, |left| left.min(bytes_max));
        if bytes == 0 {
            let (lent, from, to) = (None, 0, 0);
            return Ok(Some(CardBytes { lent, from, to }));
        }
        let from = (offset % BLOCK_BYTES as u64) as usize;
        let blocks = (from + bytes).div_ceil(BLOCK_BYTES) as u32;
        let Some(extent) = file.located(block_at(offset), blocks) else {
            return Ok(None);
        };
        let generation = file.generation.get();
        let lent = self
            .desk
            .lend(extent.start, extent.blocks, ReadClass::Bulk, generation);
        match lent.await {
            Ok(lent) => {
                let to = (from + bytes).min(lent.bytes().len());
                let lent = Some(lent);
                Ok(Some(CardBytes { lent, from, to }))
            }
            Err(ReadError::Changed) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Looks up which blocks contain the bytes of a file at `offset`.
    ///
    /// # Errors
    /// [`FileError::Changed`], [`FileError::Damaged`], or a failed read.
    pub async fn locate(&self, file: &CardFile, offset: u64) -> Result<(), FileError> {
        loop {
            self.verify(file).await?;
            match self.extend_run(file, block_at(offset)).await {
                // Something was removed during the lookup.
                Err(FileError::Changed) if file.growing.is_none() => (),
                result => return result,
            }
        }
    }

    /// Looks up the run of blocks that contains a block of a file.
    async fn extend_run(&self, file: &CardFile, block: u32) -> Result<(), FileError> {
        if file.located(block, 1).is_some() {
            return Ok(());
        }
        if file.growing.is_some() {
            return Err(FileError::Changed);
        }
        let layout = self.layout()?;
        let mut position = file.position.get();
        let reader = OnDesk::new(self.desk, file.generation.get());
        let mut walk = Walk::new(reader, &layout);
        let run = walk.extent_at(&mut position, block, RUN_BLOCKS).await?;
        file.position.set(position);
        file.run.set((block, run));
        file.located(block, 1).map(|_| ()).ok_or(FileError::Damaged)
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
        let generation = directory.generation.get();
        let walk = Walk::new(OnDesk::new(self.desk, generation), &layout);
        let cursor = walk.open(&directory.node)?;
        let folder = match &directory.node {
            Node::Entry(entry) => Some(entry.short_name()),
            Node::Root => None,
        };
        Ok(Listing {
            cursor,
            generation,
            folder,
            slot: None,
        })
    }

    /// Returns the next entry of a directory, or `None` after the last one. Hidden entries are omitted; recordings
    /// in progress that have no name in the directory yet come last. `name` is memory for its name.
    ///
    /// # Errors
    /// [`FileError::Changed`] if the card was exchanged, [`FileError::Damaged`], or a failed read.
    pub async fn next<'n>(
        &self,
        listing: &mut Listing,
        name: &'n mut [u8; LISTED_NAME_BYTES_MAX],
    ) -> Result<Option<ListedFile<'n>>, FileError> {
        let layout = self.layout()?;
        while listing.slot.is_none() {
            let generation = self.follow(listing.generation)?;
            listing.generation = generation;
            let cursor = &mut listing.cursor;
            let mut walk = Walk::new(OnDesk::new(self.desk, generation), &layout);
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
            let Ok(growing) = self.growing_of(&node, &layout) else {
                continue;
            };
            let name = core::str::from_utf8(&name[text]).unwrap_or_default();
            let file = CardFile::new(node, growing, generation);
            return Ok(Some(ListedFile { name, file }));
        }
        Ok(self.next_unnamed(listing, name))
    }

    /// Returns the generation in which a list continues after something was removed from the card.
    ///
    /// # Errors
    /// [`ReadError::OtherCard`] if the card was exchanged or mounted again after this generation.
    fn follow(&self, generation: u32) -> Result<u32, ReadError> {
        match self.desk.is_other_card(generation) {
            true => Err(ReadError::OtherCard),
            false => Ok(self.desk.generation()),
        }
    }

    /// Returns the next recording in progress that this directory will name.
    fn next_unnamed<'n>(
        &self,
        listing: &mut Listing,
        name: &'n mut [u8],
    ) -> Option<ListedFile<'n>> {
        let folder = listing.folder?;
        let slot = listing.slot?;
        let (slot, file) = self.desk.next_unfinished(slot, |file| {
            !file.is_named && file.id.folder_name() == folder
        })?;
        listing.slot = Some(slot + 1);
        let bytes = file.write_name(name);
        let name = core::str::from_utf8(&name[..bytes]).unwrap_or_default();
        let file = CardFile::new(Node::Root, Some(file.into()), listing.generation);
        Some(ListedFile { name, file })
    }
}

/// Returns the number of the block that contains this byte; files are shorter than 4 GiB.
fn block_at(offset: u64) -> u32 {
    (offset / BLOCK_BYTES as u64) as u32
}

/// Returns the epoch in block 0 of a recording.
fn epoch_of(block: &Block) -> Option<u32> {
    let text = mark::read(block).map(|(mark, _)| (mark.epoch, mark.index));
    let found = text.or_else(|| binary::read(block).map(|head| (head.epoch, head.index)));
    found
        .filter(|(_, index)| *index == 0)
        .map(|(epoch, _)| epoch)
}
