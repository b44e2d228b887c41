//! Operations on the files of a directory, each a few system calls.

use super::live_files::DataLength;
use super::names::{
    PART, final_name, folder_of, parse_folder, parse_prepared, parse_recording, prepared_name,
};
use super::unfinished::{PartFile, Unfinished};
use super::{Access, DirectoryError, FirstBlock, Folder, Repair, sync};
use cardiograph_card::BLOCK_BYTES;
use cardiograph_recorder::{FOLDER_RECORDINGS_MAX, FileId, NUMBER_LAST, Request};
use cardiograph_system::{preallocate, rename_without_replacing, space};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Number of newest folders per prefix that are searched for unfinished files. Unfinished files have
/// consecutive numbers, and a folder holds many more files than can be unfinished.
const FOLDERS_SEARCHED: usize = 2;
/// Number of the last folder that can be named.
const FOLDER_LAST: u32 = NUMBER_LAST / FOLDER_RECORDINGS_MAX;
/// Extensions of recordings that may be removed to make room.
const RECORDINGS: [[u8; 3]; 2] = [*b"CSV", *b"BIN"];

impl Folder {
    /// Creates a file at full length and makes it durable. If that fails, removes the file.
    pub(super) fn make(
        &self,
        request: &Request,
        blocks: u32,
    ) -> Result<Unfinished, DirectoryError> {
        let (file, path) = self.create(request)?;
        let bytes = u64::from(blocks) * BLOCK_BYTES as u64;
        if let Err(error) = preallocate(&file, bytes).and_then(|()| file.sync_all()) {
            drop(file);
            remove(&path)?;
            return Err(DirectoryError::at(&path)(error));
        }
        sync(&self.path)?;
        Ok(Unfinished {
            file,
            path,
            prefix: request.prefix,
            extension: request.extension,
            blocks,
            epoch: random(),
            note: request.note,
            id: None,
            session: String::new(),
            data: DataLength::default(),
            published: None,
        })
    }

    /// Returns the free blocks including those of unfinished files; `None` if the file system does not report
    /// them.
    pub(super) fn free_blocks(&self) -> Option<u64> {
        let space = space(&self.path).ok()?;
        let free = space.free_bytes / BLOCK_BYTES as u64;
        let unfinished = self.files.iter().flatten();
        let unfinished = unfinished.map(|file| u64::from(file.blocks)).sum::<u64>();
        (space.total_bytes > 0).then(|| free.saturating_add(unfinished))
    }

