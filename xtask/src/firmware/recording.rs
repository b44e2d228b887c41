//! What the firmware has recorded, as another FAT program reads it.

use super::image::Image;
use crate::run::{capture, check};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// As in `firmware/lm3s6965/src/recording.rs`.
const SAMPLES: u32 = 20_000;
/// There are several, so that samples went on from one to the next.
const FILES_MIN: usize = 3;
const NAMES: &str = "index,value,check,note";
/// A row without values has a note: the one about the file, or a mark, which goes on with blanks and `@`. No
/// other may be there, such as that of a gap.
const NOTE: &str = ",,,#";
const OTHERS: &str = "OTHERS.BIN";

/// Puts a file on a new file system that is none of the recorder's.
pub fn put_other(fat: &Path) -> Result<(), String> {
    let file = fat.with_file_name(OTHERS);
    fs::write(&file, others()).map_err(|error| format!("{}: {error}", file.display()))?;
    check(Command::new("mcopy").arg("-i").args([fat, &file]).arg("::"))
}

/// Three clusters of bytes, and some more.
fn others() -> Vec<u8> {
    (0..7001u32).map(|i| ((i * i) >> 5) as u8).collect()
}

/// Checks the file system, the files and the samples in them, and that nothing else has changed.
pub fn is_complete(image: &Image, folder: &Path) -> Result<(), String> {
    let fat = folder.join("recorded.img");
    fs::write(&fat, image.fat()?).map_err(|error| format!("{}: {error}", fat.display()))?;
    let (is_clean, text) = capture(Command::new(super::FSCK).arg("-n").arg(&fat))?;
    if !is_clean {
        return Err(format!("fsck.fat finds faults: {text}"));
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
        Some(row) => Err(format!("{row} and what follows is missing")),
        None => Ok(()),
    }
}

/// Copies the files off the file system; their paths by name.
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

/// Goes through the rows of a file, and through as many that are due.
fn compare(path: &Path, expected: &mut impl Iterator<Item = String>) -> Result<(), String> {
    let text = String::from_utf8(read(path)?);
    let text = text.map_err(|_| format!("{} is no text", path.display()))?;
    let mut lines = text.split_terminator("\r\n");
    if lines.next() != Some(NAMES) {
        return Err(format!("{} has no names of columns", path.display()));
    }
    let is_note = |line: &str| {
        let note = line.strip_prefix(NOTE).map(str::trim_start);
        note.is_some_and(|note| note.starts_with('@') || note.starts_with("file "))
    };
    for line in lines.filter(|line| !is_note(line)) {
        let row = expected.next().unwrap_or_default();
        if line != row {
            return Err(format!("{}: {line} in place of {row}", path.display()));
        }
    }
    Ok(())
}

/// The sample of this number.
fn row(index: u32) -> String {
    let value = index.wrapping_mul(0x9E37_79B1);
    format!("{index},{},{}", value as i32, value >> 16)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}
