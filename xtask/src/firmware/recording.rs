//! Checks the firmware's recording with other FAT programs.

use super::image::Image;
use crate::run::{capture, check};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Number of samples, as in `firmware/lm3s6965/src/recording.rs`.
const SAMPLES: u32 = 20_000;
/// Minimum number of files, so that the test covers the change to the next file.
const FILES_MIN: usize = 3;
const NAMES: &str = "index,value,check,note";
/// Start of a row with a note instead of values. Only the note about the file and checkpoint marks (`@`
/// after spaces) are allowed; a note about a gap, for example, is an error.
const NOTE: &str = ",,,#";
/// Name of a file that does not belong to the recorder.
pub const OTHERS: &str = "OTHERS.BIN";

/// Adds a file that does not belong to the recorder to a new file system.
pub fn add_other_file(fat: &Path) -> Result<(), String> {
    let file = fat.with_file_name(OTHERS);
    fs::write(&file, others()).map_err(|error| format!("{}: {error}", file.display()))?;
    check(Command::new("mcopy").arg("-i").args([fat, &file]).arg("::"))
}

/// Returns the contents of the other file: more than three clusters.
pub fn others() -> Vec<u8> {
    (0..7001u32).map(|i| ((i * i) >> 5) as u8).collect()
}

/// Checks the file system, the recorded files and their samples, and that the other file is unchanged.
pub fn check_files(image: &Image, folder: &Path) -> Result<(), String> {
    let fat = folder.join("recorded.img");
    fs::write(&fat, image.fat()?).map_err(|error| format!("{}: {error}", fat.display()))?;
    let (is_clean, text) = capture(Command::new(super::FSCK).arg("-n").arg(&fat))?;
    if !is_clean {
        return Err(format!("fsck.fat reports errors: {text}"));
    }
    let files = files(&fat, &folder.join("recorded"))?;
    let (other, recorded): (Vec<_>, Vec<_>) = files.iter().partition(|path| path.ends_with(OTHERS));
    let [other] = other[..] else {
        return Err(format!("{OTHERS} is missing"));
    };
    if read(other)? != others() {
        return Err(format!("{OTHERS} has changed"));
    }
    if recorded.len() < FILES_MIN {
        return Err(format!("only {} files were recorded", recorded.len()));
    }
    let mut expected = (0..SAMPLES).map(row);
    for path in recorded {
        compare(path, &mut expected)?;
    }
    match expected.next() {
        Some(row) => Err(format!("samples from {row} on are missing")),
        None => Ok(()),
    }
}

/// Copies the files from the file system; returns their paths, sorted by name.
fn files(fat: &Path, to: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error| format!("{}: {error}", to.display());
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).map_err(failed)?;
    let mut command = Command::new("mcopy");
    command.arg("-i").arg(fat);
    check(
        command
            .args(["::REC00000/REC*.CSV", "::OTHERS.BIN"])
            .arg(to),
    )?;
    let entries = fs::read_dir(to).map_err(failed)?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// Compares the rows of a file with the next expected rows.
fn compare(path: &Path, expected: &mut impl Iterator<Item = String>) -> Result<(), String> {
    let text = String::from_utf8(read(path)?);
    let text = text.map_err(|_| format!("{}: not text", path.display()))?;
    let mut lines = text.split_terminator("\r\n");
    if lines.next() != Some(NAMES) {
        return Err(format!("{}: no column names", path.display()));
    }
    let is_note = |line: &str| {
        let note = line.strip_prefix(NOTE).map(str::trim_start);
        note.is_some_and(|note| note.starts_with('@') || note.starts_with("file "))
    };
    for line in lines.filter(|line| !is_note(line)) {
        let row = expected.next().unwrap_or_default();
        if line != row {
            return Err(format!("{}: expected {row}, found {line}", path.display()));
        }
    }
    Ok(())
}

/// Returns the row of a sample.
fn row(index: u32) -> String {
    let value = index.wrapping_mul(0x9E37_79B1);
    format!("{index},{},{}", value as i32, value >> 16)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}
