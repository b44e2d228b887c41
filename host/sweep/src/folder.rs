//! The folder of a sweep's results: the sweep as JSON, a lock, and a file per part.

use crate::SweepError;
use crate::parquet::{self, Outcome};
use crate::sweep::{RESULTS, Sweep};
use cardiograph_trace::{NewFile, WriteError};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The sweep whose results are in the folder.
const SWEEP: &str = "sweep.json";
/// Locked while a process computes.
const LOCK: &str = "sweep.lock";
/// Depth of folders in which foreign files are looked for; links may form circles.
const DEPTH_MAX: u32 = 8;

/// A folder with the results of one sweep, locked against other processes until it is dropped.
pub struct ResultFolder {
    path: PathBuf,
    lock: File,
}

impl ResultFolder {
    /// Creates the folder, or opens one with results of the same sweep.
    ///
    /// # Errors
    /// If the folder holds anything else, results of another sweep or version, or another process uses it.
    pub fn open(path: &Path, sweep: &Sweep) -> Result<ResultFolder, SweepError> {
        let described = path.join(SWEEP);
        let is_described = match described.try_exists() {
            Err(error) if error.kind() != ErrorKind::NotADirectory => {
                return Err(failed(&described, error));
            }
            exists => exists.unwrap_or(false),
        };
        if path.is_symlink() && !path.exists() {
            return Err(SweepError::new(format!(
                "{}: is a link to a folder that does not exist; create that folder, or choose another one",
                path.display()
            )));
        }
        if path.symlink_metadata().is_ok() && !is_described && !is_unused(path) {
            return Err(SweepError::new(format!(
                "{}: exists and is no folder of a sweep; choose another folder",
                path.display()
            )));
        }
        let lock = fs::create_dir_all(path).and_then(|()| open_lock(&path.join(LOCK)));
        let lock = lock.map_err(|error| failed(path, error))?;
        match lock.try_lock() {
            Ok(()) => (),
            Err(TryLockError::WouldBlock) => {
                return Err(SweepError::new(format!(
                    "{}: another process writes to this folder; wait for its end, or choose another folder",
                    path.display()
                )));
            }
            // Some network file systems have no locks; each file still appears complete or not at all.
            Err(TryLockError::Error(_)) => (),
        }
        remove_temporary(path);
        match fs::read_to_string(&described) {
            Ok(text) => {
                same(path, &text, &sweep.to_json())?;
                refuse_strangers(path, sweep)?;
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                publish(&described, sweep.to_json().as_bytes())?;
            }
            Err(error) => return Err(failed(&described, error)),
        }
        Ok(ResultFolder {
            path: path.to_path_buf(),
            lock,
        })
    }

    /// Returns the numbers of the parts without results.
    pub fn missing(&self, sweep: &Sweep) -> Vec<u64> {
        // A link that leads nowhere is there: it must be named before anything is computed.
        let is_missing = |&part: &u64| {
            let path = self.path.join(sweep.file_of_part(part));
            path.symlink_metadata().is_err()
        };
        (0..sweep.parts()).filter(is_missing).collect()
    }

    /// Writes the file of a part, which appears complete or not at all.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, sweep: &Sweep, part: u64, bytes: &[u8]) -> Result<(), SweepError> {
        let path = self.path.join(sweep.file_of_part(part));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        }
        publish(&path, bytes)
    }

    /// Reads the results of a part.
    pub(crate) fn read(&self, sweep: &Sweep, part: u64) -> Result<Vec<Outcome>, SweepError> {
        let path = self.path.join(sweep.file_of_part(part));
        let wrong = |reason: String| {
            SweepError::new(format!(
                "{}: {reason}; remove the file, and repeat the command",
                path.display()
            ))
        };
        // Reading a pipe would never end.
        if !path.is_file() {
            return Err(wrong(String::from("not an ordinary file")));
        }
        let bytes = fs::read(&path).map_err(|error| failed(&path, error))?;
        let (found, outcomes) =
            parquet::outcomes(bytes).map_err(|error| wrong(format!("damaged ({error})")))?;
        match found == sweep.origin_of_part(part) {
            true => Ok(outcomes),
            false => Err(wrong(String::from(
                "holds results of another part or another sweep",
            ))),
        }
    }

    /// Unlocks the folder before this value is dropped: errors in a notebook keep values alive.
    pub fn unlock(&self) {
        // Without locks there is nothing to unlock.
        let _ = self.lock.unlock();
    }

    /// Returns the folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Opens the lock. In a folder that cannot be written, complete results can still be read.
