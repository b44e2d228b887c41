//! What lies under a directory.

use std::fs;
use std::path::Path;

/// The file system that a directory is on, as far as the system tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Medium {
    /// Type of the file system, as `vfat`.
    pub file_system: Option<String>,
    /// Device it is on, as `/dev/mmcblk0p1`.
    pub device: Option<String>,
    /// Its files are kept in memory alone.
    pub is_memory: bool,
}

impl Medium {
    /// Looks up what `directory` is on.
    pub fn of(directory: &Path) -> Medium {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let directory = fs::canonicalize(directory).unwrap_or_default();
        let mount = mounts
            .lines()
            .filter_map(Mount::parse)
            .filter(|mount| directory.starts_with(&mount.point))
            // The deepest, and of equals the one mounted last, covers the others.
            .max_by_key(|mount| mount.point.len());
        mount.map_or_else(Medium::default, |mount| Medium {
            is_memory: matches!(mount.file_system, "tmpfs" | "ramfs" | "devtmpfs"),
            file_system: Some(mount.file_system.to_string()),
            device: Some(mount.device.to_string()),
        })
    }
}

struct Mount<'a> {
    point: String,
    file_system: &'a str,
    device: &'a str,
}

impl Mount<'_> {
    /// A line of mountinfo (proc_pid_mountinfo(5)): the mount point is the fifth field, type and
    /// device follow a lone dash.
    fn parse(line: &str) -> Option<Mount<'_>> {
        let (before, after) = line.split_once(" - ")?;
        let point = before.split(' ').nth(4)?;
        let mut after = after.split(' ');
        Some(Mount {
            // Blanks are written as octal.
            point: point.replace("\\040", " "),
            file_system: after.next()?,
            device: after.next()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mountinfo_is_understood() {
        let line = "36 35 98:0 /mnt1 /mnt/my\\040card rw,noatime master:1 - vfat /dev/sdb1 rw,x";
        let mount = Mount::parse(line).unwrap();
        assert_eq!(mount.point, "/mnt/my card");
        assert_eq!((mount.file_system, mount.device), ("vfat", "/dev/sdb1"));
        assert!(Mount::parse("nonsense").is_none());
    }

    #[test]
    fn the_root_is_on_something() {
        assert!(Medium::of(Path::new("/")).file_system.is_some());
    }
}
