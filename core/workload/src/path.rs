//! Paths of the files that a run creates.

use core::fmt::{self, Write};

/// Longest path of a run, in bytes.
const LENGTH_MAX: usize = 64;

/// A relative path of bounded length, with `/` between names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Path {
    bytes: [u8; LENGTH_MAX],
    length: usize,
}

impl Path {
    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }

    fn of(arguments: fmt::Arguments) -> Path {
        let mut path = Path {
            bytes: [0; LENGTH_MAX],
            length: 0,
        };
        // Cannot fail: the names below are far shorter than LENGTH_MAX.
        let _ = path.write_fmt(arguments);
        path
    }
}

impl Write for Path {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        let room = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// Number of names for the root folder of a run.
pub(crate) const ROOTS_MAX: u32 = 10_000;

/// The directory tree of one run: `writeTimeTemp/test_0/temp_<file>.txt`, as in study 1, with a folder per file if the
/// phase asks for it. Every run has a root folder of its own: if the name is taken, `writeTimeTemp_1` and so on. Stores
/// without long names get upper-case 8.3 names.
#[derive(Clone, Copy)]
pub(crate) struct Names {
    pub(crate) long: bool,
    /// Number of the root folder, below [`ROOTS_MAX`].
    pub(crate) root: u32,
}

impl Names {
    pub(crate) fn root(&self) -> Path {
        match (self.long, self.root) {
            (true, 0) => Path::of(format_args!("writeTimeTemp")),
            (true, number) => Path::of(format_args!("writeTimeTemp_{number}")),
            (false, 0) => Path::of(format_args!("WRITETMP")),
            // Eight characters leave room for three letters before the number.
            (false, number) => Path::of(format_args!("WRT_{number}")),
        }
    }

    pub(crate) fn test(&self) -> Path {
        let name = if self.long { "test" } else { "TEST" };
        Path::of(format_args!("{}/{name}_0", self.root()))
    }

    pub(crate) fn folder(&self, file: u32) -> Path {
        let name = if self.long { "dir" } else { "D" };
        Path::of(format_args!("{}/{name}_{file}", self.test()))
    }

    pub(crate) fn file(&self, file: u32, own_folder: bool) -> Path {
        let folder = if own_folder {
            self.folder(file)
        } else {
            self.test()
        };
        match (self.long, file) {
            (true, _) => Path::of(format_args!("{folder}/temp_{file}.txt")),
            (false, 0..1000) => Path::of(format_args!("{folder}/TEMP_{file}.TXT")),
            // Eight characters leave room for three digits after TEMP_.
            (false, _) => Path::of(format_args!("{folder}/T_{file}.TXT")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_valid_8_3_names() {
        for root in [0, 1, ROOTS_MAX - 1] {
            let names = Names { long: false, root };
            for file in [0, 999, 1000, 99_999] {
                let path = names.file(file, true);
                for name in path.as_str().split('/') {
                    let (stem, extension) = name.split_once('.').unwrap_or((name, ""));
                    assert!(stem.len() <= 8 && extension.len() <= 3, "{path}");
                }
            }
        }
    }

    #[test]
    fn the_longest_path_is_not_truncated() {
        let names = Names {
            long: true,
            root: ROOTS_MAX - 1,
        };
        assert!(
            names
                .file(u32::MAX, true)
                .as_str()
                .ends_with("/temp_4294967295.txt")
        );
    }
}
