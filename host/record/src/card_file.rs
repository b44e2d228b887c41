//! A card or a card image, opened as a file of this computer.

#[cfg(unix)]
mod mounts;

#[cfg(unix)]
use self::mounts::mounts_of;
use cardiograph_card::{BLOCK_BYTES, Block};
use cardiograph_recorder::Blocks;
use cardiograph_system::{Flag, Positioned, is_block_device};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Reason why a card or an image cannot be used.
#[derive(Debug)]
pub enum CardFileError {
    /// The operating system reported an error.
    Io {
        /// Path of the card or image.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The card or image is mounted, or another program uses it.
    InUse {
        /// Path of the card or image.
        path: PathBuf,
        /// Mount points, if the card or image is mounted.
        mounts: Vec<PathBuf>,
    },
    /// The path is neither a file nor a block device, or holds less than one block.
    NotACard(PathBuf),
}

impl CardFileError {
    fn at(path: &Path) -> impl Fn(io::Error) -> CardFileError {
        move |source| CardFileError::Io {
            path: path.to_path_buf(),
            source,
        }
    }
}

impl fmt::Display for CardFileError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            CardFileError::Io { path, source } => {
                let remedy = match source.kind() {
                    ErrorKind::NotFound => "check the name",
                    ErrorKind::PermissionDenied => "run as a user with permission, or use a copy",
                    ErrorKind::ReadOnlyFilesystem => "remove the write protection",
                    _ => "check the card and the reader",
                };
                write!(f, "{}: {source}; {remedy}", path.display())
            }
            CardFileError::InUse { path, mounts } => {
                write!(f, "{}: in use; ", path.display())?;
                match mounts.as_slice() {
                    mounts if mounts.iter().any(|at| is_of_system(at)) => f.write_str(
                        "it is the disk of the running system, not a card; pass the card's device (lsblk lists \
                         devices)",
                    ),
                    [] => f.write_str("close the program that uses it"),
                    mounts => {
                        f.write_str("unmount it first: umount")?;
                        mounts
                            .iter()
                            .try_for_each(|at| write!(f, " {}", at.display()))
                    }
                }
            }
            CardFileError::NotACard(path) => write!(
                f,
                "{}: not a card; use a block device, a card image or a directory",
                path.display()
            ),
        }
    }
}

impl std::error::Error for CardFileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CardFileError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Block access to a card or image.
#[derive(Debug)]
pub struct CardFile {
    path: PathBuf,
    file: File,
    blocks: u32,
    /// Blocks that a dry run would have written, by block number; `None` outside a dry run.
    dry_writes: Option<BTreeMap<u32, Block>>,
    written_blocks: u64,
}

impl CardFile {
    /// Opens a card or image that no other program uses. With `is_dry`, writes go to memory instead of the card, and
    /// other programs may read an image at the same time.
    ///
    /// # Errors
    /// [`CardFileError`], which displays as a sentence with path and remedy.
    pub fn open(path: &Path, is_dry: bool) -> Result<CardFile, CardFileError> {
        let metadata = path.metadata().map_err(CardFileError::at(path))?;
        let is_device = is_block_device(&metadata);
        if !is_device && !metadata.is_file() {
            return Err(CardFileError::NotACard(path.to_path_buf()));
        }
        let in_use = |mounts| CardFileError::InUse {
            path: path.to_path_buf(),
            mounts,
        };
        let mounts = mounts_of(path);
        if !mounts.is_empty() {
            return Err(in_use(mounts));
        }
        let mut options = OpenOptions::new();
        options.read(true).write(!is_dry);
        if is_device {
            // With O_EXCL, the kernel refuses to open a device that is in use, or that has a partition in
            // use.
            cardiograph_system::set(&mut options, &[Flag::Exclusively]);
        }
        let mut file = options.open(path).map_err(|error| match error.kind() {
            ErrorKind::ResourceBusy => in_use(Vec::new()),
            _ => CardFileError::at(path)(error),
        })?;
        // Several programs may read at the same time.
        let locked = match is_dry {
            true => file.try_lock_shared(),
            false => file.try_lock(),
        };
        if locked.is_err() {
            return Err(in_use(Vec::new()));
        }
        let bytes = file
            .seek(SeekFrom::End(0))
            .map_err(CardFileError::at(path))?;
        let blocks = u32::try_from(bytes / BLOCK_BYTES as u64).unwrap_or(u32::MAX);
        if blocks == 0 {
            return Err(CardFileError::NotACard(path.to_path_buf()));
        }
        Ok(CardFile {
            path: path.to_path_buf(),
            file,
            blocks,
            dry_writes: is_dry.then(BTreeMap::new),
            written_blocks: 0,
        })
    }