    /// Creates an empty file under a free name; existing files are not touched.
    fn create(&self, request: &Request) -> Result<(File, PathBuf), DirectoryError> {
        for index in 0..=u8::MAX {
            let name = prepared_name(index, request.prefix, request.extension);
            let path = self.path.join(name);
            let mut options = OpenOptions::new();
            match options.read(true).write(true).create_new(true).open(&path) {
                Ok(file) => return Ok((file, path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => (),
                Err(error) => return Err(DirectoryError::at(&path)(error)),
            }
        }
        Err(DirectoryError::NotUnfinished(self.path.clone()))
    }

    /// Creates the folder of a recording and makes it durable.
    pub(super) fn make_folder(&self, id: &FileId) -> Result<(), DirectoryError> {
        let folder = self.path.join(folder_of(id));
        match std::fs::create_dir(&folder) {
            Ok(()) => sync(&self.path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => match folder.is_dir() {
                true => Ok(()),
                false => Err(DirectoryError::NameTaken(folder)),
            },
            Err(error) => Err(DirectoryError::at(&folder)(error)),
        }
    }

    /// Checks that no other file has the final name of a recording, and that its folder can be created.
    pub(super) fn check_is_free(&self, id: &FileId, session: &str) -> Result<(), DirectoryError> {
        let folder = self.path.join(folder_of(id));
        if is_there(&folder) && !folder.is_dir() {
            return Err(DirectoryError::NameTaken(folder));
        }
        let path = folder.join(final_name(id, session));
        match is_there(&path) {
            true => Err(DirectoryError::NameTaken(path)),
            false => Ok(()),
        }
    }

    /// Returns the first number that no file uses and whose folder can be used. The search starts at the number
    /// of `id` and wraps around after the last possible number.
    pub(super) fn free_number(&self, mut id: FileId) -> u32 {
        let mut has_wrapped = false;
        loop {
            if id.number > NUMBER_LAST {
                if std::mem::replace(&mut has_wrapped, true) {
                    return id.number;
                }
                id.number = 1;
            }
            let folder = self.path.join(folder_of(&id));
            let name = final_name(&id, "");
            if is_there(&folder) && !folder.is_dir() {
                id.number = (id.number / FOLDER_RECORDINGS_MAX + 1) * FOLDER_RECORDINGS_MAX;
            } else if is_there(&folder.join(&name)) || is_there(&folder.join(name + PART)) {
                id.number += 1;
            } else {
                return id.number;
            }
        }
    }

    /// Moves a prepared file into the folder of its recording, under its final number.
    pub(super) fn give_name(
        &mut self,
        slot: usize,
        id: FileId,
        session: &str,
    ) -> Result<(), DirectoryError> {
        let name = final_name(&id, session) + PART;
        let to = self.path.join(folder_of(&id)).join(name);
        let from = self.unfinished(slot)?.path.clone();
        rename(&from, &to)?;
        let path = self.name_in(&final_path(&to));
        if let Some(unfinished) = &mut self.files[slot] {
            unfinished.path = to;
            unfinished.id = Some(id);
            unfinished.session = session.to_string();
            unfinished.publish(&self.live, id, path);
        }
        Ok(())
    }

    /// Truncates a file to its actual length and makes it durable.
    pub(super) fn trim(&mut self, slot: usize, bytes: u64) -> Result<(), DirectoryError> {
        self.stream.take_if(|(open, _)| *open == slot);
        let unfinished = self.unfinished(slot)?;
        let file = &unfinished.file;
        // Make the data durable first, because recovery accepts a trimmed file as it is.
        let trimmed = file
            .sync_data()
            .and_then(|()| file.set_len(bytes))
            .and_then(|()| file.sync_all());
        trimmed.map_err(DirectoryError::at(&unfinished.path))?;
        if let Some(published) = &unfinished.published {
            published.set_durable_bytes(bytes);
        }
        unfinished.check_is_there()
    }

    /// Makes the names in the folder of an unfinished file durable.
    pub(super) fn sync_folder_of(&self, slot: usize) -> Result<(), DirectoryError> {
        let path = &self.unfinished(slot)?.path;
        path.parent().map_or(Ok(()), sync)
    }

    /// Gives a trimmed file its final name and makes the name durable.
    pub(super) fn finish(&mut self, slot: usize) -> Result<(), DirectoryError> {
        finish(&self.unfinished(slot)?.path)?;
        self.files[slot] = None;
        Ok(())
    }

    /// Adds an unfinished file that recovery removes to the list of repairs.
    pub(super) fn note_removal(&mut self, slot: usize) -> Result<(), DirectoryError> {
        let name = self.name_in(&self.unfinished(slot)?.path);
        if self.access != Access::Record {
            self.repairs.push(Repair::Removed(name));
        }
        Ok(())
    }

    /// Removes an unfinished file.
    pub(super) fn discard(&mut self, slot: usize) -> Result<(), DirectoryError> {
        self.stream.take_if(|(open, _)| *open == slot);
        let path = self.unfinished(slot)?.path.clone();
        self.files[slot] = None;
        remove(&path)
    }

    /// Returns true if the directory contains files or folders of a recorder.
    pub(super) fn has_recordings(&self) -> Result<bool, DirectoryError> {
        let names = names_in(&self.path)?;
        let is_ours = |name: &String| {
            name == super::names::LOCK
                || parse_prepared(name).is_some()
                || parse_folder(name).is_some()
        };
        Ok(names.iter().any(is_ours))
    }

    /// Opens the unfinished files, renames those that lack only their final names, and returns the next number of
    /// each prefix.
    pub(super) fn scan(&mut self) -> Result<BTreeMap<[u8; 3], u32>, DirectoryError> {
        self.files = Default::default();
        self.repairs.clear();
        let mut next_numbers = BTreeMap::new();
        for name in names_in(&self.path)? {
            if let Some(names) = parse_prepared(&name) {
                self.take(self.path.join(name), names, None)?;
            }
        }
        let mut trimmed = Vec::new();
        for (prefix, folders) in self.folders()? {
            // The last possible folder is searched, but does not determine the next number: hardly any
            // numbers are left after those in that folder.
            let (last, others): (Vec<u32>, Vec<u32>) = folders
                .into_iter()
                .partition(|folder| *folder == FOLDER_LAST);
            for folder in others.into_iter().rev().take(FOLDERS_SEARCHED).chain(last) {
                if folder != FOLDER_LAST {
                    let next = next_numbers.entry(prefix).or_insert(1);
                    *next = self.highest(prefix, folder)?.saturating_add(1).max(*next);
                }
                for (id, path, is_unfinished) in self.recordings(prefix, folder)? {
                    if is_unfinished
                        && let Some(bytes) =
                            self.take(path.clone(), (id.prefix, id.extension), Some(id))?
                    {
                        trimmed.push((id, path, bytes));
                    }
                }
            }
        }
        for (id, path, bytes) in trimmed {
            self.finish_trimmed(id, &path, bytes, &next_numbers)?;
        }
        Ok(next_numbers)
    }

    /// Gives a trimmed file its final name, or one with the next free number if another program uses that name.
    fn finish_trimmed(
        &mut self,
        mut id: FileId,
        path: &Path,
        bytes: u64,
        next_numbers: &BTreeMap<[u8; 3], u32>,
    ) -> Result<(), DirectoryError> {
        let mut to = final_path(path);
        if is_there(&to) {
            id.number = next_numbers.get(&id.prefix).copied().unwrap_or(1);
            id.number = self.free_number(id);
            to = self.path.join(folder_of(&id)).join(final_name(&id, ""));
        }
        if self.access != Access::DryRun {
            self.make_folder(&id)?;
            rename(path, &to)?;
            let folders = [path.parent(), to.parent()];
            folders.into_iter().flatten().try_for_each(sync)?;
        }
        let name = self.name_in(&to);
        self.repairs.push(Repair::Renamed(name, bytes));
        Ok(())
    }

    /// Opens an unfinished file, if its contents confirm that it is one and a slot is free. If the file is
    /// already trimmed, returns its length in bytes. Removes a prepared file of length 0: a recorder was killed before
    /// it could preallocate the file.
    fn take(
        &mut self,
        path: PathBuf,
        names: ([u8; 3], [u8; 3]),
        id: Option<FileId>,
    ) -> Result<Option<u64>, DirectoryError> {
        if id.is_none() && is_empty(&path) {
            if self.access != Access::DryRun {
                remove(&path)?;
            }
            if self.access != Access::Record {
                let name = self.name_in(&path);
                self.repairs.push(Repair::Removed(name));
            }
            return Ok(None);
        }
        let Some(slot) = self.files.iter().position(Option::is_none) else {
            return Ok(None);
        };
        match Unfinished::open(path.clone(), names, id, self.access)? {
            PartFile::Unfinished(unfinished) => self.files[slot] = Some(unfinished),
            PartFile::Trimmed(bytes) => return Ok(Some(bytes)),
            PartFile::Foreign => {
                let name = self.name_in(&path);
                self.repairs.push(Repair::LeftAlone(name));
            }
        }
        Ok(None)
    }

    /// Returns the numbers of the folders of each prefix, in order.
    fn folders(&self) -> Result<BTreeMap<[u8; 3], Vec<u32>>, DirectoryError> {
        let mut folders: BTreeMap<_, Vec<u32>> = BTreeMap::new();
        for name in names_in(&self.path)? {
            if let Some((prefix, number)) = parse_folder(&name)
                && self.path.join(&name).is_dir()
            {
                folders.entry(prefix).or_default().push(number);
            }
        }
        folders.values_mut().for_each(|numbers| numbers.sort());
        Ok(folders)
    }

    /// Returns the highest recording number in a folder; 0 if the folder contains no recording.
    fn highest(&self, prefix: [u8; 3], folder: u32) -> Result<u32, DirectoryError> {
        let path = self
            .path
            .join(format!("{}{folder:05}", prefix.escape_ascii()));
        let names = names_in(&path)?.into_iter();
        let numbers = names.filter_map(|name| parse_recording((prefix, folder), &name));
        Ok(numbers.map(|(id, _)| id.number).max().unwrap_or(0))
    }

    /// Returns the recordings in a folder, finished and unfinished.
    fn recordings(
        &self,
        prefix: [u8; 3],
        folder: u32,
    ) -> Result<Vec<(FileId, PathBuf, bool)>, DirectoryError> {
        let path = self
            .path
            .join(format!("{}{folder:05}", prefix.escape_ascii()));
        let mut found = Vec::new();
        for name in names_in(&path)? {
            let file = path.join(&name);
            let is_file = || file.symlink_metadata().is_ok_and(|file| file.is_file());
            if let Some((id, is_unfinished)) = parse_recording((prefix, folder), &name)
                && is_file()
            {
                found.push((id, file, is_unfinished));
            }
        }
        Ok(found)
    }

    /// Returns the oldest finished recording: among the lowest-numbered ones of each prefix, the one with the
    /// earliest modification time. Its content confirms that it is one: other files may have such names.
    pub(super) fn oldest(&self) -> Result<Option<(FileId, PathBuf)>, DirectoryError> {
        let mut oldest = None;
        for (prefix, folders) in self.folders()? {
            for folder in folders {
                let mut recordings = self.recordings(prefix, folder)?;
                recordings.retain(|(id, _, is_unfinished)| {
                    !is_unfinished && RECORDINGS.contains(&id.extension)
                });
                recordings.sort_by_key(|(id, ..)| id.number);
                let first = recordings.into_iter().find(|(_, path, _)| is_ours(path));
                let Some((id, path, _)) = first else { continue };
                let metadata = path.metadata().map_err(DirectoryError::at(&path))?;
                let changed = metadata.modified().map_err(DirectoryError::at(&path))?;
                let is_older = |(earliest, ..): &(_, _, _)| changed < *earliest;
                if oldest.as_ref().is_none_or(is_older) {
                    oldest = Some((changed, id, path));
                }
                break;
            }
        }
        Ok(oldest.map(|(_, id, path)| (id, path)))
    }
}

/// Returns true if a file begins with a block of the recorder. Exported files, files of others and text of less than a block
/// do not.
fn is_ours(path: &Path) -> bool {
    let mut block = [0; BLOCK_BYTES];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut block));
    read.is_ok() && matches!(FirstBlock::of(&block), FirstBlock::Recording { .. })
}

/// Returns true if the path exists, even as a broken link.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Returns true if the path is a file of length 0, not a link to one.
fn is_empty(path: &Path) -> bool {
    let metadata = path.symlink_metadata();
    metadata.is_ok_and(|metadata| metadata.is_file() && metadata.len() == 0)
}

/// Removes a file if it exists, and makes the removal durable.
pub(super) fn remove(path: &Path) -> Result<(), DirectoryError> {
    match std::fs::remove_file(path) {
        Ok(()) => path.parent().map_or(Ok(()), sync),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(DirectoryError::at(path)(error)),
    }
}

/// Gives a trimmed file its final name and makes the name durable.
fn finish(path: &Path) -> Result<(), DirectoryError> {
    rename(path, &final_path(path))?;
    path.parent().map_or(Ok(()), sync)
}

/// Returns the path of an unfinished file without the suffix of its name.
fn final_path(path: &Path) -> PathBuf {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.and_then(|name| name.strip_suffix(PART));
    name.map_or_else(|| path.to_path_buf(), |name| path.with_file_name(name))
}

/// Renames a file; fails if the new name exists.
fn rename(from: &Path, to: &Path) -> Result<(), DirectoryError> {
    rename_without_replacing(from, to).map_err(|error| match error.kind() {
        ErrorKind::NotFound => DirectoryError::Gone(from.to_path_buf()),
        ErrorKind::AlreadyExists => DirectoryError::NameTaken(to.to_path_buf()),
        _ => DirectoryError::at(to)(error),
    })
}

fn names_in(directory: &Path) -> Result<Vec<String>, DirectoryError> {
    let entries = std::fs::read_dir(directory).map_err(DirectoryError::at(directory))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(DirectoryError::at(directory))?;
        names.extend(entry.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

/// Returns a random number, from the random keys of the standard library's hash tables.
fn random() -> u32 {
    RandomState::new().build_hasher().finish() as u32
}