fn open_lock(path: &Path) -> std::io::Result<File> {
    let lock = File::options().create(true).append(true).open(path);
    lock.or_else(|error| File::open(path).map_err(|_| error))
}

/// Returns true for a folder in which a process was interrupted before it described its sweep, and for an empty one.
fn is_unused(path: &Path) -> bool {
    let is_own = |entry: std::io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.file_name() == LOCK || is_temporary(&entry))
    };
    fs::read_dir(path).is_ok_and(|mut entries| entries.all(is_own))
}

/// Returns true for a description that did not get its name (see [`NewFile`]).
fn is_temporary(entry: &fs::DirEntry) -> bool {
    let name = entry.file_name();
    let name = name.to_string_lossy();
    let middle = name
        .strip_prefix(".")
        .and_then(|rest| rest.strip_prefix(SWEEP));
    middle.is_some_and(|rest| rest.ends_with(".part"))
}

/// Removes the temporary files of an interrupted process; the folder is locked.
fn remove_temporary(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if is_temporary(&entry) {
            // A file that cannot be removed does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Refuses Parquet files that are no part of the sweep: a query over the folder would count them.
fn refuse_strangers(path: &Path, sweep: &Sweep) -> Result<(), SweepError> {
    let parts: BTreeSet<PathBuf> = (0..sweep.parts())
        .map(|part| path.join(sweep.file_of_part(part)))
        .collect();
    match stranger(&path.join(RESULTS), &parts, DEPTH_MAX) {
        Some(file) => Err(SweepError::new(format!(
            "{}: does not belong to this sweep; move it elsewhere, and repeat the command",
            file.display()
        ))),
        None => Ok(()),
    }
}

/// Returns a Parquet file in the folder, or up to `depth` folders below it, that is no part.
fn stranger(folder: &Path, parts: &BTreeSet<PathBuf>, depth: u32) -> Option<PathBuf> {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let file = entry.path();
        let is_parquet = file.extension().is_some_and(|end| end == "parquet");
        if is_parquet && !parts.contains(&file) {
            return Some(file);
        }
        if depth > 0 && file.is_dir() {
            let found = stranger(&file, parts, depth - 1);
            if found.is_some() {
                return found;
            }
        }
    }
    None
}

fn failed(path: &Path, error: std::io::Error) -> SweepError {
    SweepError::new(WriteError::new(path, error))
}

fn publish(path: &Path, bytes: &[u8]) -> Result<(), SweepError> {
    let mut file = NewFile::create(path).map_err(SweepError::new)?;
    file.write_all(bytes).map_err(|error| failed(path, error))?;
    file.commit().map_err(SweepError::new)
}

/// Compares the sweep in the folder with the requested one.
fn same(path: &Path, found: &str, wanted: &str) -> Result<(), SweepError> {
    if found == wanted {
        return Ok(());
    }
    let Ok(found) = serde_json::from_str::<Value>(found) else {
        return Err(SweepError::new(format!(
            "{}: damaged; its results cannot be attributed to a sweep, so choose another folder",
            path.join(SWEEP).display()
        )));
    };
    let wanted: Value = serde_json::from_str(wanted).unwrap_or_default();
    Err(SweepError::new(format!(
        "{}: holds results of another sweep: {}; choose another folder",
        path.display(),
        difference(&found, &wanted)
    )))
}

/// Names the first difference of two sweeps.
fn difference(found: &Value, wanted: &Value) -> String {
    if found["version"] != wanted["version"] {
        return format!(
            "version {} computed them, and this is version {}",
            found["version"], wanted["version"]
        );
    }
    let keys = wanted["spec"].as_object().into_iter().flatten();
    for (key, value) in keys {
        if found["spec"][key] != *value {
            return format!("`{key}` is {} there, and {value} here", found["spec"][key]);
        }
    }
    "a card or board has changed".to_string()
}
