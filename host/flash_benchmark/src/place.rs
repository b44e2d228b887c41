//! Places that an experiment writes to: the raw region of a disk, and a folder.

use crate::case::Work;
use crate::report::Cause;
use crate::scenario::{End, Scenario, SyncAfterEach};
use cardiograph_disk::{
    Aligned, Formatted, Medium, NotRemoved, Scratch, check_own, remove_own_folder,
};
use cardiograph_system::{
    Access, FileIdentity, Folder as OpenFolder, Positioned, identity, path_of_open,
    sync_file_system,
};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Asked between calls whether the run may go on.
pub(crate) type GoOn<'a> = &'a mut dyn FnMut() -> ControlFlow<()>;

/// End of a repetition that has no result.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The caller asked for it.
    Stopped,
    /// An operation failed.
    Failed(Fault),
}

/// Reason of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Error as text.
    pub text: String,
    pub cause: Cause,
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault {
            text: error.to_string(),
            cause: Cause::of(&error),
        }
    }
}

impl From<io::Error> for Halt {
    fn from(error: io::Error) -> Halt {
        Halt::Failed(error.into())
    }
}

/// Bytes written and the time that it took.
pub(crate) type Repetition = Result<(u64, Duration), Halt>;

/// Largest call in bytes.
const CALL_BYTES_MAX: usize = 1 << 20;

/// Offsets and lengths of raw transfers are multiples of this, or of the disk's blocks.
const RAW_UNIT_BYTES: u32 = 4096;

/// Number of names tried for a folder.
const NAMES_MAX: u32 = 10_000;

/// Random numbers; the offsets of a run are the same every time.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new() -> Random {
        Random(1)
    }

    /// Returns a number below `end` (SplitMix64; Steele, Lea and Flood, 2014).
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % end.max(1)
    }
}

/// Offsets of the calls of a repetition: sequences at random multiples of the length of a call.
fn offsets(
    calls: u32,
    call_bytes: u32,
    calls_per_jump: u32,
    area_bytes: u64,
    random: &mut Random,
) -> Vec<u64> {
    let places = area_bytes / u64::from(call_bytes);
    let mut first = 0;
    let next = |call: u32| {
        let within = u64::from(call % calls_per_jump.max(1));
        if within == 0 {
            let last = places.saturating_sub(u64::from(calls_per_jump.max(1)));
            first = random.below(last + 1);
        }
        (first + within) % places.max(1) * u64::from(call_bytes)
    };
    (0..calls).map(next).collect()
}

/// Writes transfers to the raw region of a disk, bypassing the page cache.
pub(crate) fn transfer_raw(
    scratch: &mut Scratch,
    work: &Work,
    random: &mut Random,
    go_on: GoOn,
) -> Repetition {
    let &Work::Transfers {
        calls,
        call_bytes,
        calls_per_jump,
        ..
    } = work
    else {
        return Err(io::Error::from(io::ErrorKind::Unsupported).into());
    };
    let (begin_bytes, area_bytes) = scratch.region();
    let disk = scratch.disk();
    // A MB is no multiple of a block, 1 KiB may be less than one.
    let unit = match call_bytes >= RAW_UNIT_BYTES {
        true => RAW_UNIT_BYTES.max(disk.block_bytes()),
        false => disk.block_bytes(),
    };
    let call_bytes = (call_bytes / unit * unit).max(unit);
    let mut buffer = Aligned::zeros(call_bytes as usize);
    let offsets = offsets(calls, call_bytes, calls_per_jump, area_bytes, random);
    let begun = Instant::now();
    for offset_bytes in offsets {
        let address = begin_bytes + offset_bytes;
        let written = disk.write_at(address, buffer.bytes());
        written.map_err(|error| {
            Halt::Failed(Fault {
                text: format!("byte {address} of the disk: {error}"),
                cause: Cause::of(&error),
            })
        })?;
        poll(go_on)?;
    }
    disk.flush()?;
    Ok((u64::from(calls) * u64::from(call_bytes), begun.elapsed()))
}

fn poll(go_on: GoOn) -> Result<(), Halt> {
    match go_on() {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Halt::Stopped),
    }
}

