//! Files in a directory of the host.

use crate::{StorageInfo, StoreError};
use cardiograph_system::{
    Access, FileIdentity, Flag, Folder, Positioned, drop_from_cache, identity,
};
use cardiograph_workload::{Flush, Store, Workload};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Way in which a write reaches the storage device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// Through the page cache: a write returns before the device has the data.
    Buffered,
    /// Bypassing the page cache (`O_DIRECT`): whole blocks only; the device may still hold them in its RAM.
    Direct,
    /// Each write returns when the device has the data (`O_DSYNC`).
    Dsync,
    /// `fsync` after each write, included in the measured time.
    FsyncWrite,
    /// `fsync` before closing a file.
    FsyncFile,
}

/// A directory as a store. It is held open, so that the files are found again if it is renamed meanwhile.
pub struct Directory {
    root: Folder,
    io: Io,
    /// Folder of the run in progress, which has not been removed yet.
    in_use: Option<InUse>,
    /// Files that were created here and not removed yet, by their paths.
    files: HashMap<String, FileIdentity>,
}

/// A folder that a run has created. It is held open, so that files of others are never taken for those of the run, even if
/// somebody moves the folder and puts another one or a link in its place.
struct InUse {
    name: String,
    folder: Folder,
    /// Number of the first error with which the system refused to remove the folder or one of its files.
    refusal: Option<i32>,
}

/// An open file of a [`Directory`].
pub struct DirectoryFile {
    file: File,
    writable: bool,
}

impl Directory {
    /// Opens the existing directory `root`.
    ///
    /// # Errors
    /// If `root` does not exist or is not a directory.
    pub fn open(root: &Path, io: Io) -> io::Result<Directory> {
        Ok(Directory {
            root: Folder::open(root)?,
            io,
            in_use: None,
            files: HashMap::new(),
        })
    }

    /// Returns the folder that a run has created and could not remove, if there is one, and the reason if the system
    /// refused to remove it or one of its files.
    pub fn left(&self) -> Option<(PathBuf, Option<io::Error>)> {
        let InUse {
            folder, refusal, ..
        } = self.in_use.as_ref()?;
        (!folder.is_removed()).then(|| (folder.path(), refusal.map(io::Error::from_raw_os_error)))
    }

    /// Returns the reasons why latencies of this workload may not be those of the storage device.
    pub fn warnings(&self, workload: &Workload) -> Vec<&'static str> {
        if StorageInfo::of(&self.root.path()).is_memory {
            return vec![
                "this directory is in memory: the latencies are those of this computer, not of a card or disk",
            ];
        }
        let on_writes = match self.io {
            Io::Buffered if workload.times_its_syncs() => None,
            Io::Buffered => Some(
                "writes return from the page cache before the card or disk has the data; use --io dsync or \
                 --io direct to measure the device",
            ),
            Io::FsyncFile => Some(
                "writes go to the page cache until a file is closed; use --io dsync or --io direct to \
                 measure the device with every write",
            ),
            Io::Dsync | Io::FsyncWrite if workload.times_its_syncs() => Some(
                "every write already waits for the device, so the workload's own syncs have no effect; \
                 use --io buffered to measure them",
            ),
            Io::Direct | Io::Dsync | Io::FsyncWrite => None,
        };
        let on_reads = (workload.reads() && self.io != Io::Direct)
            .then_some("reads may come from the page cache; use --io direct to measure the device");
        on_writes.into_iter().chain(on_reads).collect()
    }

    /// Removes a file or folder that this run has created.
    fn remove_own(&mut self, path: &str) -> Result<(), StoreError> {
        let own = self.in_use.as_ref().filter(|own| own.name == path);
        if let Some(own) = own {
            // Moved away: nobody else's folder is removed in its place, and `left` names it.
            if !self.root.contains(path, &own.folder) {
                return Err(io::Error::from(io::ErrorKind::NotFound).into());
            }
            self.root.remove_folder(path)?;
            self.in_use = None;
            return Ok(());
        }
        let (folder, inner) = self.place(path);
        match self.files.get(path) {
            Some(&own) if !folder.holds(inner, own) => return Err(replaced().into()),
            Some(_) => folder.remove_file(inner)?,
            None => folder.remove_folder(inner)?,
        }
        self.files.remove(path);
        Ok(())
    }

    /// Returns the folder in which a path is looked up, and the path in it.
    fn place<'a>(&self, path: &'a str) -> (&Folder, &'a str) {
        let inner = self.in_use.as_ref().and_then(|own| {
            let rest = path.strip_prefix(own.name.as_str())?;
            Some((&own.folder, rest.strip_prefix('/')?))
        });
        inner.unwrap_or((&self.root, path))
    }

    fn file(&self, path: &str, access: Access) -> io::Result<DirectoryFile> {
        let flags: &[Flag] = match self.io {
            Io::Direct => &[Flag::BypassCache],
            Io::Dsync => &[Flag::WriteThrough],
            Io::Buffered | Io::FsyncWrite | Io::FsyncFile => &[],
        };
        let (folder, inner) = self.place(path);
        let file = folder.file(inner, access, flags)?;
        if let Some(&own) = self.files.get(path)
            && identity(&file.metadata()?) != own
        {
            return Err(replaced());
        }
        Ok(DirectoryFile {
            file,
            writable: access != Access::Read,
        })
    }
}

