//! Unfinished files.

use super::first_block::{FirstBlock, ends_with_mark, is_text_of_recorder};
use super::live_files::{DataLength, LiveFile, LiveFiles, Published};
use super::{Access, DirectoryError};
use cardiograph_card::{BLOCK_BYTES, Block};
use cardiograph_recorder::FileId;
use cardiograph_system::{Flag, Positioned, identity, next_data};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;

/// An open, unfinished file.
pub(super) struct Unfinished {
    pub(super) file: File,
    pub(super) path: PathBuf,
    pub(super) prefix: [u8; 3],
    pub(super) extension: [u8; 3],
    pub(super) blocks: u32,
    pub(super) epoch: u32,
    pub(super) note: u32,
    pub(super) id: Option<FileId>,
    pub(super) session: String,
    pub(super) data: DataLength,
    /// Entry of the file in the list for readers, once the file has a name.
    pub(super) published: Option<Published>,
}

/// State of a file whose name is that of an unfinished file.
pub(super) enum PartFile {
    /// The file is unfinished, and will be written or recovered.
    Unfinished(Unfinished),
    /// The file is already trimmed to this length in bytes; only its name still marks it as unfinished.
    Trimmed(u64),
    /// The file is not provably a recording.
    Foreign,
}

impl Unfinished {
    /// Adds the file to the list for readers, under `path`, which it gets when it is finished.
    pub(super) fn publish(&mut self, files: &LiveFiles, id: FileId, path: String) {
        let Ok(metadata) = self.file.metadata() else {
            return;
        };
        let inode = identity(&metadata);
        let name = (id, self.session.as_str());
        let file = LiveFile::new(name, path, (inode, self.epoch), &self.data);
        self.published = Some(files.publish(file));
    }

    /// Marks all data written so far as durable.
    pub(super) fn commit(&mut self) {
        self.data.commit();
        if let Some(published) = &self.published {
            published.update(&self.data);
        }
    }

    /// Checks that the path still refers to the open file: another program may have removed or moved it.
    pub(super) fn check_is_there(&self) -> Result<(), DirectoryError> {
        let own = self
            .file
            .metadata()
            .map_err(DirectoryError::at(&self.path))?;
        let named = self.path.symlink_metadata();
        let is_there = named.is_ok_and(|named| identity(&named) == identity(&own));
        match is_there {
            true => Ok(()),
            false => Err(DirectoryError::Gone(self.path.clone())),
        }
    }

    /// Opens a file whose name is that of an unfinished file.
    pub(super) fn open(
        path: PathBuf,
        (prefix, extension): ([u8; 3], [u8; 3]),
        id: Option<FileId>,
        access: Access,
    ) -> Result<PartFile, DirectoryError> {
        // A name can refer to anything: opening a pipe would block, and a link leads elsewhere.
        let metadata = path.symlink_metadata().map_err(DirectoryError::at(&path))?;
        if !metadata.is_file() {
            return Ok(PartFile::Foreign);
        }
        let mut options = OpenOptions::new();
        options.read(true).write(access != Access::DryRun);
        cardiograph_system::set(&mut options, &[Flag::NotThroughLinks]);
        let file = options.open(&path);
        let file = file.map_err(DirectoryError::at(&path))?;
        let (state, bytes) = look(&file).map_err(DirectoryError::at(&path))?;
        let (epoch, is_binary) = match state {
            // Only a file with a recording number can have been trimmed.
            Look::Trimmed if id.is_some() => return Ok(PartFile::Trimmed(bytes)),
            Look::Trimmed | Look::Foreign => return Ok(PartFile::Foreign),
            Look::Unused => (0, false),
            Look::Recording { epoch, is_binary } => (epoch, is_binary),
        };
        let blocks = bytes / BLOCK_BYTES as u64;
        if blocks == 0 || blocks > super::BLOCKS_MAX.into() {
            return Ok(PartFile::Foreign);
        }
        Ok(PartFile::Unfinished(Unfinished {
            file,
            path,
            prefix,
            extension,
            blocks: blocks as u32,
            epoch,
            note: u32::from(is_binary),
            id,
            session: String::new(),
            data: DataLength::default(),
            published: None,
        }))
    }
}

/// State of a file, according to its contents.
enum Look {
    /// The file is preallocated and has never been written.
    Unused,
    /// A recording that still has its preallocated length.
    Recording { epoch: u32, is_binary: bool },
    /// A recording that has been trimmed to its actual length.
    Trimmed,
    /// The file is not provably a recording.
    Foreign,
}

/// Returns the state of a file, and its length in bytes.
///
/// A recording that still has its preallocated length ends with zeros or with a checkpoint mark.
fn look(file: &File) -> io::Result<(Look, u64)> {
    let bytes = file.metadata()?.len();
    let mut block: Block = [0; BLOCK_BYTES];
    let first_bytes = bytes.min(BLOCK_BYTES as u64) as usize;
    file.read_exact_at(&mut block[..first_bytes], 0)?;
    let is_whole = bytes.is_multiple_of(BLOCK_BYTES as u64);
    let first = FirstBlock::of(&block);
    // If a recording fits in a single block, trimming removes the checkpoint mark at the end of this block.
    let is_short = bytes < BLOCK_BYTES as u64 && is_text_of_recorder(&block[..first_bytes]);
    let state = match first {
        _ if is_short => Look::Trimmed,
        FirstBlock::Unused if is_whole && is_zero(file, bytes)? => Look::Unused,
        FirstBlock::Unused | FirstBlock::Foreign => Look::Foreign,
        FirstBlock::Recording { .. } if !is_whole => Look::Trimmed,
        FirstBlock::Recording { epoch, is_binary } => {
            file.read_exact_at(&mut block, bytes - BLOCK_BYTES as u64)?;
            match is_binary || block[BLOCK_BYTES - 1] == 0 || ends_with_mark(&block) {
                true => Look::Recording { epoch, is_binary },
                false => Look::Trimmed,
            }
        }
    };
    Ok((state, bytes))
}

/// Returns true if a file contains only zeros. Skips holes of the file, if the file system reports them.
fn is_zero(file: &File, bytes: u64) -> io::Result<bool> {
    let mut buffer = vec![0; 1 << 16];
    let mut at = 0;
    while at < bytes {
        match next_data(file, at)? {
            Some(data) => at = data,
            None => return Ok(true),
        }
        let read = match file.read_at(&mut buffer, at)? {
            0 => return Ok(true),
            read => read,
        };
        if buffer[..read].iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        at += read as u64;
    }
    Ok(true)
}
