//! The storage behind the server: files on a card, in a directory, or in the memory of a test.

use crate::Error;
use core::ops::Deref;

/// Maximum length of a path in a request, in bytes after decoding.
pub const PATH_BYTES_MAX: usize = 255;
/// Maximum length of a recording's path, in bytes.
pub const RECORDING_PATH_BYTES_MAX: usize = 64;
/// Maximum length of a session's name, in bytes.
pub const SESSION_BYTES_MAX: usize = 32;

/// Path of a recording.
pub type RecordingPath = heapless::String<RECORDING_PATH_BYTES_MAX>;
/// Name of a session; empty if the recording has none.
pub type SessionName = heapless::String<SESSION_BYTES_MAX>;

/// Files as the server sees them. All connections share one storage in one thread.
///
/// A path begins with `/`, separates its components with single slashes, and does not end with one, except for the
/// root, `/`. It has at most [`PATH_BYTES_MAX`] bytes. The server has already refused `..`, backslashes, control
/// characters, trailing dots and spaces, and hidden names; a storage additionally refuses whatever else could escape
/// it, such as symbolic links, with [`Error::Forbidden`].
///
/// A connection that ends drops its futures, files, listings and uploads at any await. An operation that has
/// begun to change the storage is then completed or undone, not left half done.
#[expect(
    async_fn_in_trait,
    reason = "connections share one thread, so that futures need not be Send"
)]
pub trait Storage {
    /// An open file or directory: small, and dropped without access to the storage.
    type File;
    /// A position in a directory, with a buffer for the current name.
    type Listing;
    /// An unfinished upload, under a temporary, hidden name. Dropping it abandons it: the storage removes the
    /// temporary file then or at its next start.
    type Upload;
    /// Bytes of a file, lent from the storage's read buffer, so that they are sent without a copy.
    type Bytes<'a>: Deref<Target = [u8]>
    where
        Self: 'a;

    /// Looks up a file or directory.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotDirectory`], [`Error::Forbidden`], or a failure of the card.
    async fn open(&self, path: &str) -> Result<Self::File, Error>;

    /// Returns the properties of a file as of its last [`open`](Self::open) or [`refresh`](Self::refresh).
    fn stat(&self, file: &Self::File) -> Stat;

    /// Updates the properties of a file that the recorder is writing: its durable length grows, and the file
    /// becomes finished when it is closed, even if it gets another name then.
    ///
    /// # Errors
    /// [`Error::Changed`] if the file is another one now, [`Error::OtherCard`], or a failure of the card.
    async fn refresh(&self, file: &mut Self::File) -> Result<(), Error>;

