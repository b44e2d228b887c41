//! File system and device below a directory.

use crate::System;
use crate::identity::text;
use crate::mounts::{Mount, mounts};
use crate::system::{block_device_number, name_of};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// File systems that keep their files in memory.
const IN_MEMORY: [&str; 3] = ["tmpfs", "ramfs", "devtmpfs"];

/// Storage below a directory, as far as the kernel reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Type of the file system, such as `vfat`.
    pub file_system: String,
    /// Mount point of the file system.
    pub mount_point: String,
    /// Source of the mount, such as `/dev/sdb1`.
    pub source: String,
    /// Whole disk below it, such as `/dev/sdb`; null if there is none, or several.
    pub device: Option<String>,
    /// Size of this disk.
    pub device_bytes: Option<u64>,
    /// Kind of the file system.
    pub kind: PlaceKind,
}

/// Kind of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlaceKind {
    /// A file system of its own, such as that of a card.
    Mounted,
    /// The root file system of this computer: where files are if a mount has failed.
    Root,
    /// In memory.
    Memory,
}

impl System {
    /// Returns the storage below a directory; `None` if the kernel lists no mount for it.
    pub fn place(&self, directory: &Path) -> Option<Place> {
        let directory = fs::canonicalize(directory).ok()?;
        let all = mounts(&self.proc_text("self/mountinfo"));
        let above = all
            .iter()
            .filter(|mount| directory.starts_with(&mount.point));
        // The deepest mount point hides the others; among equal ones, the most recently mounted one does.
        let mount = above.max_by_key(|mount| mount.point.len())?;
        let is_root = |other: &&Mount| other.point == "/";
        let root = all.iter().rev().find(is_root);
        let kind = match mount {
            _ if IN_MEMORY.contains(&mount.file_system.as_str()) => PlaceKind::Memory,
            // Another directory or subvolume of it may be mounted elsewhere.
            _ if root.is_some_and(|root| is_same(root, mount)) => PlaceKind::Root,
            _ => PlaceKind::Mounted,
        };
        let disk = self.disk_of(mount);
        Some(Place {
            file_system: mount.file_system.clone(),
            mount_point: mount.point.clone(),
            source: mount.source.clone(),
            device: disk
                .as_deref()
                .map(|folder| format!("/dev/{}", name_of(folder))),
            // The kernel counts in units of 512 B.
            device_bytes: disk
                .and_then(|folder| text(&folder.join("size"))?.parse::<u64>().ok())
                .and_then(|sectors| sectors.checked_mul(512)),
            kind,
        })
    }

    /// Returns the folder of the single whole disk below a mount.
    fn disk_of(&self, mount: &Mount) -> Option<PathBuf> {
        let folder = |number: &str| fs::canonicalize(self.sys.join("dev/block").join(number)).ok();
        // A file system on several disks has a number of its own.
        let number = match folder(&mount.number) {
            Some(_) => mount.number.clone(),
            None => block_device_number(&mount.source)?,
        };
        let below = self.below(&number).into_iter();
        let lowest = below.filter_map(|number| folder(&number)).filter(|folder| {
            let slaves = fs::read_dir(folder.join("slaves"));
            slaves.map_or(0, Iterator::count) == 0
        });
        let mut disks: Vec<PathBuf> = lowest
            .map(|folder| match folder.join("partition").exists() {
                true => folder.parent().unwrap_or(&folder).to_path_buf(),
                false => folder,
            })
            .collect();
        disks.dedup();
        let one = disks.pop()?;
        disks.is_empty().then_some(one)
    }
}

/// Returns true if two mounts show the same file system.
fn is_same(a: &Mount, b: &Mount) -> bool {
    a.number == b.number || a.source == b.source && a.source.starts_with("/dev/")
}
