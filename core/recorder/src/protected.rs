//! Names that clients neither see nor change. This rule is the only one: FAT entries, directories of a computer, paths
//! and listings of the server all apply it, to every name that an entry has.

use hadris_fat_raw::fold_unicode;

/// Beginning of the names of the recorder's own files, and of a board's settings.
const PREFIX: &[u8] = b"CARDIOGR.";
/// End of the names of unfinished files.
const SUFFIX: &[u8] = b".PART";

/// Returns true if a name begins with a dot or with `CARDIOGR.`, or ends with `.part`: it belongs to the recorder, the
/// server or the operating system. Case is ignored as FAT ignores it, so that a dotless i is an i, and so are dots and
/// spaces at the end, which FAT and Windows drop.
pub fn is_protected(name: &str) -> bool {
    let mut judge = NameJudge::default();
    for letter in name.chars().rev() {
        judge.push(u16::try_from(u32::from(letter)).unwrap_or(u16::MAX));
    }
    judge.is_protected()
}

/// Returns true if FAT considers two names equal.
pub fn is_same_name(one: &str, other: &str) -> bool {
    let folded = |name| str::encode_utf16(name).map(fold_unicode);
    folded(one).eq(folded(other))
}

/// Judges a name unit by unit from its end, the order in which FAT stores long names.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NameJudge {
    /// Number of units at the end of the name that match the end of [`SUFFIX`]; [`OTHER`] after one that does not.
    suffix: u8,
    /// Number of units taken last that match the end of [`PREFIX`].
    prefix: u8,
}

const OTHER: u8 = u8::MAX;

impl NameJudge {
    /// Takes the unit before those taken so far.
    pub(crate) fn push(&mut self, unit: u16) {
        let unit = fold_unicode(unit);
        let matches = |pattern: &[u8], count: u8| {
            let before = pattern.len().checked_sub(usize::from(count) + 1);
            before.is_some_and(|at| u16::from(pattern[at]) == unit)
        };
        self.suffix = match self.suffix {
            count if usize::from(count) == SUFFIX.len() => count,
            count if matches(SUFFIX, count) => count + 1,
            0 if unit == u16::from(b'.') || unit == u16::from(b' ') => 0,
            _ => OTHER,
        };
        self.prefix = match self.prefix {
            count if matches(PREFIX, count) => count + 1,
            // Only the last unit of the prefix is a dot, so a match can begin again here and nowhere else.
            _ => u8::from(unit == u16::from(b'.')),
        };
    }

    /// Returns true if the units taken so far are a protected name.
    pub(crate) fn is_protected(&self) -> bool {
        let is_whole = |count: u8, pattern: &[u8]| usize::from(count) == pattern.len();
        let begins_with_dot = self.prefix == 1;
        begins_with_dot || is_whole(self.prefix, PREFIX) || is_whole(self.suffix, SUFFIX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::String;

    #[test]
    fn names_of_recorder_and_system_are_protected() {
        for name in [
            ".wifi.txt",
            ".",
            "..",
            ".cardiograph.lock",
            "LOG00012.CSV.part",
            "LOG00012.CSV.PaRT",
            "a.part. .",
            ".part",
            "CARDIOGR.JNL",
            "cardiogr.",
            "cardıogr.txt",
            "CARDIOGR.CARDIOGR.TXT",
        ] {
            assert!(is_protected(name), "{name}");
        }
        for name in [
            "",
            "LOG00012.CSV",
            "part",
            "apart",
            "a.partial",
            "a.part.txt",
            "CARDIOGRAM.CSV",
            "CARDIOGR",
            "xCARDIOGR.TXT",
            "a..b",
            " .wifi",
            "cärdiogr.txt",
        ] {
            assert!(!is_protected(name), "{name}");
        }
    }

    proptest! {
        /// Compared with the text functions of the standard library.
        #[test]
        fn the_judge_agrees_with_the_standard_library(
            parts in proptest::collection::vec(r"CARDIOGR|cardiogr|\.|PART|part|[A-Zıſ .]", 0..6)
        ) {
            let name: String = parts.concat();
            let upper = name.to_uppercase();
            let is_due = upper.starts_with('.')
                || upper.starts_with("CARDIOGR.")
                || upper.trim_end_matches(['.', ' ']).ends_with(".PART");
            prop_assert_eq!(is_protected(&name), is_due, "{}", name);
        }
    }
}
