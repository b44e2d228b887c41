//! The index of recordings: names from the folders, totals from the files.

use super::aside;
use super::file::OpenFile;
use crate::beneath::{Root, stem_of_part};
use crate::descriptors::{checked, entries_of};
use cardiograph_record::{LiveFiles, RecordingTotals, recording_at, totals_of};
use cardiograph_recorder::FileId;
use cardiograph_server::{
    Day, Error, Position, Recording, RecordingPath, SessionName, Stat, Version,
};
use chrono::{DateTime, Datelike, Local};
use rustix::fs::Dir;
use rustix::io::Errno;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

/// Maximum number of files whose totals are cached.
const TOTALS_MAX: usize = 1 << 14;

/// The recordings of a directory, as of the start of the latest listing.
#[derive(Default)]
pub struct Index {
    /// Paths below the directory, by prefix and number.
    paths: RefCell<Vec<(Key, String)>>,
    /// Totals by path, with the version and length of the file that they were read from.
    totals: RefCell<HashMap<String, (Version, u64, RecordingTotals)>>,
}

/// Order of the recordings: prefix, then number.
type Key = ([u8; 3], u32);

impl Index {
    /// Returns the recording at a position, and advances the position.
    pub async fn next(
        &self,
        root: &Arc<Root>,
        live: &LiveFiles,
        position: &mut Position,
    ) -> Result<Option<Recording>, Error> {
        if *position == Position::default() || self.paths.borrow().is_empty() {
            let (root, live) = (Arc::clone(root), live.clone());
            *self.paths.borrow_mut() = aside(move || paths(&root, &live)).await?;
        }
        loop {
            let next = {
                let paths = self.paths.borrow();
                let at = paths.partition_point(|(key, _)| number_of(*key) < position.0);
                paths.get(at).cloned()
            };
            let Some((key, path)) = next else {
                return Ok(None);
            };
            position.0 = number_of(key) + 1;
            match self.recording(root, live, path).await {
                // The recording has been removed in the meantime.
                Err(Error::NotFound) => (),
                recording => return recording.map(Some),
            }
        }
    }

    async fn recording(
        &self,
        root: &Root,
        live: &LiveFiles,
        path: String,
    ) -> Result<Recording, Error> {
        let opened = OpenFile::open(root, live, &format!("/{path}")).await?;
        let stat = opened.stat();
        let totals = self.totals(&opened, &path, stat).await?;
        Ok(Recording {
            path: RecordingPath::try_from(format!("/{path}").as_str())
                .map_err(|_| Error::TooLong)?,
            session: SessionName::try_from(totals.session.as_str()).unwrap_or_default(),
            day: day_of(stat.modified_s, &totals),
            first_us: totals.first_us,
            last_us: totals.last_us,
            samples: totals.samples,
            gaps: totals.gaps,
            lost: totals.lost,
            stat,
        })
    }

    async fn totals(
        &self,
        opened: &OpenFile,
        path: &str,
        stat: Stat,
    ) -> Result<RecordingTotals, Error> {
        if let Some((version, bytes, totals)) = self.totals.borrow().get(path)
            && (*version, *bytes) == (stat.version, stat.bytes)
        {
            return Ok(totals.clone());
        }
        let id = recording_at(path).ok_or(Error::NotFound)?;
        let file = opened.file();
        let totals = aside(move || {
            let file = File::from(checked(file.try_clone().map_err(errno_of)?)?);
            totals_of(&file, id, stat.bytes).map_err(errno_of)
        })
        .await?;
        let mut kept = self.totals.borrow_mut();
        if kept.len() >= TOTALS_MAX {
            kept.clear();
        }
        kept.insert(path.to_string(), (stat.version, stat.bytes, totals.clone()));
        Ok(totals)
    }
}

/// Returns the paths of all recordings, in order.
fn paths(root: &Root, live: &LiveFiles) -> Result<Vec<(Key, String)>, Errno> {
    let mut found = Vec::new();
    for entry in entries_of(root.directory())? {
        let entry = entry?;
        let Ok(folder) = entry.file_name().to_str() else {
            continue;
        };
        // Recordings are only in folders that are named as the recorder names them.
        if !is_folder_of_recordings(folder) {
            continue;
        }
        let directory = match root.read_unchecked(&format!("/{folder}")) {
            Ok((directory, _)) => directory,
            // An incomplete list would look like a complete one.
            Err(Error::Busy) => return Err(Errno::MFILE),
            Err(_) => continue,
        };
        let Ok(entries) = Dir::new(directory) else {
            continue;
        };
        for entry in entries {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            let path = match stem_of_part(name) {
                Some(stem) => format!("{folder}/{stem}"),
                None => format!("{folder}/{name}"),
            };
            let is_served = stem_of_part(name).is_none() || live.at(&path).is_some();
            if let Some(id) = recording_at(&path).filter(|_| is_served) {
                found.push((key_of(id), path));
            }
        }
    }
    found.sort();
    found.dedup_by_key(|(key, _)| *key);
    Ok(found)
}

fn is_folder_of_recordings(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.len() == 8
        && bytes[..3].iter().all(u8::is_ascii_uppercase)
        && bytes[3..].iter().all(u8::is_ascii_digit)
}

fn key_of(id: FileId) -> Key {
    (id.prefix, id.number)
}

/// Maps a key to a number; the numbers have the order of the keys, and 0 precedes them all.
fn number_of((prefix, number): Key) -> u64 {
    let prefix = prefix
        .into_iter()
        .fold(0, |sum, byte| sum << 8 | u64::from(byte));
    (prefix << 32 | u64::from(number)) + 1
}

/// Returns the local date on which a recording began: the time of its last change minus its duration.
fn day_of(modified_s: Option<u64>, totals: &RecordingTotals) -> Option<Day> {
    let length_s = totals.last_us.saturating_sub(totals.first_us) / 1_000_000;
    let began_s = modified_s?.saturating_sub(length_s);
    let began = DateTime::from_timestamp(i64::try_from(began_s).ok()?, 0)?;
    let local = began.with_timezone(&Local);
    Some(Day {
        year: u16::try_from(local.year()).ok()?,
        month: local.month() as u8,
        day: local.day() as u8,
    })
}

fn errno_of(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