    /// Returns the number of blocks written, or, in a dry run, of blocks that would have been written.
    pub fn written_blocks(&self) -> u64 {
        self.written_blocks
    }

    fn check(&self, start: u32, count: usize) -> Result<(), CardFileError> {
        let is_there = u64::from(start) + count as u64 <= u64::from(self.blocks);
        match is_there {
            true => Ok(()),
            false => Err(CardFileError::at(&self.path)(
                ErrorKind::UnexpectedEof.into(),
            )),
        }
    }

    /// Makes durable what was written. In a dry run, there is nothing to do.
    ///
    /// # Errors
    /// [`CardFileError::Io`].
    pub fn sync(&self) -> Result<(), CardFileError> {
        let synced = match self.dry_writes {
            None => self.file.sync_data(),
            Some(_) => Ok(()),
        };
        synced.map_err(CardFileError::at(&self.path))
    }
}

fn offset(block: u32) -> u64 {
    u64::from(block) * BLOCK_BYTES as u64
}

impl Blocks for CardFile {
    type Error = CardFileError;

    fn blocks(&self) -> u32 {
        self.blocks
    }

    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> Result<(), CardFileError> {
        self.check(start, blocks.len())?;
        let read = self
            .file
            .read_exact_at(blocks.as_flattened_mut(), offset(start));
        read.map_err(CardFileError::at(&self.path))?;
        if let Some(dry_writes) = &self.dry_writes {
            for (number, block) in (start..).zip(blocks) {
                if let Some(newer) = dry_writes.get(&number) {
                    *block = *newer;
                }
            }
        }
        Ok(())
    }

    async fn write(
        &mut self,
        start: u32,
        count: u32,
        make: &mut dyn FnMut(u32, &mut Block),
    ) -> Result<(), CardFileError> {
        self.write_later(start, count, make)?;
        self.sync()
    }
}

impl CardFile {
    /// Writes blocks as [`write`](Blocks::write) does, but they are durable only after [`sync`](CardFile::sync).
    ///
    /// # Errors
    /// [`CardFileError::Io`].
    pub fn write_later(
        &mut self,
        start: u32,
        count: u32,
        make: &mut dyn FnMut(u32, &mut Block),
    ) -> Result<(), CardFileError> {
        self.check(start, count as usize)?;
        let mut block = [0; BLOCK_BYTES];
        for index in 0..count {
            make(index, &mut block);
            match &mut self.dry_writes {
                Some(dry_writes) => {
                    dry_writes.insert(start + index, block);
                }
                None => {
                    let written = self.file.write_all_at(&block, offset(start + index));
                    written.map_err(CardFileError::at(&self.path))?;
                }
            }
            self.written_blocks += 1;
        }
        Ok(())
    }
}

/// Returns true if the running system needs the file system that is mounted there.
fn is_of_system(mount: &Path) -> bool {
    [
        "/",
        "/boot",
        "/boot/efi",
        "/boot/firmware",
        "/home",
        "/usr",
        "/var",
    ]
    .iter()
    .any(|at| mount == Path::new(at))
}

#[cfg(not(unix))]
fn mounts_of(_: &Path) -> Vec<PathBuf> {
    Vec::new()
}
