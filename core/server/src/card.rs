//! The card of a recorder as a storage.

use crate::Error;
use crate::storage::{
    Day, EMPTY_NAME, Entry, Kind, NameBuffer, Position, Recording, RecordingPath, SessionName,
    Space, Stat, Storage, Version,
};
use cardiograph_card::BLOCK_BYTES;
use cardiograph_recorder::{
    CHANGE_PATH_BYTES_MAX, CardBytes, CardFile, CardFiles, Change, ChangePath, DosTime, FileError,
    FileId, IndexRecord, Listing, ReadDesk, ReadError, RecordingPosition, ShortText, Unfinished,
    WriteBuffer,
};
use core::cell::Cell;
use core::fmt::Write as _;

/// Seconds from 1970-01-01 to 1980-01-01, the beginning of the time in directory entries.
const DOS_EPOCH_S: u64 = 315_532_800;
/// Space that clients leave free by default, in bytes, on a large card, and part of a small one.
const FREE_BYTES: u64 = 64 << 20;
const FREE_SHARE: u64 = 8;
/// Space that a new directory takes at most.
const DIRECTORY_BYTES: u64 = 64 << 10;
/// Flag in a position that marks recordings in progress; the other bits are a slot.
const IN_PROGRESS: u64 = 1 << 63;

/// Files of the card behind a recorder's desk.
pub struct CardStorage<'d, 'a> {
    desk: &'d ReadDesk<'a>,
    files: CardFiles<'d, 'a>,
    /// Position in the index that the last call of `record` reached.
    index: Cell<Option<RecordingPosition>>,
    /// Space that clients leave free, in bytes; `None` for the default.
    keep_free: Option<u64>,
    /// Converts a time of a directory entry, as if in UTC, to s since 1970.
    unix_s: fn(u64) -> u64,
}

/// An open file of a card.
pub struct CardStorageFile {
    file: CardFile,
    epoch: Option<u32>,
}

/// An upload to a card. Dropping it discards it.
pub struct CardUpload<'d, 'a> {
    desk: &'d ReadDesk<'a>,
    /// Number of the upload; `None` once it is committed.
    number: Option<u8>,
    buffer: Option<WriteBuffer<'d, 'a>>,
    /// Number of bytes in the buffer.
    filled: usize,
    /// Number of blocks written.
    blocks: u32,
    /// The length is known, and reserved.
    is_reserved: bool,
}

impl CardUpload<'_, '_> {
    /// Writes the buffered bytes. The last block is padded with stale bytes of the buffer.
    async fn write(&mut self) -> Result<(), Error> {
        let Some(buffer) = self.buffer.take() else {
            return Ok(());
        };
        let blocks = self.filled.div_ceil(BLOCK_BYTES) as u32;
        self.filled = 0;
        if blocks == 0 {
            return Ok(());
        }
        let write = Change::WriteUpload {
            upload: self.number.ok_or(Error::Changed)?,
            block: self.blocks,
            blocks,
        };
        self.desk.change(write, Some(buffer)).await?;
        self.blocks += blocks;
        Ok(())
    }
}

impl Drop for CardUpload<'_, '_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.desk.abandon_upload(number);
        }
    }
}

impl<'d, 'a> CardStorage<'d, 'a> {
    /// Creates a storage of the card behind `desk`.
    pub fn new(desk: &'d ReadDesk<'a>) -> Self {
        CardStorage {
            desk,
            files: CardFiles::new(desk),
            index: Cell::new(None),
            keep_free: None,
            unix_s: core::convert::identity,
        }
    }

    /// Sets the space that clients leave free for the recorder, in bytes. The default is 64 MiB, or an eighth of a small
    /// card. It does not hold on a card whose free space is unknown, as with FAT16.
    #[must_use]
    pub fn keeping_free(mut self, bytes: Option<u64>) -> Self {
        self.keep_free = bytes;
        self
    }

    /// Sets the zone of the times in directory entries: a function from these times, as if they were in UTC, to s since
    /// 1970. Without it, they are in UTC, as a recorder on a board writes them.
    #[must_use]
    pub fn with_zone(mut self, unix_s: fn(u64) -> u64) -> Self {
        self.unix_s = unix_s;
        self
    }

