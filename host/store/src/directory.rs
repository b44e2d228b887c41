//! Files in a folder of this computer.

use crate::{Medium, StoreError};
use cardiograph_workload::{Flush, Store, Workload};
use rustix::fs::{Advice, OFlags};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How writes reach the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// Through the page cache: a write returns before the medium has it.
    Buffered,
    /// Past the page cache (`O_DIRECT`): whole blocks only, and a device may still hold them in RAM.
    Direct,
    /// Each write returns when the medium has it (`O_DSYNC`).
    Dsync,
    /// `fsync` after each write, inside its time.
    FsyncWrite,
    /// `fsync` before a file is closed.
    FsyncFile,
}

/// A directory as a store. It only ever removes what it made.
pub struct Directory {
    root: PathBuf,
    io: Io,
}

/// An open file of a [`Directory`].
pub struct DirectoryFile {
    file: File,
    writable: bool,
}

impl Directory {
    /// The directory at `root`, which must be there.
    ///
    /// # Errors
    /// If it is not there, or is no directory.
    pub fn open(root: &Path, io: Io) -> io::Result<Directory> {
        if !std::fs::metadata(root)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Directory {
            root: root.to_path_buf(),
            io,
        })
    }

    /// Why the times of this workload may not be the medium's.
    pub fn warnings(&self, workload: &Workload) -> Vec<&'static str> {
        if Medium::of(&self.root).is_memory {
            return vec![
                "this directory is kept in memory: the times are the computer's, not a medium's",
            ];
        }
        let on_writes = match self.io {
            Io::Buffered if workload.times_its_syncs() => None,
            Io::Buffered => Some(
                "the page cache hides the medium: writes return before the medium has them; \
                 use --io dsync or direct to see it",
            ),
            Io::FsyncFile => Some(
                "the page cache hides the medium until a file is closed; use --io dsync or direct \
                 to see it in every write",
            ),
            Io::Dsync | Io::FsyncWrite if workload.times_its_syncs() => Some(
                "every write waits for the medium already, so the workload's own syncs make no \
                 difference; use --io buffered to see them",
            ),
            Io::Direct | Io::Dsync | Io::FsyncWrite => None,
        };
        let on_reads = (workload.reads() && self.io != Io::Direct).then_some(
            "the page cache hides the medium: reads may come from the computer's memory; use --io \
             direct to see it",
        );
        on_writes.into_iter().chain(on_reads).collect()
    }

    fn options(&self, writable: bool) -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(true).write(writable);
        let flags = match self.io {
            Io::Direct => OFlags::DIRECT,
            Io::Dsync => OFlags::DSYNC,
            Io::Buffered | Io::FsyncWrite | Io::FsyncFile => OFlags::empty(),
        };
        options.custom_flags(flags.bits() as i32);
        options
    }
}

impl Store for Directory {
    type File = DirectoryFile;
    type Error = StoreError;

    fn has_long_names(&self) -> bool {
        true
    }

    fn mkdir(&mut self, path: &str) -> Result<bool, StoreError> {
        match std::fs::create_dir(self.root.join(path)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn create(&mut self, path: &str) -> Result<DirectoryFile, StoreError> {
        let path = self.root.join(path);
        match self.options(true).create_new(true).open(&path) {
            Ok(file) => Ok(DirectoryFile {
                file,
                writable: true,
            }),
            Err(error) => {
                // A file system without O_DIRECT makes the file before it refuses to open it.
                if self.io == Io::Direct && error.kind() == io::ErrorKind::InvalidInput {
                    let _ = std::fs::remove_file(&path);
                }
                Err(error.into())
            }
        }
    }

    fn append(&mut self, path: &str) -> Result<DirectoryFile, StoreError> {
        match self.options(true).open(self.root.join(path)) {
            Ok(file) => Ok(DirectoryFile {
                file,
                writable: true,
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.create(path),
            Err(error) => Err(error.into()),
        }
    }

    fn open(&mut self, path: &str, writable: bool) -> Result<DirectoryFile, StoreError> {
        let file = self.options(writable).open(self.root.join(path))?;
        if !writable && self.io != Io::Buffered {
            // What the cache holds would not be read from the medium.
            let _ = rustix::fs::fadvise(&file, 0, None, Advice::DontNeed);
        }
        Ok(DirectoryFile { file, writable })
    }

    #[inline]
    fn write(
        &mut self,
        file: &mut DirectoryFile,
        offset_bytes: u64,
        data: &[u8],
    ) -> Result<(), StoreError> {
        file.file.write_all_at(data, offset_bytes)?;
        if self.io == Io::FsyncWrite {
            file.file.sync_all()?;
        }
        Ok(())
    }

    fn read(
        &mut self,
        file: &mut DirectoryFile,
        offset_bytes: u64,
        buffer: &mut [u8],
    ) -> Result<usize, StoreError> {
        let mut read = 0;
        while read < buffer.len() {
            match file
                .file
                .read_at(&mut buffer[read..], offset_bytes + read as u64)
            {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(read)
    }

    fn flush(&mut self, file: &mut DirectoryFile, how: Flush) -> Result<(), StoreError> {
        match how {
            // Dropping pages from the cache makes the kernel begin to write the dirty ones.
            Flush::Start => rustix::fs::fadvise(&file.file, 0, None, Advice::DontNeed)
                .map_err(|error| StoreError::Io(error.into())),
            Flush::Wait => Ok(file.file.sync_all()?),
        }
    }

    fn close(&mut self, file: DirectoryFile) -> Result<(), StoreError> {
        if self.io == Io::FsyncFile && file.writable {
            file.file.sync_all()?;
        }
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<(), StoreError> {
        let path = self.root.join(path);
        if path.is_dir() {
            Ok(std::fs::remove_dir(path)?)
        } else {
            Ok(std::fs::remove_file(path)?)
        }
    }
}
