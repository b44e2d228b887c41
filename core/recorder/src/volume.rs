//! The file system as the recorder uses it: preallocated space, numbered recordings, and an index of them.
//!
//! ```text
//!            reserve            name               close
//!   nothing ────────> prepared ──────> unfinished ────────> finished ── remove_oldest ──> nothing
//!                        │                 │
//!                        └─── discard ─────┴──────────────────────────────────────────> nothing
//! ```

use crate::changes::ChangeTask;
use crate::guest::{FileError, FileSystem};
use cardiograph_card::Block;
use core::fmt;

/// Block access to a card, for a file system. An implementation may write samples before it carries out a
/// request.
// Executors are single-threaded here; the implementation decides whether its futures are `Send`.
#[allow(async_fn_in_trait)]
pub trait Blocks {
    /// Error of the card.
    type Error;

    /// Returns the number of blocks.
    fn blocks(&self) -> u32;
    /// Reads consecutive blocks.
    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> Result<(), Self::Error>;
    /// Writes `count` consecutive blocks with one command; they are durable when it returns. Calls `make` for
    /// each block in turn, starting at 0, and may call it again for a block that has to be repeated.
    async fn write(
        &mut self,
        start: u32,
        count: u32,
        make: &mut dyn FnMut(u32, &mut Block),
    ) -> Result<(), Self::Error>;
}

/// Consecutive blocks of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first block.
    pub start: u32,
    /// Number of blocks.
    pub blocks: u32,
}

/// A short name as a directory stores it: eight and three characters, padded with spaces.
pub type Name = [u8; 11];

/// Maximum number of recordings in one folder.
pub const FOLDER_RECORDINGS_MAX: u32 = 1_000;
/// Digits in the names of folders and files.
const DIGITS: usize = 5;
/// Number of file numbers before a file name repeats, in another folder.
const NAMES: u32 = 10_u32.pow(DIGITS as u32);
const _: () = assert!(NAMES.is_multiple_of(FOLDER_RECORDINGS_MAX));
/// Last number for which a folder name exists.
pub const NUMBER_LAST: u32 = NAMES * FOLDER_RECORDINGS_MAX - 1;

/// Identity of a recording: prefix and number are unique on a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct FileId {
    /// Prefix of the name: three capital letters.
    pub prefix: [u8; 3],
    /// Extension of the name: three capital letters or digits.
    pub extension: [u8; 3],
    /// The number, counted per prefix from 1.
    pub number: u32,
}

impl FileId {
    /// Returns the short name of the file in its folder, such as `LOG00012CSV`.
    pub fn short_name(&self) -> Name {
        name_of(self.prefix, self.number, self.extension)
    }

    /// Returns the short name of the folder, such as `LOG00000` and three spaces.
    pub fn folder_name(&self) -> Name {
        name_of(self.prefix, self.number / FOLDER_RECORDINGS_MAX, *b"   ")
    }

    /// Returns true if the characters and the number are valid in a name.
    pub fn is_valid(&self) -> bool {
        let is_tail = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
        self.prefix.iter().all(u8::is_ascii_uppercase)
            && self.extension.iter().all(is_tail)
            && self.number <= NUMBER_LAST
    }
}

/// The path on the card: `LOG00000/LOG00012.CSV`.
impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write_name(f, &self.folder_name())?;
        f.write_str("/")?;
        write_name(f, &self.short_name())
    }
}

/// Writes a short name in readable form: without padding, with a dot before the extension.
pub(crate) fn write_name(f: &mut fmt::Formatter, name: &Name) -> fmt::Result {
    let (base, extension) = name.split_at(8);
    write!(f, "{}", base.trim_ascii_end().escape_ascii())?;
    match extension.trim_ascii_end() {
        b"" => Ok(()),
        extension => write!(f, ".{}", extension.escape_ascii()),
    }
}

/// Returns a name of three letters, the last five digits of a number, and an extension.
pub(crate) fn name_of(prefix: [u8; 3], number: u32, extension: [u8; 3]) -> Name {
    let digit = |at: usize| b'0' + (number / 10_u32.pow((7 - at) as u32) % 10) as u8;
    core::array::from_fn(|at| match at {
        0..3 => prefix[at],
        3..8 => digit(at),
        _ => extension[at - 8],
    })
}

