//! Folders that an earlier run left in a directory.

use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};

/// A folder that a run created and has not removed yet: the run is still going on, or it was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderLeft {
    /// Path of the folder.
    pub path: PathBuf,
    /// Command that created it, such as `check`.
    pub run: &'static str,
}

/// Names of the folders, up to the number that follows.
const PREFIXES: [(&str, &str); 2] = [
    ("cardiograph-check-", "check"),
    ("cardiograph-flash-benchmark-", "flash-benchmark"),
];

/// Name of the folder of `bench`; if this name is taken, `_` and a number follow.
const OF_BENCH: &str = "writeTimeTemp";

/// Returns the folders in a directory that look like those of a run, in order of their names. Links are not followed.
pub fn folders_left(directory: &Path) -> Vec<FolderLeft> {
    let mut folders: Vec<_> = folders(directory)
        .filter_map(|entry| {
            Some(FolderLeft {
                run: run_of(&entry)?,
                path: entry.path(),
            })
        })
        .collect();
    folders.sort_by(|a, b| a.path.cmp(&b.path));
    folders
}

fn folders(directory: &Path) -> impl Iterator<Item = DirEntry> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
}

fn run_of(folder: &DirEntry) -> Option<&'static str> {
    let name = folder.file_name();
    let name = name.to_str()?;
    let of_prefix = PREFIXES
        .iter()
        .find(|(prefix, _)| name.strip_prefix(prefix).is_some_and(is_number));
    if let Some((_, run)) = of_prefix {
        return Some(run);
    }
    let number = name.strip_prefix(OF_BENCH)?;
    let is_name = number.is_empty() || number.strip_prefix('_').is_some_and(is_number);
    // The sketches of study 1 use the same name: with anything else in it, the folder is somebody's own.
    (is_name && has_only_tests(&folder.path())).then_some("bench")
}

fn has_only_tests(folder: &Path) -> bool {
    let is_test = |name: &OsStr| {
        let number = name.to_str().and_then(|name| name.strip_prefix("test_"));
        number.is_some_and(is_number)
    };
    let entries = fs::read_dir(folder);
    entries.is_ok_and(|mut entries| {
        entries.all(|entry| entry.is_ok_and(|entry| is_test(&entry.file_name())))
    })
}

fn is_number(text: &str) -> bool {
    text.parse::<u32>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_every_command_are_found_and_others_are_not() {
        let own = tempfile::tempdir().unwrap();
        let create = |name: &str| fs::create_dir_all(own.path().join(name)).unwrap();
        for name in [
            "cardiograph-check-7",
            "cardiograph-check-mine",
            "cardiograph-flash-benchmark-0",
            "writeTimeTemp",
            "writeTimeTemp_2/test_0",
            "writeTimeTemp_3/test_0",
            "writeTimeTemp_old",
            "writeTimeTemp2",
        ] {
            create(name);
        }
        fs::write(own.path().join("writeTimeTemp_3/notes.txt"), "mine").unwrap();
        fs::write(own.path().join("cardiograph-check-8"), "a file").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("writeTimeTemp_old", own.path().join("cardiograph-check-9"))
            .unwrap();
        let found: Vec<_> = folders_left(own.path())
            .into_iter()
            .map(|left| {
                let name = left.path.strip_prefix(own.path()).unwrap();
                (name.to_str().unwrap().to_string(), left.run)
            })
            .collect();
        let expected = [
            ("cardiograph-check-7", "check"),
            ("cardiograph-flash-benchmark-0", "flash-benchmark"),
            ("writeTimeTemp", "bench"),
            ("writeTimeTemp_2", "bench"),
        ];
        assert_eq!(found, expected.map(|(name, run)| (name.to_string(), run)));
    }
}
