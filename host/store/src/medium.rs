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
    /// Name and serial number of the card, where the system has it in a slot of its own.
    pub card: Option<String>,
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
            card: card_in(Path::new("/sys/block"), mount.device),
            is_memory: matches!(mount.file_system, "tmpfs" | "ramfs" | "devtmpfs"),
            file_system: Some(mount.file_system.to_string()),
            device: Some(mount.device.to_string()),
        })
    }
}

/// What the card behind `/dev/mmcblk0p1` says of itself: its product name and serial number.
fn card_in(blocks: &Path, device: &str) -> Option<String> {
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
    fn a_card_in_a_slot_tells_its_name_and_serial_number() {
        let blocks = std::env::temp_dir().join(format!("blocks-{}", std::process::id()));
        let device = blocks.join("mmcblk0/device");
        fs::create_dir_all(&device).unwrap();
        fs::write(device.join("name"), "SD16G\n").unwrap();
        fs::write(device.join("serial"), "0x1234abcd\n").unwrap();
        let card = card_in(&blocks, "/dev/mmcblk0p1");
        let other = card_in(&blocks, "/dev/sda1");
        fs::remove_dir_all(&blocks).unwrap();
        assert_eq!(card.as_deref(), Some("SD16G 0x1234abcd"));
        assert_eq!(other, None);
    }

    #[test]
    fn the_root_is_on_something() {
        assert!(Medium::of(Path::new("/")).file_system.is_some());
    }
}