/// A text of up to 32 bytes, stored inline.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct ShortText {
    bytes: [u8; ShortText::BYTES_MAX],
    len: u8,
}

impl ShortText {
    /// Longest text, in bytes.
    pub const BYTES_MAX: usize = 32;
    /// An empty text.
    pub const EMPTY: ShortText = ShortText {
        bytes: [0; ShortText::BYTES_MAX],
        len: 0,
    };

    /// Copies a text of letters, digits, `-` and `_` (as in a session name). Returns `None` for any other
    /// text.
    pub fn new(text: &str) -> Option<ShortText> {
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let mut short = ShortText::EMPTY;
        short
            .bytes
            .get_mut(..text.len())?
            .copy_from_slice(text.as_bytes());
        short.len = text.len() as u8;
        text.bytes().all(is_good).then_some(short)
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        // `new` accepts ASCII only.
        core::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl fmt::Debug for ShortText {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// Preallocated space on the card for an unfinished recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// Slot in the table of unfinished files.
    pub slot: u8,
    /// Prefix of its name.
    pub prefix: [u8; 3],
    /// Extension of its name.
    pub extension: [u8; 3],
    /// Its blocks.
    pub extent: Extent,
    /// Number unique to this recording on the card: distinguishes its blocks from old ones.
    pub epoch: u32,
    /// The recorder's own value, stored when the file was reserved.
    pub note: u32,
    /// Identity of the recording, once it is named.
    pub id: Option<FileId>,
    /// True for a file reserved by version 0.1: it has its final name, and its blocks have the 0.1 format.
    pub is_version_0_1: bool,
}

/// A request for space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Prefix of the name: three capital letters.
    pub prefix: [u8; 3],
    /// Extension of the name: three capital letters or digits.
    pub extension: [u8; 3],
    /// Requested length in blocks. The file is shorter if no free run is long enough.
    pub blocks: u32,
    /// Minimum useful length in blocks.
    pub blocks_min: u32,
    /// Number of files, this one included, that are still to get their space. If no free run has room for all of them, this one
    /// gets at most its share of the longest.
    pub shares: u8,
    /// Value stored with the file until it is closed.
    pub note: u32,
}

/// A recording that was removed to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Identifies the recording.
    pub id: FileId,
    /// Length of the run that it occupied, in blocks.
    pub blocks: u32,
}

/// A finished recording, as listed in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRecord {
    /// Identity and name.
    pub id: FileId,
    /// Name of the session; empty if there is none.
    pub session: ShortText,
    /// Length in bytes.
    pub bytes: u64,
    /// Time of the first sample, in us of the recorder's clock.
    pub first_us: u64,
    /// Time of the last sample, in us of the recorder's clock.
    pub last_us: u64,
    /// Number of samples in the file.
    pub samples: u64,
    /// Number of gaps in the file.
    pub gaps: u32,
    /// Number of samples lost in those gaps.
    pub lost: u64,
    /// True if the recording was interrupted and then closed by recovery.
    pub is_recovered: bool,
}

impl FileRecord {
    /// Returns a record of a file of which only the length is known.
    pub const fn of_length(id: FileId, bytes: u64) -> FileRecord {
        FileRecord {
            id,
            session: ShortText::EMPTY,
            bytes,
            first_us: 0,
            last_us: 0,
            samples: 0,
            gaps: 0,
            lost: 0,
            is_recovered: false,
        }
    }
}

/// Kind of a volume error, by the reaction that it requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ErrorKind {
    /// No free run of blocks is long enough.
    NoRoom,
    /// A directory has no room for another entry.
    DirectoryFull,
    /// Another file has the name: a recovered recording needs the next number.
    NameTaken,
    /// The card failed or is gone.
    Card,
    /// The file system cannot be used in its current state.
    Volume,
}

/// Maximum number of unfinished files: one being written and one prepared per stream.
pub const RESERVED_MAX: usize = 8;

