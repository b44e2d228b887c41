//! File systems that a disk can be formatted with.

use cardiograph_system::has_file_system;
use std::path::PathBuf;
use std::process::Command;

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
        match tool(&format!("mkfs.{name}")) {
            Some(_) => None,
            None => Some(format!("no mkfs.{name}; install {}", self.package())),
        }
    }

    /// Returns the package with the program that formats.
    fn package(self) -> &'static str {
        match self {
            FileSystem::Vfat => "dosfstools",
            FileSystem::Exfat => "exfatprogs",
            FileSystem::Ext2 | FileSystem::Ext3 | FileSystem::Ext4 => "e2fsprogs",
            FileSystem::F2fs => "f2fs-tools",
        }
    }

    /// Returns the command that formats a device. Nothing is discarded or left for later, because both would change
    /// what is measured.
    pub(crate) fn mkfs(self, device: &str, block_bytes: Option<u32>) -> Option<Command> {
        let mut mkfs = Command::new(tool(&format!("mkfs.{}", self.name()))?);
        let unit = match self {
            FileSystem::Ext2 | FileSystem::Ext3 => {
                mkfs.args(["-q", "-F", "-E", "nodiscard"]);
                Some("-b")
            }
            FileSystem::Ext4 => {
                mkfs.args(["-q", "-F", "-E"]);
                mkfs.arg("nodiscard,lazy_itable_init=0,lazy_journal_init=0");
                Some("-b")
            }
            FileSystem::Vfat => {
                mkfs.arg("-I");
                Some("-S")
            }
            FileSystem::Exfat => None,
            FileSystem::F2fs => {
                mkfs.args(["-q", "-f", "-t", "0"]);
                None
            }
        };
        if let (Some(option), Some(bytes)) = (unit, block_bytes) {
            mkfs.args([option, &bytes.to_string()]);
        }
        mkfs.arg(device);
        Some(mkfs)
    }
}

/// Finds a program of the administrator, also for users whose PATH does not have it.
pub(crate) fn tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let always = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut folders = std::env::split_paths(&path).chain(always);
    folders.find_map(|folder| Some(folder.join(name)).filter(|file| file.is_file()))
}
