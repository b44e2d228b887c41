//! File system, device and card of a directory.

use std::fs;
use std::path::Path;

/// The storage that holds a directory, as far as the operating system reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageInfo {
    /// Type of the file system, such as `vfat`.
    pub file_system: Option<String>,
    /// Block device, such as `/dev/mmcblk0p1`.
    pub device: Option<String>,
    /// Product name and serial number of the card, if it is in an MMC slot.
    pub card: Option<String>,
    /// True for file systems in memory.
    pub is_memory: bool,
}

impl StorageInfo {
    /// Looks up the storage that holds `directory`.
    pub fn of(directory: &Path) -> StorageInfo {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let directory = fs::canonicalize(directory).unwrap_or_default();
        let mount = mounts
            .lines()
            .filter_map(Mount::parse)
            .filter(|mount| directory.starts_with(&mount.point))
            // The deepest mount point hides the others; among equal mount points, the most recently mounted
            // one does.
            .max_by_key(|mount| mount.point.len());
        mount.map_or_else(StorageInfo::default, |mount| StorageInfo {
            card: card_name(Path::new("/sys/block"), mount.device),
            is_memory: matches!(mount.file_system, "tmpfs" | "ramfs" | "devtmpfs"),
            file_system: Some(mount.file_system.to_string()),
            device: Some(mount.device.to_string()),
        })
    }
}

/// Returns product name and serial number of the card behind a device such as `/dev/mmcblk0p1`.
fn card_name(blocks: &Path, device: &str) -> Option<String> {
    let partition = device.strip_prefix("/dev/")?;
    let disk = match partition.rsplit_once('p') {
        Some((disk, _)) if partition.starts_with("mmcblk") => disk,
        _ => partition,
    };
    let read = |name| fs::read_to_string(blocks.join(disk).join("device").join(name)).ok();
    let (name, serial) = (read("name")?, read("serial")?);
    Some(format!("{} {}", name.trim(), serial.trim()))
}

struct Mount<'a> {
    point: String,
    file_system: &'a str,
    device: &'a str,
}

impl Mount<'_> {
    /// Parses a line of mountinfo (proc_pid_mountinfo(5)): the mount point is the fifth field; type and
    /// device follow the separator ` - `.
    fn parse(line: &str) -> Option<Mount<'_>> {
        let (before, after) = line.split_once(" - ")?;
        let point = before.split(' ').nth(4)?;
        let mut after = after.split(' ');
        Some(Mount {
            // Spaces are escaped in octal.
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
    fn parses_a_line_of_mountinfo() {
        let line = "36 35 98:0 /mnt1 /mnt/my\\040card rw,noatime master:1 - vfat /dev/sdb1 rw,x";
        let mount = Mount::parse(line).unwrap();
        assert_eq!(mount.point, "/mnt/my card");
        assert_eq!((mount.file_system, mount.device), ("vfat", "/dev/sdb1"));
        assert!(Mount::parse("nonsense").is_none());
    }

    #[test]
    fn reads_name_and_serial_number_of_a_card_in_a_slot() {
        let blocks = std::env::temp_dir().join(format!("blocks-{}", std::process::id()));
        let device = blocks.join("mmcblk0/device");
        fs::create_dir_all(&device).unwrap();
        fs::write(device.join("name"), "SD16G\n").unwrap();
        fs::write(device.join("serial"), "0x1234abcd\n").unwrap();
        let card = card_name(&blocks, "/dev/mmcblk0p1");
        let other = card_name(&blocks, "/dev/sda1");
        fs::remove_dir_all(&blocks).unwrap();
        assert_eq!(card.as_deref(), Some("SD16G 0x1234abcd"));
        assert_eq!(other, None);
    }

    #[test]
    fn the_root_directory_has_a_file_system() {
        assert!(StorageInfo::of(Path::new("/")).file_system.is_some());
    }
}