    /// Reads at most `bytes_max` bytes at `offset`: at least 1, or none at the end of the file as of its last
    /// lookup. The storage chooses the length that suits its read buffer, but a read at a multiple of 512 returns
    /// at least 512 bytes, or all up to the end of the file if they are fewer, unless `bytes_max` is less.
    ///
    /// # Errors
    /// [`Error::IsDirectory`], [`Error::Changed`] if the file was replaced, removed, truncated or overwritten after
    /// the lookup, so that no response mixes two versions, [`Error::OtherCard`], [`Error::Busy`], or a failure of the
    /// card.
    async fn read<'a>(
        &'a self,
        file: &Self::File,
        offset: u64,
        bytes_max: usize,
    ) -> Result<Self::Bytes<'a>, Error>;

    /// Reads like [`read`](Self::read), but looks nothing up, so that its future is small: returns `None` if the bytes
    /// have to be [located](Self::locate) first.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    async fn read_located<'a>(
        &'a self,
        file: &Self::File,
        offset: u64,
        bytes_max: usize,
    ) -> Result<Option<Self::Bytes<'a>>, Error> {
        self.read(file, offset, bytes_max).await.map(Some)
    }

    /// Looks up where the bytes of a file at `offset` are, for [`read_located`](Self::read_located).
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    async fn locate(&self, _file: &Self::File, _offset: u64) -> Result<(), Error> {
        Ok(())
    }

    /// Returns a file as the value that [`Direct::send_file`](crate::Direct::send_file) of its sockets knows, or `None` if it
    /// can only be read.
    #[cfg(feature = "computer")]
    fn as_any<'f>(&self, _file: &'f Self::File) -> Option<&'f dyn core::any::Any> {
        None
    }

    /// Begins to list a directory.
    ///
    /// # Errors
    /// Those of [`open`](Self::open), and [`Error::NotDirectory`] if the path is a file.
    async fn list(&self, directory: &str) -> Result<Self::Listing, Error>;

    /// Returns the next entry of a directory, or `None` after the last one. The order is the same each time
    /// unless the directory changes. Hidden and temporary files are omitted. A finished recording may have
    /// [`Version::Whole`] here if its epoch would cost a read. `name` is memory for its name.
    ///
    /// # Errors
    /// [`Error::Changed`] if the position is no longer valid, [`Error::OtherCard`], or a failure of the card.
    async fn next<'n>(
        &self,
        listing: &mut Self::Listing,
        name: &'n mut NameBuffer,
    ) -> Result<Option<Entry<'n>>, Error>;

    /// Begins an upload to a temporary name in the directory of `path`. `bytes` is the exact length, if it is
    /// known, so that the storage can refuse an upload that does not fit.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the directory does not exist, [`Error::IsDirectory`] if `path` is a directory,
    /// [`Error::Recording`], [`Error::Full`], [`Error::Busy`] if too many uploads are in progress, or another
    /// failure.
    async fn create(&self, path: &str, bytes: Option<u64>) -> Result<Self::Upload, Error>;

    /// Appends bytes to an upload.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::OtherCard`], or a failure of the card.
    async fn append(&self, upload: &mut Self::Upload, bytes: &[u8]) -> Result<(), Error>;

    /// Returns the length in bytes of the buffer that [`append`](Self::append) fills before it waits for a card, so that
    /// its duration says something about the card. 0 if there is no card.
    fn write_bytes(&self) -> usize {
        0
    }

    /// Makes an upload durable and gives it its name in one step, replacing an old file of that name. Returns
    /// true if there was no old file. `path` is the one with which the upload was begun.
    ///
    /// # Errors
    /// [`Error::Recording`] or [`Error::IsDirectory`] if such a file or a directory has taken the name meanwhile, or a
    /// failure of the card. The old file is then unchanged, and the temporary one is removed.
    async fn commit(&self, upload: Self::Upload, path: &str) -> Result<bool, Error>;

    /// Removes an upload that was not completed.
    async fn discard(&self, upload: Self::Upload);

    /// Renames a file or directory, in one step; `to` must be free.
    ///
    /// # Errors
    /// [`Error::Exists`] only if nothing else prevents the change; [`Error::NotFound`], [`Error::Recording`], or another
    /// failure.
    async fn rename(&self, from: &str, to: &str) -> Result<(), Error>;

    /// Removes a file or an empty directory, or, if `is_recursive`, a directory with everything in it.
    ///
    /// # Errors
    /// [`Error::NotEmpty`], [`Error::Recording`] if the recorder is writing the file or one in the directory,
    /// or another failure.
    async fn remove(&self, path: &str, is_recursive: bool) -> Result<(), Error>;

    /// Returns true if the storage can [copy](Self::copy). A card cannot: a copy would keep a buffer for its writes while
    /// it waits for one for its reads, and several copies could wait for each other.
    fn copies(&self) -> bool {
        false
    }

    /// Copies a file, or a directory with everything that clients can see in it, to a path that is free or, for a file,
    /// belongs to another file, which is replaced in one step.
    ///
    /// # Errors
    /// Those of [`open`](Self::open), [`create`](Self::create) and [`commit`](Self::commit).
    async fn copy(&self, _from: &str, _to: &str) -> Result<(), Error> {
        Err(Error::Forbidden)
    }

    /// Sets the time of the last change of a file, in s since 1970-01-01 UTC; returns false if the storage cannot.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    async fn set_modified(&self, _path: &str, _modified_s: u64) -> Result<bool, Error> {
        Ok(false)
    }

    /// Creates a directory.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::NotFound`] if its parent does not exist, or another failure.
    async fn make_directory(&self, path: &str) -> Result<(), Error>;

    /// Returns the recording at a position of the index and advances the position, or returns `None` after the
    /// last one. Recordings are ordered by prefix, then by number; those in progress are included, with the
    /// totals of their durable part.
    ///
    /// # Errors
    /// [`Error::Busy`], or a failure of the card.
    async fn record(&self, position: &mut Position) -> Result<Option<Recording>, Error>;

    /// Returns the size of the storage and its free space, if they are known without reading the card.
    fn space(&self) -> Option<Space> {
        None
    }
}

