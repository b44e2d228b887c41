//! Entries of a directory.

use super::file::{epoch_at, stat_of, stat_of_growing};
use crate::beneath::{Root, error_of, stem_of_part};
use crate::descriptors::{checked, entries_of};
use cardiograph_record::LiveFiles;
use cardiograph_recorder::is_protected;
use cardiograph_server::{Entry, Error, NAME_BYTES_MAX, NameBuffer, Stat};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};
use std::ffi::CStr;
use std::os::fd::OwnedFd;

/// A position in a directory.
pub struct Listing {
    directory: OwnedFd,
    entries: Dir,
    live: LiveFiles,
    /// Path of the directory, without slashes at either end.
    path: String,
}

impl Listing {
    /// Begins to list a directory.
    pub async fn open(root: &Root, live: &LiveFiles, path: &str) -> Result<Listing, Error> {
        let (directory, found) = root.read(path).await?;
        if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
            return Err(Error::NotDirectory);
        }
        Ok(Listing {
            entries: entries_of(&directory).map_err(error_of)?,
            directory,
            live: live.clone(),
            path: path.trim_matches('/').to_string(),
        })
    }

    /// Returns the next entry.
    pub fn next<'n>(&mut self, buffer: &'n mut NameBuffer) -> Result<Option<Entry<'n>>, Error> {
        for entry in self.entries.by_ref() {
            let entry = entry.map_err(error_of)?;
            let Ok(name) = entry.file_name().to_str() else {
                // Such a name cannot be requested.
                let Some(stat) = unnamed(&self.directory, entry.file_name()) else {
                    continue;
                };
                let name = approximate(entry.file_name());
                let entry = Entry::new(buffer, &name, stat);
                return Ok(entry.map(|entry| Entry {
                    is_approximate: true,
                    ..entry
                }));
            };
            let found = match stem_of_part(name) {
                Some(stem) => growing(&self.directory, &self.live, &self.path, stem),
                None if is_protected(name) => None,
                None => finished(&self.directory, &self.path, name),
            };
            let Some((name, stat)) = found else {
                continue;
            };
            return Ok(Entry::new(buffer, name, stat));
        }
        Ok(None)
    }
}

/// Returns the properties of a file that is being recorded, under its future name.
fn growing<'n>(
    directory: &OwnedFd,
    live: &LiveFiles,
    path: &str,
    stem: &'n str,
) -> Option<(&'n str, Stat)> {
    let growing = live.at(&joined(path, stem))?;
    let found = statat(
        directory,
        format!("{stem}{}", crate::beneath::PART),
        AtFlags::SYMLINK_NOFOLLOW,
    );
    Some((stem, stat_of_growing(&found.ok()?, &growing)))
}

/// Returns the properties of an entry whose name is not UTF-8, unless it is a link or has disappeared in the meantime.
fn unnamed(directory: &OwnedFd, name: &CStr) -> Option<Stat> {
    let found = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile | FileType::Directory => Some(stat_of(&found, || None)),
        _ => None,
    }
}

/// Returns a name with the replacement character for bytes that are not UTF-8, cut to the longest name.
fn approximate(name: &CStr) -> String {
    let mut name = name.to_string_lossy().into_owned();
    let mut bytes = name.len().min(NAME_BYTES_MAX);
    while !name.is_char_boundary(bytes) {
        bytes -= 1;
    }
    name.truncate(bytes);
    name
}

/// Returns the properties of an entry, unless it is a link or has disappeared in the meantime.
fn finished<'n>(directory: &OwnedFd, path: &str, name: &'n str) -> Option<(&'n str, Stat)> {
    let found = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile | FileType::Directory => (),
        _ => return None,
    }
    let epoch = || {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = openat(directory, name, flags, Mode::empty());
        let file = file.and_then(checked).ok()?;
        epoch_at(&joined(path, name), &file)
    };
    let is_recording = cardiograph_record::recording_at(&joined(path, name)).is_some();
    let stat = stat_of(&found, || is_recording.then(epoch)?);
    Some((name, stat))
}

fn joined(path: &str, name: &str) -> String {
    match path {
        "" => name.to_string(),
        path => format!("{path}/{name}"),
    }
}
