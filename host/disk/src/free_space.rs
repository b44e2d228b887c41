//! The free space of a directory, as new files.

use crate::medium::Medium;
use cardiograph_system::{
    Access, FileIdentity, Flag, Folder, Positioned, drop_from_cache, identity,
};
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Length of a file: below the limit of FAT.
const FILE_BYTES: u64 = 1 << 30;

/// Number of names tried for the folder.
const NAMES_MAX: u32 = 10_000;

/// Free space left for the file system's own structures, at least, in bytes.
const RESERVE_BYTES: u64 = 4 << 20;

/// The same as a share of the free space: small enough that an empty card is tested to 99 % of its capacity.
const RESERVE_SHARE: u64 = 400;

/// Capacities are multiples of this.
const UNIT_BYTES: u64 = 1 << 20;

/// Free space with which a check is possible, in bytes: for the file system, for one unit, and for the folder.
pub const FREE_BYTES_MIN: u64 = RESERVE_BYTES + 2 * UNIT_BYTES;

/// New files in a new folder of a directory. Existing files are not touched.
///
/// Both are held open, so that the files are found again if a folder is renamed meanwhile. One file at a time is open:
/// a large card has more files than a process may open.
pub struct FreeSpace {
    directory: Folder,
    /// Name of the folder in the directory.
    name: String,
    folder: Folder,
    /// Space that was free at the beginning.
    free_bytes: u64,
    capacity_bytes: u64,
    /// Files created so far.
    files: Vec<FileIdentity>,
    /// Number of the open file, and the file.
    open: Option<(usize, File)>,
    is_removed: bool,
}

/// Failure to remove the files.
#[derive(Debug)]
pub struct NotRemoved {
    /// The folder, wherever it is now.
    pub folder: PathBuf,
    /// First error of the operating system.
    pub source: io::Error,
}

impl std::error::Error for NotRemoved {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl fmt::Display for NotRemoved {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let NotRemoved { folder, source } = self;
        write!(f, "{} could not be removed: {source}", folder.display())
    }
}

impl FreeSpace {
    /// Creates a folder; files follow as they are written. Uses at most `limit_bytes` of the free space.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn of(directory: &Path, limit_bytes: u64) -> io::Result<FreeSpace> {
        let directory = Folder::open(directory)?;
        let free_bytes = directory.space()?.free_bytes;
        let reserve_bytes = RESERVE_BYTES.max(free_bytes / RESERVE_SHARE);
        let usable_bytes = free_bytes.saturating_sub(reserve_bytes);
        let (name, folder) = create_folder(&directory)?;
        Ok(FreeSpace {
            directory,
            name,
            folder,
            free_bytes,
            capacity_bytes: usable_bytes.min(limit_bytes) / UNIT_BYTES * UNIT_BYTES,
            files: Vec::new(),
            open: None,
            is_removed: false,
        })
    }

    /// Returns the space that was free at the beginning, in bytes.
    pub fn free_bytes(&self) -> u64 {
        self.free_bytes
    }

    /// Returns the folder of the files.
    pub fn folder(&self) -> PathBuf {
        self.folder.path()
    }

    /// Removes the files and the folder.
    ///
    /// # Errors
    /// [`NotRemoved`]; as much as possible has been removed.
    pub fn remove(mut self) -> Result<(), NotRemoved> {
        self.remove_all().map_err(|source| NotRemoved {
            folder: self.folder.path(),
            source,
        })
    }

    fn remove_all(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.is_removed, true) {
            return Ok(());
        }
        self.open = None;
        let mut result = Ok(());
        for (file, &own) in self.files.iter().enumerate() {
            // A file that somebody else has put in its place stays.
            if self.folder.holds(&name_of(file), own) {
                result = result.and(self.folder.remove_file(&name_of(file)));
            }
        }
        result.and(remove_own_folder(&self.directory, &self.name, &self.folder))
    }

    /// Returns the file with an offset, and the offset within it; creates files up to it.
    fn place(&mut self, offset_bytes: u64) -> io::Result<(&File, u64)> {
        let index = (offset_bytes / FILE_BYTES) as usize;
        let is_open = self.open.as_ref().is_some_and(|open| open.0 == index);
        if !is_open {
            while self.files.len() < index {
                self.create()?;
            }
            let file = match self.files.get(index) {
                None => self.create()?,
                Some(&own) => {
                    let file = open(&self.folder, index, Access::ReadWrite)?;
                    check_own(&file, own)?;
                    file
                }
            };
            if let Some((_, before)) = self.open.replace((index, file)) {
                before.sync_all()?;
            }
        }
        match &self.open {
            Some((_, file)) => Ok((file, offset_bytes % FILE_BYTES)),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn create(&mut self) -> io::Result<File> {
        let file = open(&self.folder, self.files.len(), Access::Create)?;
        self.files.push(identity(&file.metadata()?));
        Ok(file)
    }
}

/// Removes the folder of a run from its directory, wherever it is now.
///
/// # Errors
/// If it contains files of others, was moved, or cannot be removed.
pub fn remove_own_folder(directory: &Folder, name: &str, folder: &Folder) -> io::Result<()> {
    let removed = match directory.contains(name, folder) {
        true => directory.remove_folder(name),
        false if folder.is_removed() => Ok(()),
        false => Err(io::Error::other("it was moved during the run")),
    };
    removed.map_err(|error| match error.kind() {
        // The remedy removes the folder with all that is in it.
        io::ErrorKind::DirectoryNotEmpty => io::Error::new(
            error.kind(),
            "it contains files that this run did not create: move them elsewhere first",
        ),
        _ => error,
    })
}

/// Returns an error if an open file is not the one that this run created under its name.
///
/// # Errors
/// [`NotFound`](io::ErrorKind::NotFound), and those of the system.
pub fn check_own(file: &File, own: FileIdentity) -> io::Result<()> {
    match identity(&file.metadata()?) == own {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::NotFound,
            "another program has put a file of its own in place of one of this run",
        )),
    }
}