    fn stat_of(&self, file: &CardFile, epoch: Option<u32>) -> Stat {
        let modified_s = file.modified().and_then(seconds_of).map(self.unix_s);
        let version = match epoch {
            Some(epoch) => Version::Appended { epoch },
            None => {
                let place = u64::from(file.first_cluster()) << 32;
                let generation = place ^ file.bytes() ^ modified_s.unwrap_or(0) << 16;
                Version::Whole { generation }
            }
        };
        Stat {
            kind: match file.is_directory() {
                true => Kind::Directory,
                false => Kind::File,
            },
            bytes: file.bytes(),
            modified_s,
            version,
            is_growing: file.growing().is_some(),
        }
    }

    /// Fails if less than the recorder needs would remain.
    fn check_room(&self, bytes: u64) -> Result<(), Error> {
        let Some((total, Some(free))) = self.desk.space_bytes() else {
            return Ok(());
        };
        let keep_free = self.keep_free.unwrap_or(FREE_BYTES.min(total / FREE_SHARE));
        match free >= bytes.saturating_add(keep_free) {
            true => Ok(()),
            false => Err(Error::Full),
        }
    }

    async fn change(&self, change: Change<'_>) -> Result<(), Error> {
        self.desk.change(change, None).await?;
        Ok(())
    }

    /// Refuses a recording in progress, which may not have its name in the directory yet.
    async fn check_finished(&self, path: &str) -> Result<(), Error> {
        match self.files.open(path).await?.growing() {
            Some(_) => Err(Error::Recording),
            None => Ok(()),
        }
    }

    /// Removes a directory with everything in it. Each step removes the first entry of the deepest directory, so that
    /// no list has to be kept.
    async fn remove_all(&self, directory: &str) -> Result<(), Error> {
        let mut path = ChangePath::new();
        loop {
            path.clear();
            path.push_str(directory).map_err(|_| Error::TooLong)?;
            while self.push_first_in(&mut path).await? {}
            self.change(Change::Remove { path: &path }).await?;
            if path == directory {
                return Ok(());
            }
        }
    }

    /// Appends the name of the first entry of a directory to its path; returns false if it is empty or a file.
    async fn push_first_in(&self, path: &mut ChangePath) -> Result<bool, Error> {
        let mut listing = match self.files.list(path).await {
            Err(FileError::NotDirectory) => return Ok(false),
            listing => listing?,
        };
        let mut name = EMPTY_NAME;
        let Some(first) = self.files.next(&mut listing, &mut name).await? else {
            return Ok(false);
        };
        path.push('/')
            .and_then(|()| path.push_str(first.name))
            .map_err(|_| Error::TooLong)?;
        Ok(true)
    }

    /// Returns the next finished recording of the index and advances the position.
    async fn finished(&self, position: &mut Position) -> Result<Option<IndexRecord>, Error> {
        let place = ((position.0 >> 32) as u32, position.0 as u32);
        let mut index = match self.index.take().filter(|index| index.place() == place) {
            Some(index) => index,
            None => self.files.recordings(place).await?,
        };
        let found = match self.files.next_recording(&mut index).await {
            // The card was exchanged: the caller has to begin again.
            Err(FileError::Read(ReadError::OtherCard)) => return Err(Error::OtherCard),
            found => found?,
        };
        let (folders, number) = index.place();
        position.0 = u64::from(folders) << 32 | u64::from(number);
        self.index.set(Some(index));
        Ok(found)
    }
}

impl<'d, 'a> Storage for CardStorage<'d, 'a> {
    type File = CardStorageFile;
    type Listing = Listing;
    type Upload = CardUpload<'d, 'a>;
    type Bytes<'b>
        = CardBytes<'d, 'a>
    where
        Self: 'b;