/// Properties of a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// File or directory.
    pub kind: Kind,
    /// Length in bytes; of a file in progress, its durable length. 0 for a directory.
    pub bytes: u64,
    /// Time of the last change in s since 1970-01-01 UTC, if the storage knows it.
    pub modified_s: Option<u64>,
    /// Identity of the contents.
    pub version: Version,
    /// The recorder is writing the file.
    pub is_growing: bool,
}

/// Kind of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A directory.
    Directory,
}

/// Identity of a file's contents. Together with the length, it is the entity tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// A recording, in progress or finished: bytes are only appended, so a download can continue at any length. The
    /// epoch is unique to the recording.
    Appended {
        /// Epoch, from the first mark of the file.
        epoch: u32,
    },
    /// Any other file. The generation changes whenever the file is replaced or changed; it may be derived from the time
    /// of the last change and the inode number.
    Whole {
        /// Generation.
        generation: u64,
    },
}

/// Maximum length of a name in a directory, in bytes.
pub const NAME_BYTES_MAX: usize = 255;

/// Memory for the name of an entry.
pub type NameBuffer = [u8; NAME_BYTES_MAX];

/// A buffer without a name.
pub(crate) const EMPTY_NAME: NameBuffer = [0; NAME_BYTES_MAX];

/// An entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Name without the directory.
    pub name: &'a str,
    /// Properties.
    pub stat: Stat,
    /// The name is only similar to that of the file, which is not UTF-8 and cannot be requested.
    pub is_approximate: bool,
}

impl<'a> Entry<'a> {
    /// Copies a name into a buffer; `None` if it is too long.
    pub fn new(buffer: &'a mut NameBuffer, name: &str, stat: Stat) -> Option<Entry<'a>> {
        let place = buffer.get_mut(..name.len())?;
        place.copy_from_slice(name.as_bytes());
        let name = core::str::from_utf8(place).ok()?;
        Some(Entry {
            name,
            stat,
            is_approximate: false,
        })
    }
}

/// A position in the index of recordings; the default is before the first. Its value belongs to the storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position(pub u64);

/// A recording in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// Path of the file.
    pub path: RecordingPath,
    /// Name of the session; empty if there is none.
    pub session: SessionName,
    /// Local date on which it began; `None` without a clock.
    pub day: Option<Day>,
    /// Time of the first sample, in us of the recorder's clock.
    pub first_us: u64,
    /// Time of the last sample, in us of the recorder's clock.
    pub last_us: u64,
    /// Samples in the file.
    pub samples: u64,
    /// Gaps in the file.
    pub gaps: u32,
    /// Samples lost in gaps.
    pub lost: u64,
    /// Properties of the file.
    pub stat: Stat,
}

/// A date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day {
    /// Year.
    pub year: u16,
    /// Month, from 1.
    pub month: u8,
    /// Day of the month, from 1.
    pub day: u8,
}

/// Size of a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Total bytes.
    pub total_bytes: u64,
    /// Free bytes, if they are known.
    pub free_bytes: Option<u64>,
}