/// A file system on a block device. If power fails during an operation, or its future is dropped, the next
/// [`mount`](Volume::mount) completes or undoes it; until then every other operation fails.
#[allow(async_fn_in_trait)]
pub trait Volume<B: Blocks> {
    /// Error of an operation.
    type Error;

    /// Returns the kind of an error.
    fn error_kind(error: &Self::Error) -> ErrorKind;
    /// Finds the file system and repairs the results of an interrupted operation. Afterwards,
    /// [`reserved`](Volume::reserved) returns the files that were reserved and not closed.
    async fn mount(&mut self, card: &mut B) -> Result<(), Self::Error>;
    /// Returns the mounted file system for readers; `None` if this volume does not serve them.
    fn file_system(&self) -> Option<FileSystem> {
        None
    }
    /// Returns the number of free blocks, if it is known without reading the card.
    fn free_blocks(&self) -> Option<u32> {
        None
    }
    /// Returns the unfinished file in this slot; slots are below [`RESERVED_MAX`].
    fn reserved(&self, slot: u8) -> Option<Reserved>;
    /// Returns the number of the next recording with this prefix: one more than the highest that
    /// [`name`](Volume::name) or [`close`](Volume::close) has used. For a prefix that is already on the card
    /// it is known after a mount, and for any other after a [`reserve`](Volume::reserve) with it.
    fn next_number(&self, prefix: [u8; 3], extension: [u8; 3]) -> u32;
    /// Reserves consecutive blocks, without changing their contents, under a hidden entry without a number.
    async fn reserve(&mut self, card: &mut B, request: Request) -> Result<Reserved, Self::Error>;
    /// Names a prepared file: moves its entry to the folder of its number, still with its preallocated size.
    /// `session` is the session's name, or empty. Does nothing if the file already has this name. If this
    /// fails for lack of room, the file stays as it was prepared.
    async fn name(
        &mut self,
        card: &mut B,
        slot: u8,
        id: FileId,
        session: &str,
    ) -> Result<(), Self::Error>;
    /// Finishes a file: names it if it has no name, trims it to its actual length, frees the blocks after its
    /// end, and lists it in the index. If another file has the name of a recovered recording, this fails with
    /// [`ErrorKind::NameTaken`], and [`next_number`](Volume::next_number) then returns a free number.
    async fn close(
        &mut self,
        card: &mut B,
        slot: u8,
        record: &FileRecord,
    ) -> Result<(), Self::Error>;
    /// Removes an unfinished file. If it had the last number, the next recording gets that number again.
    async fn discard(&mut self, card: &mut B, slot: u8) -> Result<(), Self::Error>;
    /// Removes the oldest finished recording to make room. Returns `None` if there is none.
    async fn remove_oldest(&mut self, card: &mut B) -> Result<Option<Removed>, Self::Error>;
    /// Carries out a change that another task requested. A volume without a [`file_system`](Volume::file_system)
    /// receives no changes.
    async fn change(
        &mut self,
        _card: &mut B,
        _task: &mut ChangeTask<'_>,
    ) -> Result<(), Self::Error> {
        Ok(())
    }
    /// Returns the reason why a change was refused without effect; `None` if the volume has to be mounted again.
    fn refusal(&self, _error: &Self::Error) -> Option<FileError> {
        None
    }
    /// Returns, once, the recording whose interrupted removal the last mount completed. The removal is not
    /// reported if power failed after its very last block was written but before the card confirmed it.
    fn take_removed(&mut self) -> Option<FileId>;
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::changes::Changes;
    use core::pin::pin;
    use core::task::{Context, Poll, Waker};
    use std::vec::Vec;

    struct NoBlocks;

    impl Blocks for NoBlocks {
        type Error = ();

        fn blocks(&self) -> u32 {
            0
        }

        async fn read(&mut self, _: u32, _: &mut [Block]) -> Result<(), ()> {
            Err(())
        }

        async fn write(
            &mut self,
            _: u32,
            _: u32,
            _: &mut dyn FnMut(u32, &mut Block),
        ) -> Result<(), ()> {
            Err(())
        }
    }