fn name_of(file: usize) -> String {
    format!("{file:05}.bin")
}

fn create_folder(directory: &Folder) -> io::Result<(String, Folder)> {
    for number in 0..NAMES_MAX {
        let name = format!("cardiograph-check-{number}");
        match directory.create_folder(&name) {
            Ok(()) => {
                let folder = directory.folder(&name).inspect_err(|_| {
                    let _ = directory.remove_folder(&name);
                })?;
                return Ok((name, folder));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Opens a file so that it bypasses the page cache, or that a write at least does not return before the disk has the data.
fn open(folder: &Folder, file: usize, access: Access) -> io::Result<File> {
    let name = name_of(file);
    match folder.file(&name, access, &[Flag::BypassCache]) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            if access == Access::Create {
                // A failing open may have created the file.
                let _ = folder.remove_file(&name);
            }
            folder.file(&name, access, &[Flag::WriteThrough])
        }
        opened => opened,
    }
}

impl Medium for FreeSpace {
    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    fn block_bytes(&self) -> u32 {
        4096
    }

    fn read_at(&mut self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        let (file, offset_bytes) = self.place(offset_bytes)?;
        let read = file.read_exact_at(buffer, offset_bytes);
        read.map_err(|error| match error.kind() {
            // The file had its length when it was written, so the medium is not the cause.
            io::ErrorKind::UnexpectedEof => io::Error::new(
                io::ErrorKind::NotFound,
                "a file of the check became shorter",
            ),
            _ => error,
        })
    }

    fn write_at(&mut self, offset_bytes: u64, data: &[u8]) -> io::Result<()> {
        let (file, offset_bytes) = self.place(offset_bytes)?;
        file.write_all_at(data, offset_bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some((_, file)) = self.open.take() {
            file.sync_all()?;
        }
        for file in 0..self.files.len() {
            drop_from_cache(&self.folder.file(&name_of(file), Access::Read, &[])?)?;
        }
        Ok(())
    }
}

impl Drop for FreeSpace {
    fn drop(&mut self) {
        let _ = self.remove_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_new_and_removed() {
        let own = tempfile::tempdir().unwrap();
        let old = own.path().join("cardiograph-check-0");
        std::fs::create_dir(&old).unwrap();
        std::fs::write(old.join("00000.bin"), "mine").unwrap();
        let mut space = FreeSpace::of(own.path(), 8 << 20).unwrap();
        assert_eq!(space.capacity_bytes(), 8 << 20);
        let mut data = crate::Aligned::zeros(4096);
        data.bytes().fill(7);
        space.write_at(4096, data.bytes()).unwrap();
        space.flush().unwrap();
        data.bytes().fill(0);
        space.read_at(4096, data.bytes()).unwrap();
        assert!(data.bytes().iter().all(|&byte| byte == 7));
        assert!(space.folder().join("00000.bin").exists());
        space.remove().unwrap();
        let left: Vec<_> = std::fs::read_dir(own.path()).unwrap().collect();
        assert_eq!(left.len(), 1);
        assert_eq!(std::fs::read(old.join("00000.bin")).unwrap(), b"mine");
    }

    #[test]
    fn a_file_that_became_shorter_is_no_error_of_the_medium() {
        let own = tempfile::tempdir().unwrap();
        let mut space = FreeSpace::of(own.path(), 8 << 20).unwrap();
        let mut data = crate::Aligned::zeros(4096);
        space.write_at(4096, data.bytes()).unwrap();
        space.flush().unwrap();
        std::fs::write(space.folder().join("00000.bin"), "").unwrap();
        let error = space.read_at(4096, data.bytes()).unwrap_err();
        assert!(!cardiograph_system::is_of_medium(&error), "{error}");
    }

    /// Writes a block to each of the given files.
    fn write_to(space: &mut FreeSpace, files: u64) {
        let mut data = crate::Aligned::zeros(4096);
        for file in 0..files {
            data.bytes().fill(file as u8);
            space.write_at(file * FILE_BYTES, data.bytes()).unwrap();
        }
        space.flush().unwrap();
        for file in 0..files {
            space.read_at(file * FILE_BYTES, data.bytes()).unwrap();
            assert!(data.bytes().iter().all(|&byte| byte == file as u8));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn one_file_at_a_time_is_open() {
        let own = tempfile::tempdir().unwrap();
        let mut space = FreeSpace::of(own.path(), 8 << 20).unwrap();
        write_to(&mut space, 20);
        let folder = space.folder();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 20);
        let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let open = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        let within = open.filter(|path| path.starts_with(&folder) && *path != folder);
        assert_eq!(within.count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn files_are_removed_after_the_directory_was_renamed() {
        let own = tempfile::tempdir().unwrap();
        let (before, after) = (own.path().join("card"), own.path().join("moved"));
        std::fs::create_dir(&before).unwrap();
        let mut space = FreeSpace::of(&before, 8 << 20).unwrap();
        write_to(&mut space, 2);
        std::fs::rename(&before, &after).unwrap();
        write_to(&mut space, 3);
        space.remove().unwrap();
        assert_eq!(std::fs::read_dir(&after).unwrap().count(), 0);
        assert!(!before.exists());
    }

    /// Another folder of the same name is not removed.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_that_was_moved_is_named() {
        let own = tempfile::tempdir().unwrap();
        let mut space = FreeSpace::of(own.path(), 8 << 20).unwrap();
        write_to(&mut space, 2);
        let (before, after) = (space.folder(), own.path().join("moved"));
        std::fs::rename(&before, &after).unwrap();
        std::fs::create_dir(&before).unwrap();
        let left = space.remove().unwrap_err();
        assert_eq!(left.folder, std::fs::canonicalize(&after).unwrap());
        assert!(left.to_string().contains("it was moved during the run"));
        assert_eq!(std::fs::read_dir(&after).unwrap().count(), 0);
        assert!(before.exists());
    }

    /// Another file with the name of one of the run is neither overwritten nor removed.
    #[test]
    fn a_file_in_place_of_one_of_the_run_stays() {
        let own = tempfile::tempdir().unwrap();
        let mut space = FreeSpace::of(own.path(), 8 << 20).unwrap();
        write_to(&mut space, 2);
        let replaced = space.folder().join("00000.bin");
        // A new file must not get the inode of the old one.
        std::fs::rename(&replaced, own.path().join("elsewhere")).unwrap();
        std::fs::write(&replaced, "mine").unwrap();
        let mut data = crate::Aligned::zeros(4096);
        let refused = space.write_at(0, data.bytes()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::NotFound);
        let left = space.remove().unwrap_err();
        assert!(
            left.to_string()
                .contains("files that this run did not create")
        );
        let names: Vec<_> = std::fs::read_dir(&left.folder).unwrap().flatten().collect();
        assert_eq!(names.len(), 1);
        assert_eq!(std::fs::read(&replaced).unwrap(), b"mine");
    }

    #[test]
    fn files_that_are_gone_already_are_no_failure() {
        let own = tempfile::tempdir().unwrap();
        let mut space = FreeSpace::of(own.path(), 8 << 20).unwrap();
        write_to(&mut space, 1);
        std::fs::remove_dir_all(space.folder()).unwrap();
        space.remove().unwrap();
    }
}
