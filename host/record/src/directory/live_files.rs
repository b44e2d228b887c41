//! Files that a recorder is writing, for readers in other threads.

use super::first_block::ends_with_mark;
use super::names::{parse_any_recording, parse_folder};
use cardiograph_card::{BLOCK_BYTES, Block};
use cardiograph_recorder::{FOLDER_RECORDINGS_MAX, FileId, STREAMS_MAX, is_same_name};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The unfinished, named files of a running recorder, and the names that it may use next. The recorder updates the list
/// at each checkpoint.
#[derive(Clone, Debug, Default)]
pub struct LiveFiles {
    files: Arc<Mutex<Vec<Arc<LiveFile>>>>,
    reserved: Arc<Mutex<Reserved>>,
}

/// Names of recordings and of their folders that nobody but the recorder may create, move or remove.
#[derive(Debug, Default)]
enum Reserved {
    /// None: there is no recorder.
    #[default]
    Nothing,
    /// Those of all prefixes: a recording is about to begin, and its numbers are not known yet.
    Everything,
    /// Those from this number on, for each prefix of the recording.
    From(BTreeMap<[u8; 3], u32>),
}

impl Reserved {
    /// Returns true for recordings of a prefix of which the last possible one has this number.
    fn has(&self, prefix: [u8; 3], last: u32) -> bool {
        match self {
            Reserved::Nothing => false,
            Reserved::Everything => true,
            Reserved::From(next) => next.get(&prefix).is_some_and(|next| *next <= last),
        }
    }
}

/// An unfinished file.
#[derive(Debug)]
pub struct LiveFile {
    /// Prefix, extension and number.
    pub id: FileId,
    /// Name of the session; empty if there is none.
    pub session: String,
    /// Path, relative to the directory, that the file gets when it is finished.
    pub path: String,
    /// Device number and inode number of the file.
    pub inode: (u64, u64),
    /// Epoch: the number of the recording that the file's checkpoint marks contain.
    pub epoch: u32,
    durable_bytes: AtomicU64,
    is_unfinished: AtomicBool,
    /// Index of the first sample of each stream, or [`UNKNOWN`].
    firsts: [AtomicU64; STREAMS_MAX],
}

/// Value of `firsts` while no sample of the stream is in the file.
const UNKNOWN: u64 = u64::MAX;
/// Maximum number of finished files that stay in the list.
const FINISHED_MAX: usize = 4096;

impl LiveFile {
    pub(super) fn new(
        (id, session): (FileId, &str),
        path: String,
        (inode, epoch): ((u64, u64), u32),
        data: &DataLength,
    ) -> LiveFile {
        LiveFile {
            id,
            session: session.to_string(),
            path,
            inode,
            epoch,
            durable_bytes: AtomicU64::new(data.durable),
            is_unfinished: AtomicBool::new(true),
            firsts: data.firsts.map(AtomicU64::new),
        }
    }

    /// Returns true while the recorder writes the file.
    pub fn is_unfinished(&self) -> bool {
        self.is_unfinished.load(Ordering::Relaxed)
    }

    /// Returns the index of the first sample of a stream in the file, if it is known.
    pub fn first(&self, stream: u8) -> Option<u64> {
        let first = self.firsts.get(usize::from(stream))?;
        Some(first.load(Ordering::Relaxed)).filter(|first| *first != UNKNOWN)
    }

    /// Returns the durable length in bytes, without the checkpoint mark that follows the data.
    pub fn durable_bytes(&self) -> u64 {
        self.durable_bytes.load(Ordering::Relaxed)
    }
}

impl LiveFiles {
    /// Creates the list of a recording that is about to begin.
    pub(crate) fn before_recording() -> LiveFiles {
        LiveFiles {
            files: Arc::default(),
            reserved: Arc::new(Mutex::new(Reserved::Everything)),
        }
    }

    /// Replaces all reservations: reserves the names of each prefix from a number on.
    pub(super) fn reserve(&self, next: BTreeMap<[u8; 3], u32>) {
        *self.reserved() = Reserved::From(next);
    }

    /// Ends all reservations.
    pub(crate) fn release(&self) {
        *self.reserved() = Reserved::Nothing;
    }

    /// Returns true if nobody but the recorder may create, change, move or remove this path, relative to the directory:
    /// the recorder is writing the file, or one in this directory or below it, or may use the path for a later recording
    /// or its folder. Case is ignored, because some file systems ignore it.
    pub fn is_used(&self, path: &str) -> bool {
        let is_it_or_above = |file: &LiveFile| {
            let mut above = file.path.match_indices('/').map(|(at, _)| &file.path[..at]);
            path.is_empty()
                || is_same_name(&file.path, path)
                || above.any(|above| is_same_name(above, path))
        };
        self.find(is_it_or_above).is_some() || self.is_reserved(path)
    }