    async fn open(&self, path: &str) -> Result<CardStorageFile, Error> {
        let file = self.files.open(path).await?;
        let is_recording = is_recording(path.rsplit('/').next().unwrap_or_default());
        let epoch = match is_recording {
            true => self.files.epoch(&file).await?,
            false => None,
        };
        Ok(CardStorageFile { file, epoch })
    }

    fn stat(&self, file: &CardStorageFile) -> Stat {
        self.stat_of(&file.file, file.epoch)
    }

    async fn refresh(&self, file: &mut CardStorageFile) -> Result<(), Error> {
        Ok(self.files.refresh(&mut file.file).await?)
    }

    async fn read<'b>(
        &'b self,
        file: &CardStorageFile,
        offset: u64,
        bytes_max: usize,
    ) -> Result<CardBytes<'d, 'a>, Error> {
        Ok(self.files.read(&file.file, offset, bytes_max).await?)
    }

    async fn read_located<'b>(
        &'b self,
        file: &CardStorageFile,
        offset: u64,
        bytes_max: usize,
    ) -> Result<Option<CardBytes<'d, 'a>>, Error> {
        let read = self.files.read_located(&file.file, offset, bytes_max);
        Ok(read.await?)
    }

    async fn locate(&self, file: &CardStorageFile, offset: u64) -> Result<(), Error> {
        Ok(self.files.locate(&file.file, offset).await?)
    }

    async fn list(&self, directory: &str) -> Result<Listing, Error> {
        Ok(self.files.list(directory).await?)
    }

    async fn next<'n>(
        &self,
        listing: &mut Listing,
        name: &'n mut NameBuffer,
    ) -> Result<Option<Entry<'n>>, Error> {
        let found = self.files.next(listing, name).await?;
        Ok(found.map(|found| {
            // The epoch of a finished recording would cost a read.
            let epoch = found.file.growing().map(|file| file.epoch);
            Entry {
                name: found.name,
                stat: self.stat_of(&found.file, epoch),
                is_approximate: false,
            }
        }))
    }

    async fn create(&self, path: &str, bytes: Option<u64>) -> Result<CardUpload<'d, 'a>, Error> {
        let (folder, _) = path.rsplit_once('/').unwrap_or_default();
        // The desk looks up the folder only at the commit, when the whole upload has been received.
        if !folder.is_empty() && !self.files.open(folder).await?.is_directory() {
            return Err(Error::NotDirectory);
        }
        check_length(path)?;
        match self.files.open(path).await {
            Ok(file) if file.is_directory() => return Err(Error::IsDirectory),
            Ok(file) if file.growing().is_some() => return Err(Error::Recording),
            Ok(_) | Err(FileError::NotFound) => (),
            Err(error) => return Err(error.into()),
        }
        let is_reserved = bytes.is_some();
        let bytes = bytes.unwrap_or(0);
        self.check_room(bytes)?;
        let number = self
            .desk
            .change(Change::BeginUpload { bytes }, None)
            .await?;
        let upload = CardUpload {
            desk: self.desk,
            number: Some(number),
            buffer: None,
            filled: 0,
            blocks: 0,
            is_reserved,
        };
        // Another upload may have taken the room meanwhile.
        self.check_room(0)?;
        Ok(upload)
    }

    async fn append(&self, upload: &mut CardUpload<'d, 'a>, bytes: &[u8]) -> Result<(), Error> {
        let mut bytes = bytes;
        while !bytes.is_empty() {
            let buffer = match &mut upload.buffer {
                Some(buffer) => buffer,
                None => upload
                    .buffer
                    .insert(self.desk.write_buffer().await.map_err(FileError::from)?),
            };
            let room = &mut buffer.bytes()[upload.filled..];
            let count = room.len().min(bytes.len());
            let (now, later) = bytes.split_at(count);
            room[..count].copy_from_slice(now);
            let is_full = count == room.len();
            upload.filled += count;
            bytes = later;
            if is_full {
                if !upload.is_reserved {
                    self.check_room(upload.filled as u64)?;
                }
                upload.write().await?;
            }
        }
        Ok(())
    }

    fn write_bytes(&self) -> usize {
        self.desk.buffer_bytes()
    }

    async fn commit(&self, upload: CardUpload<'d, 'a>, path: &str) -> Result<bool, Error> {
        let mut upload = upload;
        let bytes = upload.blocks as u64 * BLOCK_BYTES as u64 + upload.filled as u64;
        let bytes = u32::try_from(bytes).map_err(|_| Error::TooLarge)?;
        upload.write().await?;
        let is_new = matches!(self.files.open(path).await, Err(FileError::NotFound));
        let commit = Change::CommitUpload {
            upload: upload.number.ok_or(Error::Changed)?,
            path,
            bytes,
        };
        self.desk.change(commit, None).await?;
        upload.number = None;
        Ok(is_new)
    }

    async fn discard(&self, upload: CardUpload<'d, 'a>) {
        drop(upload);
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        self.check_finished(from).await?;
        check_length(from)?;
        check_length(to)?;
        self.change(Change::Rename { from, to }).await
    }

    async fn remove(&self, path: &str, is_recursive: bool) -> Result<(), Error> {
        self.check_finished(path).await?;
        check_length(path)?;
        let removed = self.change(Change::Remove { path }).await;
        match removed {
            Err(Error::NotEmpty) if is_recursive => self.remove_all(path).await,
            result => result,
        }
    }

    async fn make_directory(&self, path: &str) -> Result<(), Error> {
        check_length(path)?;
        self.check_room(DIRECTORY_BYTES)?;
        self.change(Change::MakeDirectory { path }).await
    }

    fn space(&self) -> Option<Space> {
        let (total_bytes, free_bytes) = self.desk.space_bytes()?;
        Some(Space {
            total_bytes,
            free_bytes,
        })
    }

    async fn record(&self, position: &mut Position) -> Result<Option<Recording>, Error> {
        while position.0 & IN_PROGRESS == 0 {
            let Some(found) = self.finished(position).await? else {
                position.0 = IN_PROGRESS;
                break;
            };
            // Another program may have deleted it.
            if let Ok(file) = self.files.open_recording(found.record.id).await {
                let stat = self.stat_of(&file, None);
                return Ok(Some(finished_recording(&found, stat)));
            }
        }
        let slot = (position.0 & !IN_PROGRESS) as u8;
        let found = self.files.next_unfinished(slot);
        Ok(found.map(|(slot, file)| {
            position.0 = IN_PROGRESS | u64::from(slot + 1);
            recording_in_progress(&file)
        }))
    }
}