/// Returns the error of a file that is no longer the one that the run created.
fn replaced() -> io::Error {
    io::Error::other(
        "another program has removed or replaced this file; leave the folder alone, and run the command again",
    )
}

impl Store for Directory {
    type File = DirectoryFile;
    type Error = StoreError;

    fn has_long_names(&self) -> bool {
        true
    }

    fn mkdir(&mut self, path: &str) -> Result<bool, StoreError> {
        let (folder, inner) = self.place(path);
        match folder.create_folder(inner) {
            Ok(()) => {
                if !path.contains('/') {
                    let folder = self.root.folder(path).inspect_err(|_| {
                        // Too many open files, for example: nothing is left behind.
                        let _ = self.root.remove_folder(path);
                    })?;
                    let name = path.to_string();
                    self.in_use = Some(InUse {
                        name,
                        folder,
                        refusal: None,
                    });
                }
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn create(&mut self, path: &str) -> Result<DirectoryFile, StoreError> {
        let created = self.file(path, Access::Create);
        if let Err(error) = &created
            && self.io == Io::Direct
            && error.kind() == io::ErrorKind::InvalidInput
        {
            // On a file system without O_DIRECT, a failing open has already created the file.
            let (folder, path) = self.place(path);
            let _ = folder.remove_file(path);
        }
        let created = created?;
        let own = identity(&created.file.metadata()?);
        self.files.insert(path.to_string(), own);
        Ok(created)
    }

    fn append(&mut self, path: &str) -> Result<DirectoryFile, StoreError> {
        match self.file(path, Access::ReadWrite) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.create(path),
            opened => Ok(opened?),
        }
    }

    fn open(&mut self, path: &str, writable: bool) -> Result<DirectoryFile, StoreError> {
        let access = match writable {
            true => Access::ReadWrite,
            false => Access::Read,
        };
        let opened = self.file(path, access)?;
        if !writable && self.io != Io::Buffered {
            // Drop cached pages, which would not be read from the device.
            let _ = drop_from_cache(&opened.file);
        }
        Ok(opened)
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

    fn bulk_bytes(&self) -> usize {
        1 << 20
    }

    fn flush(&mut self, file: &mut DirectoryFile, how: Flush) -> Result<(), StoreError> {
        match how {
            // Asking the kernel to drop the file's pages makes it start writing the dirty ones.
            Flush::Start => Ok(drop_from_cache(&file.file)?),
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
        let removed = self.remove_own(path);
        if let (Err(StoreError::Io(error)), Some(own)) = (&removed, &mut self.in_use) {
            own.refusal = own.refusal.or(error.raw_os_error());
        }
        removed
    }
}
