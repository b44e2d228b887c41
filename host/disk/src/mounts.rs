//! Mounted file systems, from mountinfo.

/// A line of `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Number of the device, such as `8:17`; anonymous for btrfs.
    pub number: String,
    /// Mount point.
    pub point: String,
    /// Type of the file system, such as `vfat`.
    pub file_system: String,
    /// Source, such as `/dev/sdb1`.
    pub source: String,
}

impl Mount {
    /// Parses a line; returns `None` if it has too few fields.
    fn parse(line: &str) -> Option<Mount> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(2);
        let mut after = after.split(' ');
        Some(Mount {
            number: before.next()?.to_string(),
            point: unescaped(before.nth(1)?),
            file_system: after.next()?.to_string(),
            source: unescaped(after.next()?),
        })
    }
}

/// Parses mountinfo. Lines that are not understood are ignored.
pub(crate) fn mounts(text: &str) -> Vec<Mount> {
    text.lines().filter_map(Mount::parse).collect()
}

/// Replaces the octal escapes of a field, such as `\040`.
fn unescaped(field: &str) -> String {
    let mut text = String::new();
    let mut rest = field;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let digits = rest.get(at + 1..at + 4);
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(code) => {
                text.push(char::from(code));
                rest = &rest[at + 4..];
            }
            None => {
                text.push('\\');
                rest = &rest[at + 1..];
            }
        }
    }
    text + rest
}

/// Returns the first column of `/proc/swaps`, without its header.
pub(crate) fn swaps(text: &str) -> Vec<String> {
    let rows = text.lines().skip(1);
    rows.filter_map(|row| row.split_whitespace().next().map(unescaped))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_mountinfo_are_found_and_unescaped() {
        let line = "36 35 8:17 / /mnt/my\\040card rw,noatime master:1 - vfat /dev/sdb1 rw,x";
        let expected = Mount {
            number: String::from("8:17"),
            point: String::from("/mnt/my card"),
            file_system: String::from("vfat"),
            source: String::from("/dev/sdb1"),
        };
        assert_eq!(mounts(line), [expected]);
        assert_eq!(mounts("nonsense\n1 2 - 3\n"), []);
        assert_eq!(unescaped("a\\"), "a\\");
        assert_eq!(unescaped("\\0é4"), "\\0é4");
    }

    #[test]
    fn swaps_have_a_header() {
        let text = "Filename\tType\tSize\n/dev/sda2 partition 100\n/swap\\040file file 7\n";
        assert_eq!(swaps(text), ["/dev/sda2", "/swap file"]);
    }
}