impl From<FileError> for Error {
    fn from(error: FileError) -> Error {
        match error {
            FileError::NotFound => Error::NotFound,
            FileError::NotDirectory => Error::NotDirectory,
            FileError::IsDirectory => Error::IsDirectory,
            FileError::NameInvalid => Error::NameInvalid,
            FileError::Hidden => Error::Forbidden,
            FileError::Changed => Error::Changed,
            FileError::Recording => Error::Recording,
            FileError::ReadOnly => Error::Forbidden,
            FileError::Exists => Error::Exists,
            FileError::NotEmpty => Error::NotEmpty,
            FileError::Full => Error::Full,
            FileError::TooLong => Error::TooLarge,
            FileError::Busy => Error::Busy,
            FileError::Read(error) => match error {
                ReadError::NoCard => Error::NoCard,
                ReadError::OtherCard => Error::OtherCard,
                ReadError::Changed => Error::Changed,
                ReadError::Busy | ReadError::Closed | ReadError::NoMemory => Error::Busy,
                // `CardFailed`, and whatever a later version adds.
                _ => Error::CardFailed,
            },
            // `Damaged`, and whatever a later version adds.
            _ => Error::CardFailed,
        }
    }
}

/// Returns true if a name is that of a recording: three letters and five digits, perhaps a session, and an extension.
fn is_recording(name: &str) -> bool {
    let Some((prefix, rest)) = name.split_at_checked(3) else {
        return false;
    };
    let digits = rest.get(..5).unwrap_or_default();
    prefix.bytes().all(|byte| byte.is_ascii_alphabetic())
        && digits.len() == 5
        && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the seconds since 1970-01-01, taking the local time of the entry as UTC; `None` without a clock.
fn seconds_of(time: DosTime) -> Option<u64> {
    if time == DosTime::NO_CLOCK || time.date == 0 {
        return None;
    }
    let day = day_of(time)?;
    let years = u64::from(day.year) - 1980;
    // Leap years from 1980 on; 2100 is not one.
    let leaps = years.div_ceil(4) - u64::from(day.year > 2100);
    let is_leap = day.year.is_multiple_of(4) && day.year != 2100;
    let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let of_year = before[usize::from(day.month) - 1] + u64::from(is_leap && day.month > 2);
    let days = years * 365 + leaps + of_year + u64::from(day.day) - 1;
    let (hour, minute) = (time.time >> 11, time.time >> 5 & 63);
    let second = 2 * (time.time & 31);
    let seconds = u64::from(hour) * 3600 + u64::from(minute) * 60 + u64::from(second);
    Some(DOS_EPOCH_S + days * 86_400 + seconds)
}

fn day_of(time: DosTime) -> Option<Day> {
    let month = (time.date >> 5 & 15) as u8;
    let day = (time.date & 31) as u8;
    ((1..=12).contains(&month) && day > 0).then_some(Day {
        year: 1980 + (time.date >> 9),
        month,
        day,
    })
}

fn check_length(path: &str) -> Result<(), Error> {
    match path.len() <= CHANGE_PATH_BYTES_MAX {
        true => Ok(()),
        false => Err(Error::TooLong),
    }
}

fn path_of(id: FileId) -> RecordingPath {
    let mut path = RecordingPath::new();
    // The longest path of a recording fits.
    let _ = write!(path, "/{id}");
    path
}

fn session_of(session: &ShortText) -> SessionName {
    session.as_str().parse().unwrap_or_default()
}

fn finished_recording(found: &IndexRecord, stat: Stat) -> Recording {
    let record = &found.record;
    Recording {
        path: path_of(record.id),
        session: session_of(&record.session),
        day: found.created.and_then(day_of),
        first_us: record.first_us,
        last_us: record.last_us,
        samples: record.samples,
        gaps: record.gaps,
        lost: record.lost,
        stat,
    }
}

fn recording_in_progress(file: &Unfinished) -> Recording {
    Recording {
        path: path_of(file.id),
        session: session_of(&file.session),
        day: None,
        first_us: file.first_us,
        last_us: file.last_us,
        samples: file.samples,
        gaps: file.gaps,
        lost: file.lost,
        stat: Stat {
            kind: Kind::File,
            bytes: file.bytes.into(),
            modified_s: None,
            version: Version::Appended { epoch: file.epoch },
            is_growing: true,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compared with `date -u -d '...' +%s`.
    #[test]
    fn times_of_entries_are_converted() {
        let time = |year: u16, month: u16, day: u16, hour: u16, minute: u16, second: u16| DosTime {
            date: (year - 1980) << 9 | month << 5 | day,
            time: hour << 11 | minute << 5 | (second / 2),
        };
        assert_eq!(seconds_of(DosTime::NO_CLOCK), None);
        assert_eq!(
            seconds_of(time(2026, 11, 22, 11, 30, 42)),
            Some(1_795_347_042)
        );
        assert_eq!(seconds_of(time(2024, 2, 29, 0, 0, 0)), Some(1_709_164_800));
        assert_eq!(seconds_of(time(2024, 3, 1, 0, 0, 0)), Some(1_709_251_200));
        assert_eq!(seconds_of(time(2100, 3, 1, 0, 0, 0)), Some(4_107_542_400));
        assert_eq!(
            seconds_of(time(2107, 12, 31, 23, 59, 58)),
            Some(4_354_819_198)
        );
    }

    #[test]
    fn names_of_recordings_are_recognised() {
        assert!(is_recording("LOG00012.CSV") && is_recording("LOG00012 flight.BIN"));
        assert!(
            !is_recording("LOG0012.CSV") && !is_recording("") && !is_recording("D\u{e9}X00000")
        );
    }
}
