//! The folder of a sweep's results: the sweep as JSON, a lock, and a file per part.

use crate::SweepError;
use crate::parquet::{self, Outcome};
use crate::sweep::Sweep;
use cardiograph_trace::{NewFile, WriteError};
use serde_json::Value;
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The sweep whose results are in the folder.
const SWEEP: &str = "sweep.json";
/// Locked while a process computes.
const LOCK: &str = "sweep.lock";

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
        if path.symlink_metadata().is_ok() && !described.exists() && !is_empty_folder(path) {
            return Err(SweepError::new(format!(
                "{}: exists and is no folder of a sweep; choose another folder",
                path.display()
            )));
        }
        let lock = fs::create_dir_all(path).and_then(|()| {
            File::options()
                .create(true)
                .append(true)
                .open(path.join(LOCK))
        });
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
        match fs::read_to_string(&described) {
            Ok(text) => same(path, &text, &sweep.to_json())?,
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
        let is_missing = |&part: &u64| !self.path.join(sweep.file_of_part(part)).exists();
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
        let bytes = fs::read(&path).map_err(|error| failed(&path, error))?;
        parquet::outcomes(bytes).map_err(|error| {
            SweepError::new(format!(
                "{}: damaged ({error}); remove the file, and repeat the command",
                path.display()
            ))
        })
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

fn is_empty_folder(path: &Path) -> bool {
    // A process that was interrupted before it described its sweep leaves only the lock.
    let is_lock =
        |entry: std::io::Result<fs::DirEntry>| entry.is_ok_and(|entry| entry.file_name() == LOCK);
    fs::read_dir(path).is_ok_and(|mut entries| entries.all(is_lock))
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
    let (found, wanted): (Value, Value) = (
        serde_json::from_str(found).unwrap_or_default(),
        serde_json::from_str(wanted).unwrap_or_default(),
    );
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