    fn is_reserved(&self, path: &str) -> bool {
        let path = path.to_uppercase();
        let (folder, name) = path.split_once('/').unwrap_or((&path, ""));
        let Some((prefix, number)) = parse_folder(folder) else {
            return false;
        };
        let last = match name {
            "" => number * FOLDER_RECORDINGS_MAX + FOLDER_RECORDINGS_MAX - 1,
            name => match parse_any_recording((prefix, number), name) {
                Some(number) => number,
                None => return false,
            },
        };
        self.reserved().has(prefix, last)
    }

    /// Returns the unfinished file that gets this path, relative to the directory, when it is finished.
    pub fn at(&self, path: &str) -> Option<Arc<LiveFile>> {
        self.find(|file| file.path == path)
    }

    /// Returns the latest file in which the sample with this index is, or could be.
    pub fn with_sample(&self, prefix: [u8; 3], stream: u8, index: u64) -> Option<Arc<LiveFile>> {
        let files = self.lock();
        let mut latest_first = files.iter().rev();
        let found = latest_first.find(|file| {
            let begins = file.first(stream).is_some_and(|first| first <= index);
            file.id.prefix == prefix && file.durable_bytes() > 0 && begins
        });
        found.cloned()
    }

    /// Adds an unfinished file to the list.
    pub(super) fn publish(&self, file: LiveFile) -> Published {
        let file = Arc::new(file);
        let mut files = self.lock();
        let is_finished = |file: &Arc<LiveFile>| !file.is_unfinished();
        if files.len() >= FINISHED_MAX
            && let Some(at) = files.iter().position(is_finished)
        {
            files.remove(at);
        }
        files.push(Arc::clone(&file));
        Published(file)
    }

    fn find(&self, is_wanted: impl Fn(&LiveFile) -> bool) -> Option<Arc<LiveFile>> {
        let files = self.lock();
        let mut unfinished = files.iter().filter(|file| file.is_unfinished());
        unfinished.find(|file| is_wanted(file)).cloned()
    }

    fn reserved(&self) -> MutexGuard<'_, Reserved> {
        self.reserved
            .lock()
            .unwrap_or_else(|held| held.into_inner())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<LiveFile>>> {
        self.files.lock().unwrap_or_else(|held| held.into_inner())
    }
}

/// Handle of an unfinished file in the list. Dropping it marks the file as finished or abandoned.
pub(super) struct Published(Arc<LiveFile>);

impl Published {
    pub(super) fn update(&self, data: &DataLength) {
        self.set_durable_bytes(data.durable);
        for (shared, first) in self.0.firsts.iter().zip(data.firsts) {
            shared.store(first, Ordering::Relaxed);
        }
    }

    pub(super) fn set_durable_bytes(&self, bytes: u64) {
        self.0.durable_bytes.store(bytes, Ordering::Relaxed);
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        self.0.is_unfinished.store(false, Ordering::Relaxed);
    }
}

/// Length of a file's data, and the index of its first sample of each stream, derived from the blocks as
/// they are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataLength {
    /// Offset of the end of the last line of data.
    line_end: u64,
    /// Offset of the end of the data before the last checkpoint mark.
    marked: u64,
    /// Value of `marked` when the file was last made durable.
    durable: u64,
    /// Index of the first sample of each stream, or [`UNKNOWN`]. A text file has one stream, so all entries
    /// are equal.
    firsts: [u64; STREAMS_MAX],
}

impl Default for DataLength {
    fn default() -> Self {
        DataLength {
            line_end: 0,
            marked: 0,
            durable: 0,
            firsts: [UNKNOWN; STREAMS_MAX],
        }
    }
}

impl DataLength {
    /// Adds the block with the given index.
    pub(super) fn add(&mut self, index: u32, block: &Block, is_binary: bool) {
        let start = u64::from(index) * BLOCK_BYTES as u64;
        match is_binary {
            true => {
                self.marked = start + BLOCK_BYTES as u64;
                self.add_header(block);
            }
            false => self.add_text(index, start, block),
        }
    }

    /// Adds a block of text. A checkpoint mark at the end of the block does not count as data unless more
    /// data follows.
    fn add_text(&mut self, index: u32, start: u64, block: &Block) {
        let at = |block: &Block| block.iter().rposition(|byte| *byte == b'@');
        let mark_at = ends_with_mark(block).then(|| at(block)).flatten();
        let data = &block[..mark_at.unwrap_or(BLOCK_BYTES)];
        if let Some(line_end) = data.iter().rposition(|byte| *byte == b'\n') {
            self.line_end = start + line_end as u64 + 1;
        }
        if mark_at.is_some() {
            self.marked = self.line_end;
        }
        // The `#file` line is in block 0, or at the beginning of block 1.
        if index < 2
            && self.firsts[0] == UNKNOWN
            && let Some(first) = number_after(data, b"#file number=", b" first=")
        {
            self.firsts = [first; STREAMS_MAX];
        }
    }

    /// Reads the index of the first sample from a stream header, whose first block contains it.
    fn add_header(&mut self, block: &Block) {
        let (kind, stream) = (block[BLOCK_KIND_AT], usize::from(block[BLOCK_KIND_AT + 1]));
        if kind == HEADER_KIND
            && let Some(unknown) = self.firsts.get_mut(stream)
            && *unknown == UNKNOWN
            && let Some(first) = number_after(&block[PAYLOAD_AT..], b"cardiograph ", b"\nfirst ")
        {
            *unknown = first;
        }
    }