/// A new folder in a directory, removed with the files of this run by [`Folder::remove`] or when it is dropped.
///
/// Both are held open, so that the files are found again if a folder is renamed meanwhile. Nothing else is touched:
/// files that somebody else puts into the folder stay, and so does the folder then.
pub(crate) struct Folder<'a> {
    directory: OpenFolder,
    /// Name of the folder in the directory.
    name: String,
    folder: OpenFolder,
    /// Path through the open folder.
    path: PathBuf,
    /// The open folder, for syncing the file system.
    whole: File,
    /// The file system, if this run has mounted it.
    formatted: Option<&'a Formatted>,
    /// Files that this run created and has not removed yet, by their numbers.
    files: BTreeMap<u32, FileIdentity>,
    zeros: Vec<u8>,
    /// Length of the file that transfers go to.
    area_bytes: u64,
    is_removed: bool,
}

impl<'a> Folder<'a> {
    /// Creates a folder.
    pub(crate) fn new(
        directory: &Path,
        formatted: Option<&'a Formatted>,
    ) -> io::Result<Folder<'a>> {
        let directory = OpenFolder::open(directory)?;
        let name = create_folder(&directory)?;
        let opened = directory.folder(&name).and_then(|folder| {
            let whole = directory.file(&name, Access::Read, &[])?;
            Ok((folder, whole))
        });
        let (folder, whole) = opened.inspect_err(|_| {
            let _ = directory.remove_folder(&name);
        })?;
        Ok(Folder {
            path: path_of_open(&whole).unwrap_or_else(|| folder.path()),
            directory,
            name,
            folder,
            whole,
            formatted,
            files: BTreeMap::new(),
            zeros: vec![0; CALL_BYTES_MAX],
            area_bytes: 0,
            is_removed: false,
        })
    }

    /// Returns the free space in bytes.
    pub(crate) fn free_bytes(&self) -> io::Result<u64> {
        Ok(self.folder.space()?.free_bytes)
    }

    /// Does the work once.
    pub(crate) fn repeat(&mut self, work: &Work, random: &mut Random, go_on: GoOn) -> Repetition {
        match *work {
            Work::Files {
                files,
                calls,
                call_bytes,
            } => self.write_files(files, calls, call_bytes, go_on),
            Work::Transfers {
                calls,
                call_bytes,
                calls_per_jump,
                within_bytes,
            } => {
                self.prepare(within_bytes, go_on)?;
                let offsets = offsets(calls, call_bytes, calls_per_jump, within_bytes, random);
                self.transfer(&offsets, call_bytes, go_on)
            }
            Work::Scenario(scenario) => self.rewrite(&scenario, go_on),
        }
    }

    fn file(&self, number: u32) -> PathBuf {
        self.path.join(name_of(number))
    }

    /// Opens a file for writing and truncates it. It must be new, or one that this run created.
    fn open(&mut self, number: u32) -> io::Result<File> {
        if self.files.contains_key(&number) {
            let file = self.open_own(number)?;
            file.set_len(0)?;
            return Ok(file);
        }
        let mut options = OpenOptions::new();
        let opened = options.write(true).create_new(true).open(self.file(number));
        let file = opened.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => io::Error::new(
                error.kind(),
                format!(
                    "{}/{} exists already, and this run did not create it",
                    self.name,
                    name_of(number)
                ),
            ),
            _ => error,
        })?;
        self.files.insert(number, identity(&file.metadata()?));
        Ok(file)
    }

    /// Opens a file that this run created for writing.
    fn open_own(&self, number: u32) -> io::Result<File> {
        let own = self.files.get(&number).ok_or(io::ErrorKind::NotFound)?;
        let file = OpenOptions::new().write(true).open(self.file(number))?;
        check_own(&file, *own)?;
        Ok(file)
    }

    /// Writes a file from its beginning, as `dd` does.
    fn write_file(
        &mut self,
        number: u32,
        calls: u32,
        call_bytes: u32,
        go_on: GoOn,
    ) -> Result<(), Halt> {
        let mut file = self.open(number)?;
        for _ in 0..calls {
            file.write_all(&self.zeros[..call_bytes as usize])?;
            poll(go_on)?;
        }
        Ok(())
    }

    fn write_files(&mut self, files: u32, calls: u32, call_bytes: u32, go_on: GoOn) -> Repetition {
        let begun = Instant::now();
        for number in 0..files {
            self.write_file(number, calls, call_bytes, go_on)?;
            sync_file_system(&self.whole)?;
        }
        let elapsed = begun.elapsed();
        let bytes = u64::from(files) * u64::from(calls) * u64::from(call_bytes);
        Ok((bytes, elapsed))
    }

    /// Writes the file that transfers go to, unless it is long enough.
    fn prepare(&mut self, area_bytes: u64, go_on: GoOn) -> Result<(), Halt> {
        if self.area_bytes >= area_bytes {
            return Ok(());
        }
        let calls = area_bytes.div_ceil(CALL_BYTES_MAX as u64);
        self.write_file(AREA, calls as u32, CALL_BYTES_MAX as u32, go_on)?;
        sync_file_system(&self.whole)?;
        self.area_bytes = area_bytes;
        Ok(())
    }

    fn transfer(&self, offsets: &[u64], call_bytes: u32, go_on: GoOn) -> Repetition {
        let begun = Instant::now();
        let file = self.open_own(AREA)?;
        for &offset_bytes in offsets {
            file.write_all_at(&self.zeros[..call_bytes as usize], offset_bytes)?;
            poll(go_on)?;
        }
        drop(file);
        sync_file_system(&self.whole)?;
        let bytes = offsets.len() as u64 * u64::from(call_bytes);
        Ok((bytes, begun.elapsed()))
    }

    fn rewrite(&mut self, scenario: &Scenario, go_on: GoOn) -> Repetition {
        let mut syncs: Vec<JoinHandle<io::Result<()>>> = Vec::new();
        let begun = Instant::now();
        let written = self.rewrite_and_end(scenario, &mut syncs, go_on);
        let elapsed = begun.elapsed();
        // Whatever a scenario leaves to be written must not burden the next repetition.
        let joined = syncs.into_iter().map(|sync| sync.join().unwrap_or(Ok(())));
        let synced = joined.collect::<io::Result<()>>();
        written?;
        synced?;
        if scenario.end == End::ReadOnly {
            self.remount(false)?;
        }
        sync_file_system(&self.whole)?;
        Ok((Scenario::BYTES, elapsed))
    }

    fn rewrite_and_end(
        &mut self,
        scenario: &Scenario,
        syncs: &mut Vec<JoinHandle<io::Result<()>>>,
        go_on: GoOn,
    ) -> Result<(), Halt> {
        for _ in 0..Scenario::WRITES {
            self.write_file(0, 1, Scenario::FILE_BYTES, go_on)?;
            match scenario.after_each {
                SyncAfterEach::No => {}
                SyncAfterEach::Wait => sync_file_system(&self.whole)?,
                SyncAfterEach::Background => {
                    let whole = self.whole.try_clone()?;
                    let sync = std::thread::Builder::new();
                    syncs.push(sync.spawn(move || sync_file_system(&whole))?);
                }
            }
        }
        match scenario.end {
            End::Nothing => {}
            End::Sync => sync_file_system(&self.whole)?,
            End::ReadOnly => self.remount(true)?,
            End::Remount | End::RemountAndSync => {
                self.remount(true)?;
                self.remount(false)?;
            }
        }
        if scenario.end == End::RemountAndSync {
            sync_file_system(&self.whole)?;
        }
        Ok(())
    }

    fn remount(&self, is_read_only: bool) -> io::Result<()> {
        match self.formatted {
            Some(formatted) => formatted.remount(is_read_only),
            None => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Removes the files of a case, and returns the first error.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.area_bytes = 0;
        let mut result = Ok(());
        let folder = &self.folder;
        self.files.retain(|&number, &mut own| {
            // Somebody else removed it, or has put another file in its place, which stays.
            if !folder.holds(&name_of(number), own) {
                return false;
            }
            let removed = folder.remove_file(&name_of(number));
            let stays = removed.is_err();
            if result.is_ok() {
                result = removed;
            }
            stays
        });
        let _ = sync_file_system(&self.whole);
        result
    }

    /// Removes the files of this run and the folder. Returns the folder if it is left.
    pub(crate) fn remove(mut self) -> Option<NotRemoved> {
        let source = self.remove_all().err()?;
        Some(NotRemoved {
            folder: self.folder.path(),
            source,
        })
    }

    fn remove_all(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.is_removed, true) {
            return Ok(());
        }
        let cleared = self.clear();
        let removed = remove_own_folder(&self.directory, &self.name, &self.folder);
        cleared.and(removed)
    }
}

/// Number of the file that transfers go to.
const AREA: u32 = 99_999;

fn name_of(number: u32) -> String {
    format!("{number:05}.bin")
}

impl Drop for Folder<'_> {
    fn drop(&mut self) {
        let _ = self.remove_all();
    }
}

/// Name of the folder, without its number.
const FOLDER: &str = "cardiograph-flash-benchmark-";

fn create_folder(directory: &OpenFolder) -> io::Result<String> {
    for number in 0..NAMES_MAX {
        let name = format!("{FOLDER}{number}");
        match directory.create_folder(&name) {
            Ok(()) => return Ok(name),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
