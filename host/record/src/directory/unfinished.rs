//! Unfinished files.

use super::first_block::{FirstBlock, ends_with_mark};
use super::{Access, DirectoryError};
use cardiograph_card::{BLOCK_BYTES, Block};
use cardiograph_recorder::FileId;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
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
}

/// State of a file that has the name of an unfinished one.
pub(super) enum PartFile {
    /// Unfinished: to be written, or recovered.
    Unfinished(Unfinished),
    /// Already trimmed to its actual length; only its name still says that it is unfinished.
    Trimmed,
    /// Not a file of the recorder.
    Foreign,
}

impl Unfinished {
    /// Checks that the name still refers to this file: another program may have removed or moved it.
    pub(super) fn check_is_there(&self) -> Result<(), DirectoryError> {
        let own = self
            .file
            .metadata()
            .map_err(DirectoryError::at(&self.path))?;
        let named = self.path.symlink_metadata();
        let is_there =
            named.is_ok_and(|named| (named.dev(), named.ino()) == (own.dev(), own.ino()));
        match is_there {
            true => Ok(()),
            false => Err(DirectoryError::Gone(self.path.clone())),
        }
    }

    /// Opens a file that has the name of an unfinished one.
    pub(super) fn open(
        path: PathBuf,
        (prefix, extension): ([u8; 3], [u8; 3]),
        id: Option<FileId>,
        access: Access,
    ) -> Result<PartFile, DirectoryError> {
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(access != Access::DryRun)
            .open(&path);
        let file = file.map_err(DirectoryError::at(&path))?;
        let (first, is_trimmed, bytes) = look(&file).map_err(DirectoryError::at(&path))?;
        let (epoch, is_binary) = match first {
            // Trimming a file of a single block removes its mark.
            FirstBlock::Foreign if is_trimmed && id.is_some() => return Ok(PartFile::Trimmed),
            FirstBlock::Foreign => return Ok(PartFile::Foreign),
            FirstBlock::Unused => (0, false),
            FirstBlock::Recording { .. } if is_trimmed && id.is_some() => {
                return Ok(PartFile::Trimmed);
            }
            FirstBlock::Recording { epoch, is_binary } => (epoch, is_binary),
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
        }))
    }
}

/// Returns the state of the first block, true if the file is already trimmed, and its length in bytes.
///
/// A file that still has its full length ends with zeros or with a mark.
fn look(file: &File) -> io::Result<(FirstBlock, bool, u64)> {
    let bytes = file.metadata()?.len();
    let mut block: Block = [0; BLOCK_BYTES];
    let first_bytes = bytes.min(BLOCK_BYTES as u64);
    file.read_exact_at(&mut block[..first_bytes as usize], 0)?;
    let first = FirstBlock::of(&block);
    let is_whole = bytes.is_multiple_of(BLOCK_BYTES as u64);
    let is_trimmed = match first {
        FirstBlock::Recording {
            is_binary: false, ..
        } if is_whole => {
            file.read_exact_at(&mut block, bytes - BLOCK_BYTES as u64)?;
            block[BLOCK_BYTES - 1] != 0 && !ends_with_mark(&block)
        }
        FirstBlock::Recording { .. } => !is_whole,
        FirstBlock::Foreign => {
            let last = first_bytes.saturating_sub(1) as usize;
            bytes < BLOCK_BYTES as u64 && block[last] == b'\n'
        }
        FirstBlock::Unused => false,
    };
    Ok((first, is_trimmed, bytes))
}
