//! A file in a directory, on the card that holds it.

use crate::{BLOCK_BYTES, Target, TargetError};
use cardiograph_system::{Flag, Positioned};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Name of the file.
const NAME: &str = "cardiograph-probe.tmp";
/// Smallest file that the experiments can use.
pub const FILE_BYTES_MIN: u64 = 32 << 20;
/// Largest length of a write or read.
const LENGTH_BYTES_MAX: usize = 1 << 20;
/// Alignment of the buffer in memory, for `O_DIRECT`.
const ALIGNMENT: usize = 4096;

/// A file that bypasses the page cache. It is removed when the target is dropped.
pub struct DirectoryTarget {
    file: File,
    path: PathBuf,
    bytes: u64,
    buffer: Vec<u8>,
    /// Offset of the aligned part of the buffer.
    aligned: usize,
    began: Instant,
}

impl DirectoryTarget {
    /// Creates the file and fills it with `bytes` bytes; calls `progress` with the number of bytes written so far, and
    /// gives up if it returns false.
    ///
    /// # Errors
    /// If the directory does not exist, cannot be written, has too little room, or does not support `O_DIRECT`, and if
    /// `progress` returned false.
    pub fn create(
        directory: &Path,
        bytes: u64,
        mut progress: impl FnMut(u64) -> bool,
    ) -> Result<DirectoryTarget, TargetError> {
        let path = directory.join(NAME);
        let fail = |error: std::io::Error| TargetError(sentence(&path, &error));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        // O_DSYNC: a card may not keep data in the RAM of the reader.
        cardiograph_system::set(&mut options, &[Flag::BypassCache, Flag::WriteThrough]);
        let file = match options.open(&path) {
            Ok(file) => file,
            Err(error) => {
                // Without O_DIRECT, a failing open has already created the file.
                if error.kind() == ErrorKind::InvalidInput {
                    let _ = std::fs::remove_file(&path);
                }
                return Err(fail(error));
            }
        };
        let mut target = DirectoryTarget {
            file,
            bytes,
            buffer: vec![0; LENGTH_BYTES_MAX + ALIGNMENT],
            aligned: 0,
            began: Instant::now(),
            path: path.clone(),
        };
        target.aligned = target.buffer.as_ptr().align_offset(ALIGNMENT);
        target.fill_buffer();
        for offset in (0..bytes).step_by(LENGTH_BYTES_MAX) {
            let length = LENGTH_BYTES_MAX.min((bytes - offset) as usize);
            let data = &target.buffer[target.aligned..target.aligned + length];
            target.file.write_all_at(data, offset).map_err(fail)?;
            if !progress(offset + length as u64) {
                return Err(TargetError("stopped".to_string()));
            }
        }
        target.file.flush().map_err(fail)?;
        target.began = Instant::now();
        Ok(target)
    }

    /// Fills the buffer with bytes that no controller can compress.
    fn fill_buffer(&mut self) {
        let mut state = 0x2545_F491_4F6C_DD1D_u64;
        for byte in &mut self.buffer {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = state as u8;
        }
    }

    fn fail(&self, error: &std::io::Error) -> TargetError {
        TargetError(sentence(&self.path, error))
    }
}

impl Drop for DirectoryTarget {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Target for DirectoryTarget {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn begins_at_the_card(&self) -> bool {
        false
    }

    fn is_filled(&self) -> bool {
        true
    }

    fn write(&mut self, offset_bytes: u64, length_bytes: u64) -> Result<u64, TargetError> {
        let data = &self.buffer[self.aligned..self.aligned + length_bytes as usize];
        let began = Instant::now();
        let done = self.file.write_all_at(data, offset_bytes);
        let ns = began.elapsed().as_nanos() as u64;
        done.map_err(|error| self.fail(&error))?;
        Ok(ns)
    }

    fn read(&mut self, offset_bytes: u64, length_bytes: u64) -> Result<u64, TargetError> {
        let end = self.aligned + length_bytes as usize;
        let began = Instant::now();
        let done = self
            .file
            .read_exact_at(&mut self.buffer[self.aligned..end], offset_bytes);
        let ns = began.elapsed().as_nanos() as u64;
        done.map_err(|error| self.fail(&error))?;
        Ok(ns)
    }

    fn pause(&mut self, ns: u64) {
        std::thread::sleep(Duration::from_nanos(ns));
    }

    fn elapsed_ns(&mut self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }
}

fn sentence(path: &Path, error: &std::io::Error) -> String {
    let name = path.display();
    match error.kind() {
        ErrorKind::AlreadyExists => {
            format!("{name}: exists already, from an interrupted or a running probe; remove it")
        }
        ErrorKind::InvalidInput => format!(
            "{name}: the file system does not support direct access in blocks of {BLOCK_BYTES} B; use a directory on \
             a card with a FAT file system"
        ),
        ErrorKind::StorageFull => format!("{name}: the card is full; free some space"),
        ErrorKind::NotFound => format!(
            "{name}: no such directory; create it, or name a simulated card as sim:CARD@BOARD"
        ),
        ErrorKind::NotADirectory => {
            format!("{name}: not a directory; name a directory on the card")
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            format!("{name}: {error}; use a directory with write permission")
        }
        _ => format!("{name}: {error}; check the card"),
    }
}