    /// A volume that serves no readers, and whose operations have the given results.
    #[derive(Default)]
    pub(crate) struct Plain {
        /// Error of each mount.
        pub(crate) mount: Option<ErrorKind>,
        /// True if a mount reads a block first.
        pub(crate) reads: bool,
        /// Numbers of blocks that are reserved, or errors, last first; then there is no room.
        pub(crate) reserved: Vec<Result<u32, ErrorKind>>,
        /// Number of files reserved so far.
        pub(crate) slots: u8,
        /// Errors of the next calls of `close`, last first.
        pub(crate) errors: Vec<ErrorKind>,
        /// Numbers of the records with which `close` was called.
        pub(crate) closed: Vec<u32>,
        pub(crate) next_number: u32,
        /// Recordings that may be removed, last first.
        pub(crate) old: Vec<FileId>,
    }

    impl<B: Blocks> Volume<B> for Plain {
        type Error = ErrorKind;

        fn error_kind(error: &ErrorKind) -> ErrorKind {
            *error
        }

        async fn mount(&mut self, card: &mut B) -> Result<(), ErrorKind> {
            if self.reads {
                let read = card.read(0, &mut [[0; 512]]).await;
                read.map_err(|_| ErrorKind::Card)?;
            }
            self.mount.map_or(Ok(()), Err)
        }

        fn reserved(&self, _: u8) -> Option<Reserved> {
            None
        }

        fn next_number(&self, _: [u8; 3], _: [u8; 3]) -> u32 {
            self.next_number
        }

        async fn reserve(&mut self, _: &mut B, request: Request) -> Result<Reserved, ErrorKind> {
            let blocks = self.reserved.pop().unwrap_or(Err(ErrorKind::NoRoom))?;
            self.slots += 1;
            Ok(Reserved {
                slot: self.slots - 1,
                prefix: request.prefix,
                extension: request.extension,
                extent: Extent {
                    start: 0x1_0000 * u32::from(self.slots),
                    blocks,
                },
                epoch: self.slots.into(),
                note: request.note,
                id: None,
                is_version_0_1: false,
            })
        }

        async fn name(&mut self, _: &mut B, _: u8, _: FileId, _: &str) -> Result<(), ErrorKind> {
            Ok(())
        }

        async fn close(&mut self, _: &mut B, _: u8, record: &FileRecord) -> Result<(), ErrorKind> {
            self.closed.push(record.id.number);
            self.errors.pop().map_or(Ok(()), Err)
        }

        async fn discard(&mut self, _: &mut B, _: u8) -> Result<(), ErrorKind> {
            Ok(())
        }

        async fn remove_oldest(&mut self, _: &mut B) -> Result<Option<Removed>, ErrorKind> {
            Ok(self.old.pop().map(|id| Removed { id, blocks: 0 }))
        }

        fn take_removed(&mut self) -> Option<FileId> {
            None
        }
    }

    #[test]
    fn a_number_determines_folder_and_name() {
        for (number, path) in [
            (1, "LOG00000/LOG00001.CSV"),
            (999, "LOG00000/LOG00999.CSV"),
            (1_000, "LOG00001/LOG01000.CSV"),
            (99_999, "LOG00099/LOG99999.CSV"),
            (100_000, "LOG00100/LOG00000.CSV"),
            (NUMBER_LAST, "LOG99999/LOG99999.CSV"),
        ] {
            let id = FileId {
                prefix: *b"LOG",
                extension: *b"CSV",
                number,
            };
            assert_eq!(std::format!("{id}"), path);
        }
    }

    #[test]
    fn a_volume_need_not_serve_readers() {
        let (mut plain, mut blocks) = (Plain::default(), NoBlocks);
        assert!(Volume::<NoBlocks>::file_system(&plain).is_none());
        assert_eq!(Volume::<NoBlocks>::free_blocks(&plain), None);
        let refusal = Volume::<NoBlocks>::refusal(&plain, &ErrorKind::Volume);
        assert!(refusal.is_none());
        let changes = Changes::new();
        let mut task = changes.task();
        let change = pin!(plain.change(&mut blocks, &mut task));
        let done = change.poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(done, Poll::Ready(Ok(())));
    }
}
