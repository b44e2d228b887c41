//! What is done to the files of a directory, each step durable when it returns.

use super::journal::{Block, Entry};
use super::{Access, DirectoryError, Folder, Place, Unfinished};
use cardiograph_card::BLOCK_BYTES;
use cardiograph_recorder::Name;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

impl Folder {
    /// An unfinished file, if it is as it was left. One that was only being made is removed.
    pub(super) fn open_unfinished(
        &self,
        entry: &Entry,
    ) -> Result<Option<Unfinished>, DirectoryError> {
        let path = self.path_of(&entry.name);
        let is_file = path
            .symlink_metadata()
            .is_ok_and(|metadata| metadata.is_file());
        if !is_file {
            return Ok(None);
        }
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(self.access != Access::Look)
            .open(&path);
        let file = file.map_err(DirectoryError::at(&path))?;
        let bytes = file.metadata().map_err(DirectoryError::at(&path))?.len();
        if entry.is_made {
            return Ok((bytes == bytes_of(entry)).then_some(Unfinished { file, path }));
        }
        // Somebody else's would have something in it.
        if begins_with_zeros(&file, bytes).map_err(DirectoryError::at(&path))? {
            self.remove(&path)?;
        }
        Ok(None)
    }

    /// Makes a file in its full length, durable. Nothing is left of it if that fails.
    pub(super) fn make(&self, entry: &Entry) -> Result<Unfinished, DirectoryError> {
        let path = self.path_of(&entry.name);
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).open(&path);
        let file = file.map_err(DirectoryError::at(&path))?;
        let made = preallocate(&file, bytes_of(entry)).and_then(|()| file.sync_all());
        if let Err(error) = made {
            drop(file);
            self.remove(&path)?;
            return Err(DirectoryError::at(&path)(error));
        }
        self.sync()?;
        Ok(Unfinished { file, path })
    }

    /// Gives a file its length, durable.
    pub(super) fn finish(
        &mut self,
        slot: usize,
        entry: &Entry,
        bytes: u64,
    ) -> Result<(), DirectoryError> {
        if self.access == Access::Look {
            return Ok(());
        }
        let path = self.path_of(&entry.name);
        let unfinished = self.unfinished(slot);
        let unfinished =
            unfinished.ok_or_else(|| DirectoryError::NotUnfinished(self.path.clone()))?;
        let file = &unfinished.file;
        let finished = file.set_len(bytes).and_then(|()| file.sync_all());
        finished.map_err(DirectoryError::at(&path))?;
        unfinished.check_is_there()?;
        self.forget(slot);
        Ok(())
    }

    /// Removes an unfinished file.
    pub(super) fn discard(&mut self, slot: usize, entry: &Entry) -> Result<(), DirectoryError> {
        self.forget(slot);
        self.remove(&self.path_of(&entry.name))
    }

    /// Closes a file; a write to it that was still open has nothing left to make durable.
    fn forget(&mut self, slot: usize) {
        self.files[slot] = None;
        let place = Place::File(slot);
        self.stream.take_if(|(open, _)| *open == place);
    }

    /// Removes a file, for good.
    pub(super) fn remove(&self, path: &Path) -> Result<(), DirectoryError> {
        if self.access == Access::Look {
            return Ok(());
        }
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(DirectoryError::at(path)(error))
            }
            _ => self.sync(),
        }
    }

    /// The highest number in a name here, or 0.
    pub(super) fn number_last(&self) -> Result<u32, DirectoryError> {
        let recordings = self.recordings()?;
        Ok(recordings
            .into_iter()
            .map(|(number, _)| number)
            .max()
            .unwrap_or(0))
    }

    /// Files here with names of the pattern LLLddddd.LLL, and their numbers.
    pub(super) fn recordings(&self) -> Result<Vec<(u32, Name)>, DirectoryError> {
        let entries = std::fs::read_dir(&self.path).map_err(DirectoryError::at(&self.path))?;
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(DirectoryError::at(&self.path))?;
            let text = entry.file_name();
            let Some((number, name)) = text.to_str().and_then(numbered) else {
                continue;
            };
            if entry.file_type().is_ok_and(|kind| kind.is_file()) {
                found.push((number, name));
            }
        }
        Ok(found)
    }
}

fn bytes_of(entry: &Entry) -> u64 {
    u64::from(entry.blocks) * BLOCK_BYTES as u64
}

/// Gives a file its length, and room for it if the file system can.
fn preallocate(file: &File, bytes: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => file.set_len(bytes),
        done => done.map_err(io::Error::from),
    }
}

fn begins_with_zeros(file: &File, bytes: u64) -> io::Result<bool> {
    let mut block: Block = [0; BLOCK_BYTES];
    let begin = &mut block[..bytes.min(BLOCK_BYTES as u64) as usize];
    file.read_exact_at(begin, 0)?;
    Ok(begin.iter().all(|byte| *byte == 0))
}

/// The number of a name of the pattern LLLddddd.LLL, and the name in eleven bytes.
fn numbered(text: &str) -> Option<(u32, Name)> {
    let (stem, extension) = text.split_once('.')?;
    let name: Name = [stem, extension].concat().into_bytes().try_into().ok()?;
    let is_pattern = stem.len() == 8
        && name[..3].iter().all(u8::is_ascii_uppercase)
        && name[8..].iter().all(u8::is_ascii_alphanumeric);
    let number = is_pattern
        .then(|| &name[3..8])
        .filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    let number = number
        .iter()
        .fold(0, |number, digit| 10 * number + u32::from(digit - b'0'));
    Some((number, name))
}
