//! File systems that a disk can be formatted with.

use crate::program::{missing, tool};
use cardiograph_system::has_file_system;
use std::ffi::OsString;

/// A file system of cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// FAT with long names.
    Vfat,
    /// exFAT.
    Exfat,
    /// Second extended file system.
    Ext2,
    /// Third extended file system, with a journal.
    Ext3,
    /// Fourth extended file system.
    Ext4,
    /// Flash-friendly file system.
    F2fs,
}

impl FileSystem {
    /// All file systems.
    pub const ALL: [FileSystem; 6] = [
        FileSystem::Vfat,
        FileSystem::Exfat,
        FileSystem::Ext2,
        FileSystem::Ext3,
        FileSystem::Ext4,
        FileSystem::F2fs,
    ];

    /// Returns the kernel's name.
    pub fn name(self) -> &'static str {
        match self {
            FileSystem::Vfat => "vfat",
            FileSystem::Exfat => "exfat",
            FileSystem::Ext2 => "ext2",
            FileSystem::Ext3 => "ext3",
            FileSystem::Ext4 => "ext4",
            FileSystem::F2fs => "f2fs",
        }
    }

    /// Returns the reason why this computer cannot format and mount the file system, or `None` if it can.
    pub fn obstacle(self) -> Option<String> {
        let name = self.name();
        match has_file_system(name) {
            Err(error) => return Some(format!("this user may not mount ({error}); run as root")),
            Ok(false) => return Some(format!("the kernel has no {name}")),
            Ok(true) => {}
        }
        let mkfs = format!("mkfs.{name}");
        let mut needed = [mkfs.as_str(), "losetup"].into_iter();
        needed.find(|name| tool(name).is_none()).map(missing)
    }

    /// Returns the command that formats a device, as words. Nothing is discarded or left for later, because both would
    /// change what is measured.
    pub(crate) fn mkfs(self, device: &str, block_bytes: Option<u32>) -> Option<Vec<OsString>> {
        let program = tool(&format!("mkfs.{}", self.name()))?;
        let (options, unit): (&[&str], _) = match self {
            FileSystem::Ext2 | FileSystem::Ext3 => (&["-q", "-F", "-E", "nodiscard"], Some("-b")),
            FileSystem::Ext4 => {
                let now = "nodiscard,lazy_itable_init=0,lazy_journal_init=0";
                (&["-q", "-F", "-E", now], Some("-b"))
            }
            FileSystem::Vfat => (&["-I"], Some("-S")),
            FileSystem::Exfat => (&[], None),
            FileSystem::F2fs => (&["-q", "-f", "-t", "0"], None),
        };
        let mut words = vec![program.into_os_string()];
        words.extend(options.iter().map(OsString::from));
        if let (Some(option), Some(bytes)) = (unit, block_bytes) {
            words.extend([option.into(), bytes.to_string().into()]);
        }
        words.push(device.into());
        Some(words)
    }
}