    /// Marks all data added so far as durable.
    pub(super) fn commit(&mut self) {
        self.durable = self.marked;
    }
}

/// Offset of the byte that states the kind of a binary block; the next byte is the stream number.
const BLOCK_KIND_AT: usize = 12;
/// Kind of a block that contains a header.
const HEADER_KIND: u8 = 0;
/// Offset of the payload of a binary block.
const PAYLOAD_AT: usize = 36;

/// Returns the decimal number after `key`, which comes after `start`.
fn number_after(text: &[u8], start: &[u8], key: &[u8]) -> Option<u64> {
    let after = |text: &[u8], key: &[u8]| {
        let at = text.windows(key.len()).position(|window| window == key)?;
        Some(at + key.len())
    };
    let text = &text[after(text, start)?..];
    let digits = &text[after(text, key)?..];
    let count = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    str::from_utf8(&digits[..count]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_the_next_number_on_are_reserved() {
        let files = LiveFiles::default();
        assert!(!files.is_used("LOG00001/LOG01234.CSV"));
        let files = LiveFiles::before_recording();
        for path in ["LOG00000", "log00000/LOG00001.CSV", "XYZ00123/XYZ23007.BIN"] {
            assert!(files.is_used(path), "{path}");
        }
        files.reserve(BTreeMap::from([(*b"LOG", 1234), (*b"BIN", 1)]));
        for path in [
            "LOG00001",
            "log00001",
            "LOG00002",
            "LOG00001/LOG01234.CSV",
            "LOG00001/LOG01234.TXT",
            "LOG00001/LOG01235 flight.CSV",
            "Log00001/log01999.csv",
            "LOG00101/LOG01001.CSV",
            "BIN00000/BIN00001.BIN",
            "b\u{131}n00000",
        ] {
            assert!(files.is_used(path), "{path}");
        }
        for path in [
            "LOG00000",
            "LOG00001/LOG01233.CSV",
            "LOG00001/LOG01000 flight.CSV",
            "LOG00001/notes.txt",
            "LOG00001/BIN01234.CSV",
            "LOG0001",
            "LOG000001",
            "LOG01234.CSV",
            "notes/LOG01234.CSV",
            "ABC00001",
            "",
        ] {
            assert!(!files.is_used(path), "{path}");
        }
        files.release();
        assert!(!files.is_used("LOG00002"));
    }

    fn block(start: u32, text: &str, has_mark: bool) -> Block {
        let mut block = [b' '; BLOCK_BYTES];
        block[..text.len()].copy_from_slice(text.as_bytes());
        if has_mark {
            let fields = "5F3A9C01 000001C0 00000180 00002F1A 00000001 00000025 0001D4C0 9C01B2D4";
            let end = format!("#{:pad$}@{fields}\r\n", "", pad = start as usize);
            block[BLOCK_BYTES - end.len()..].copy_from_slice(end.as_bytes());
        }
        block
    }

    #[test]
    fn a_mark_at_the_end_is_not_data() {
        let mut data = DataLength::default();
        let about = "#file number=12 first=1200 at_us=5\r\nline\r\n";
        data.add(0, &block(4, about, true), false);
        assert_eq!(data.durable, 0);
        data.commit();
        assert_eq!(data.durable, about.len() as u64);
        assert_eq!(data.firsts[0], 1200);
        // Recovery does not accept a block without a checkpoint mark, so such a block counts only once a
        // later block has a mark.
        data.add(1, &block(0, "two\r\nthree", false), false);
        data.commit();
        assert_eq!(data.durable, about.len() as u64);
        data.add(2, &block(4, "end\r\n", true), false);
        data.commit();
        assert_eq!(data.durable, 2 * 512 + 5);
    }

    #[test]
    fn padding_that_begins_in_the_block_before_the_mark_is_not_data() {
        let mut data = DataLength::default();
        data.add(0, &block(0, "one\r\ntwo\r\n#", false), false);
        data.add(1, &block(400, "", true), false);
        data.commit();
        assert_eq!(data.durable, 10);
    }

    #[test]
    fn headers_of_streams_name_their_first_samples() {
        let mut data = DataLength::default();
        let header = |stream: u8, first: u64| {
            let text = format!("cardiograph recording 2\nprefix LOG\nfirst {first}\nat_us 7\n");
            let mut block = [0; BLOCK_BYTES];
            block[BLOCK_KIND_AT + 1] = stream;
            block[PAYLOAD_AT..PAYLOAD_AT + text.len()].copy_from_slice(text.as_bytes());
            block
        };
        data.add(0, &header(1, 7), true);
        data.add(1, &header(0, 9), true);
        // A repeated header does not change anything.
        data.add(2, &header(1, 7), true);
        assert_eq!(data.firsts, [9, 7, UNKNOWN, UNKNOWN]);
        data.commit();
        assert_eq!(data.durable, 3 * 512);
    }
}
