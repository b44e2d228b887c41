//! A temporary file for the times or offsets of a trace that should not stay in memory.
//!
//! The file has no name, so that nothing remains when the process ends, even if it is killed. It stores blocks of a
//! fixed number of 32-bit values, little endian.

use crate::publish;
use std::fs::{self, File, OpenOptions};
use std::io;
#[cfg(unix)]
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::OnceLock;

/// A temporary file of equal blocks.
pub(crate) struct Spill {
    file: File,
    blocks: u64,
    bytes: Vec<u8>,
    /// Number of blocks for which there is space.
    #[cfg(test)]
    blocks_max: u64,
    /// First error of a read; the values of that block are unknown.
    failed: OnceLock<io::Error>,
}

impl Spill {
    /// Creates the file in the directory of `path`, so that it is on the same file system.
    ///
    /// # Errors
    /// If the file cannot be created; on systems other than Unix, where open files keep their name, always.
    pub(crate) fn beside(path: &Path) -> io::Result<Spill> {
        Ok(Spill::of(create(path)?))
    }

    fn of(file: File) -> Spill {
        Spill {
            file,
            blocks: 0,
            bytes: Vec::new(),
            #[cfg(test)]
            blocks_max: u64::MAX,
            failed: OnceLock::new(),
        }
    }

    /// Appends a block; returns its number. All blocks have the same length.
    pub(crate) fn append(&mut self, values: &[u32]) -> io::Result<u64> {
        #[cfg(test)]
        if self.blocks >= self.blocks_max {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.clear();
        self.bytes
            .extend(values.iter().flat_map(|value| value.to_le_bytes()));
        write_all_at(&self.file, &self.bytes, self.blocks * length(values.len()))?;
        self.blocks += 1;
        Ok(self.blocks - 1)
    }

    /// Reads a block of `count` values; the values are 0 if it cannot be read.
    pub(crate) fn read(&self, block: u64, count: usize, values: &mut Vec<u32>) {
        let mut bytes = vec![0; count * size_of::<u32>()];
        if let Err(error) = read_exact_at(&self.file, &mut bytes, block * length(count)) {
            bytes.fill(0);
            // Only the first error counts.
            let _ = self.failed.set(error);
        }
        values.clear();
        let (words, _) = bytes.as_chunks();
        values.extend(words.iter().copied().map(u32::from_le_bytes));
    }

    /// Lets the file fill up after the given number of blocks.
    #[cfg(test)]
    pub(crate) fn failing_after(self, blocks_max: u64) -> Spill {
        Spill { blocks_max, ..self }
    }

    /// Returns the first error of a read.
    pub(crate) fn error(&self) -> Option<&io::Error> {
        self.failed.get()
    }
}

fn length(count: usize) -> u64 {
    (count * size_of::<u32>()) as u64
}

/// Creates a file without a name; where the file system does not support this, the name is removed at once.
fn create(path: &Path) -> io::Result<File> {
    if !cfg!(unix) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let name = publish::temporary_name(path)?;
    publish::unnamed(&name).map_or_else(|| named_and_removed(&name), Ok)
}

fn named_and_removed(name: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    let file = options.open(name)?;
    fs::remove_file(name)?;
    Ok(file)
}

#[cfg(unix)]
fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    file.write_all_at(bytes, at)
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    file.read_exact_at(bytes, at)
}

#[cfg(not(unix))]
fn write_all_at(_: &File, _: &[u8], _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(unix))]
fn read_exact_at(_: &File, _: &mut [u8], _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_back_in_any_order_and_nothing_remains() {
        let directory = tempfile::tempdir().unwrap();
        let mut spill = Spill::beside(&directory.path().join("t.parquet")).unwrap();
        for block in 0..3 {
            assert_eq!(
                spill.append(&[block, u32::MAX - block]).unwrap(),
                u64::from(block)
            );
        }
        let mut values = Vec::new();
        for block in [2, 0, 1] {
            spill.read(u64::from(block), 2, &mut values);
            assert_eq!(values, [block, u32::MAX - block]);
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        assert!(spill.error().is_none());
    }

    /// File systems such as FAT have no unnamed files.
    #[test]
    fn a_file_whose_name_was_removed_serves_as_well() {
        let directory = tempfile::tempdir().unwrap();
        let name = directory.path().join(".t.part");
        let mut spill = Spill::of(named_and_removed(&name).unwrap());
        spill.append(&[7, 8]).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        let mut values = Vec::new();
        spill.read(0, 2, &mut values);
        assert_eq!(values, [7, 8]);
        // A file of somebody else is never opened.
        fs::write(&name, "own").unwrap();
        assert!(named_and_removed(&name).is_err());
        assert_eq!(fs::read_to_string(&name).unwrap(), "own");
    }

    #[test]
    fn a_block_that_cannot_be_read_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let mut spill = Spill::beside(&directory.path().join("t.parquet")).unwrap();
        spill.append(&[1, 2]).unwrap();
        let mut values = Vec::new();
        spill.read(1, 2, &mut values);
        assert_eq!(values, [0, 0]);
        assert!(spill.error().is_some());
    }
}
