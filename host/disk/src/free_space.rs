//! The free space of a directory, as new files.

use crate::medium::Medium;
use cardiograph_system::{Flag, Positioned, drop_from_cache};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Length of a file: below the limit of FAT.
const FILE_BYTES: u64 = 1 << 30;

/// Number of names tried for the folder.
const NAMES_MAX: u32 = 10_000;

/// Free space left for the file system's own structures, at least, in bytes.
const RESERVE_BYTES: u64 = 4 << 20;

/// New files in a new folder of a directory, removed when this is dropped. Existing files are not touched.
pub struct FreeSpace {
    folder: PathBuf,
    files: Vec<File>,
    capacity_bytes: u64,
}

impl FreeSpace {
    /// Creates a folder; files follow as they are written. Uses at most `limit_bytes` of the free space.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn of(directory: &Path, limit_bytes: u64) -> io::Result<FreeSpace> {
        let free_bytes = cardiograph_system::space(directory)?.free_bytes;
        let reserve_bytes = RESERVE_BYTES.max(free_bytes / 100);
        let usable_bytes = free_bytes.saturating_sub(reserve_bytes).min(limit_bytes);
        Ok(FreeSpace {
            folder: create_folder(directory)?,
            files: Vec::new(),
            capacity_bytes: usable_bytes / (1 << 20) * (1 << 20),
        })
    }

    /// Returns the folder of the files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the file with an offset, and the offset within it; creates files up to it.
    fn place(&mut self, offset_bytes: u64) -> io::Result<(&File, u64)> {
        let index = (offset_bytes / FILE_BYTES) as usize;
        while self.files.len() <= index {
            let path = self.path(self.files.len());
            self.files.push(create_file(&path)?);
        }
        Ok((&self.files[index], offset_bytes % FILE_BYTES))
    }

    fn path(&self, file: usize) -> PathBuf {
        self.folder.join(format!("{file:05}.bin"))
    }
}

/// Returns the folders in a directory that another run of this name (`check`, `flash-benchmark`) has created and not
/// removed yet: it is still running, or it was killed.
pub fn folders_left(directory: &Path, run: &str) -> Vec<PathBuf> {
    let prefix = format!("cardiograph-{run}-");
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_of_run = |name: &str| {
        let number = name.strip_prefix(&prefix);
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let own = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_of_run));
    let mut folders: Vec<_> = own.map(|entry| entry.path()).collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    folders
}

fn create_folder(directory: &Path) -> io::Result<PathBuf> {
    for number in 0..NAMES_MAX {
        let folder = directory.join(format!("cardiograph-check-{number}"));
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Creates a file that bypasses the page cache, or that at least does not return before the disk has the data.
fn create_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.create_new(true);
    cardiograph_system::set(&mut options, &[Flag::BypassCache]);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            // A failing open may have created the file.
            let _ = std::fs::remove_file(path);
            cardiograph_system::set(&mut options, &[Flag::WriteThrough]);
            options.open(path)
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
        file.read_exact_at(buffer, offset_bytes)
    }

    fn write_at(&mut self, offset_bytes: u64, data: &[u8]) -> io::Result<()> {
        let (file, offset_bytes) = self.place(offset_bytes)?;
        file.write_all_at(data, offset_bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        for file in &self.files {
            file.sync_all()?;
            drop_from_cache(file)?;
        }
        Ok(())
    }
}

impl Drop for FreeSpace {
    fn drop(&mut self) {
        for file in 0..self.files.len() {
            let _ = std::fs::remove_file(self.path(file));
        }
        let _ = std::fs::remove_dir(&self.folder);
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
        std::fs::create_dir(own.path().join("cardiograph-check-mine")).unwrap();
        assert_eq!(
            folders_left(own.path(), "check"),
            [old.clone(), space.folder().into()]
        );
        std::fs::remove_dir(own.path().join("cardiograph-check-mine")).unwrap();
        drop(space);
        let left: Vec<_> = std::fs::read_dir(own.path()).unwrap().collect();
        assert_eq!(left.len(), 1);
        assert_eq!(std::fs::read(old.join("00000.bin")).unwrap(), b"mine");
    }
}
