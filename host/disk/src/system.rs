//! Search for a disk in sysfs, and for everything that uses it.

use crate::DiskError;
use crate::identity::{Identity, text};
use crate::mounts::{mounts, swaps};
use cardiograph_system::{device_number, identity, is_block_device};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Number of further checks for a loop device on the disk, and the time between them.
const LOOP_CHECKS: u32 = 10;
const LOOP_INTERVAL: std::time::Duration = std::time::Duration::from_millis(100);

/// Paths of the kernel's views of this computer.
#[derive(Clone, Debug)]
pub struct System {
    /// `/sys`.
    pub sys: PathBuf,
    /// `/proc`.
    pub proc: PathBuf,
}

impl Default for System {
    /// Returns the paths of this computer.
    fn default() -> System {
        System {
            sys: PathBuf::from("/sys"),
            proc: PathBuf::from("/proc"),
        }
    }
}

/// A use of a disk, such as `/dev/sdb1 is mounted on /media/card`, and the steps that end it.
type Use = (String, String);

/// A whole disk in sysfs.
pub(crate) struct Found {
    /// Path that the command line names.
    pub device: String,
    /// Folder in sysfs.
    pub folder: PathBuf,
    /// Names in sysfs of the disk and its partitions, such as `sdb` and `sdb1`.
    names: Vec<String>,
    /// Device numbers of the disk and its partitions, such as `8:16`.
    numbers: Vec<String>,
}

impl System {
    /// Finds the whole disk with a device number, such as `8:16`.
    ///
    /// # Errors
    /// [`DiskError::NotADisk`], [`DiskError::Partition`] or [`DiskError::NoMedium`]; [`DiskError::Io`] if the disk is
    /// there and cannot be inspected.
    pub(crate) fn find(&self, device: &str, number: &str) -> Result<Found, DiskError> {
        let link = self.sys.join("dev/block").join(number);
        let folder = fs::canonicalize(link).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => DiskError::NotADisk {
                path: device.to_string(),
            },
            _ => DiskError::io(device, error),
        })?;
        if folder.join("partition").exists() {
            let disk = folder.parent().map(name_of).unwrap_or_default();
            return Err(DiskError::Partition {
                path: device.to_string(),
                disk,
            });
        }
        let found = Found::at(device, folder);
        fs::read(found.folder.join("size")).map_err(|error| DiskError::io(device, error))?;
        if self.identity(&found).capacity_bytes == 0 {
            return Err(DiskError::NoMedium {
                path: device.to_string(),
            });
        }
        Ok(found)
    }

    /// Returns the identity of the whole disk with a device number, if nothing uses it. `device` is its path.
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn inspect(&self, device: &str, number: &str) -> Result<Identity, DiskError> {
        let found = self.find(device, number)?;
        self.check_unused(&found)?;
        Ok(self.identity(&found))
    }

    /// Reads the identity of a disk.
    pub(crate) fn identity(&self, found: &Found) -> Identity {
        Identity::read(&found.device, &found.folder)
    }

    /// Returns an error if anything uses the disk or one of its partitions.
    pub(crate) fn check_unused(&self, found: &Found) -> Result<(), DiskError> {
        self.check_lists(found)?;
        let own = self.first_use(found);
        match own.or_else(|| self.loop_device(found)) {
            None => Ok(()),
            Some((by, remedy)) => Err(DiskError::InUse {
                path: found.device.clone(),
                by,
                remedy,
            }),
        }
    }

    /// Returns an error if a list of uses cannot be read, so that it does not look like an empty one.
    fn check_lists(&self, found: &Found) -> Result<(), DiskError> {
        for list in ["self/mountinfo", "swaps"] {
            let path = self.proc.join(list);
            match fs::read(&path) {
                // Kernels without swap have no list of it.
                Err(error) if error.kind() == io::ErrorKind::NotFound && list == "swaps" => {}
                Err(error) => {
                    let source = io::Error::other(format!("{}: {error}", path.display()));
                    return Err(DiskError::io(&found.device, source));
                }
                Ok(_) => {}
            }
        }
        Ok(())
    }

    /// Returns a use of a disk, and how to end it. A use of the file or device behind a loop device counts as a use of the
    /// loop device, except by that loop device.
    fn first_use(&self, found: &Found) -> Option<Use> {
        self.root_file_system(found)
            .or_else(|| self.mounted(found))
            .or_else(|| self.swap(found))
            .or_else(|| self.holder(found))
            .or_else(|| self.behind(found))
    }

    fn root_file_system(&self, found: &Found) -> Option<Use> {
        let all = mounts(&self.proc_text("self/mountinfo"));
        let roots = all.iter().filter(|mount| mount.point == "/");
        let mut disks = roots.flat_map(|mount| self.below(&mount.number));
        disks
            .any(|number| found.numbers.contains(&number))
            .then(|| {
                (
                    String::from("the disk holds the root file system of this computer"),
                    String::from("name another disk"),
                )
            })
    }

    /// Returns a device number and those of all devices below it: those that hold a logical volume or a RAID.
    pub(crate) fn below(&self, number: &str) -> Vec<String> {
        let mut all = vec![number.to_string()];
        let mut next = 0;
        while let Some(number) = all.get(next) {
            let slaves = self.sys.join("dev/block").join(number).join("slaves");
            let numbers = entries(&slaves)
                .into_iter()
                .filter_map(|path| text(&path.join("dev")));
            let new: Vec<_> = numbers.filter(|number| !all.contains(number)).collect();
            all.extend(new);
            next += 1;
        }
        all
    }

    fn mounted(&self, found: &Found) -> Option<Use> {
        let all = mounts(&self.proc_text("self/mountinfo"));
        let mount = all.iter().find(|mount| {
            // A file system on several disks has a number of its own.
            found.numbers.contains(&mount.number) || found.is_named(&mount.source)
        })?;
        Some((
            format!("{} is mounted on {}", mount.source, mount.point),
            format!("unmount it: umount {}", mount.point),
        ))
    }

    fn swap(&self, found: &Found) -> Option<Use> {
        let all = swaps(&self.proc_text("swaps"));
        let swap = all.into_iter().find(|swap| found.is_named(swap))?;
        Some((
            format!("{swap} is swap space of this computer"),
            format!("turn it off: swapoff {swap}"),
        ))
    }

    fn holder(&self, found: &Found) -> Option<Use> {
        let partitions = found
            .names
            .iter()
            .skip(1)
            .map(|name| found.folder.join(name));
        let folders = std::iter::once(found.folder.clone()).chain(partitions);
        let holders = folders.flat_map(|folder| entries(&folder.join("holders")));
        let holder = holders.map(|path| name_of(&path)).next()?;
        Some((
            format!("/dev/{holder} (encryption, RAID or a logical volume) uses the disk"),
            format!("close /dev/{holder}"),
        ))
    }

    fn loop_device(&self, found: &Found) -> Option<Use> {
        let find = || {
            let mut all = self.loops().into_iter();
            all.find(|(_, file)| found.is_named(file))
        };
        // The loop devices of a killed run disappear a moment after it.
        let mut left = find()?;
        for _ in 0..LOOP_CHECKS {
            std::thread::sleep(LOOP_INTERVAL);
            left = find()?;
        }
        let (folder, file) = left;
        let name = name_of(&folder);
        Some((
            format!("/dev/{name} is a loop device on {file}"),
            format!("end the program that uses it, or detach it: losetup -d /dev/{name}"),
        ))
    }

    /// Returns a use of the file or device behind a loop device, perhaps through another loop device.
    fn behind(&self, found: &Found) -> Option<Use> {
        let file = backing_file(&found.folder)?;
        let swaps = swaps(&self.proc_text("swaps"));
        if swaps.iter().any(|swap| is_same(swap, &file)) {
            return Some((
                format!("{file}, which is behind it, is swap space of this computer"),
                format!("turn it off: swapoff {file}"),
            ));
        }
        let device = block_device_number(&file).and_then(|number| {
            let folder = fs::canonicalize(self.sys.join("dev/block").join(number)).ok()?;
            self.first_use(&Found::at(&file, folder))
        });
        if let Some((by, remedy)) = device {
            return Some((format!("{file} is behind it, and {by}"), remedy));
        }
        let siblings = self.on_same_file(found).into_iter();
        let mut used = siblings.filter_map(|sibling| {
            let own = self.mounted(&sibling).or_else(|| self.swap(&sibling));
            let own = own.or_else(|| self.holder(&sibling));
            let own = own.or_else(|| self.loop_device(&sibling));
            own.map(|(by, remedy)| (in_words(&sibling.device, &file, &by), remedy))
        });
        used.next()
    }

    /// Returns the other loop devices on the file of a loop device, with any offset, and the names that a refusal gives them.
    pub(crate) fn siblings(&self, found: &Found) -> Vec<(String, String)> {
        let file = backing_file(&found.folder).unwrap_or_default();
        let all = self.on_same_file(found).into_iter();
        all.map(|sibling| (sibling.device, file.clone())).collect()
    }

    /// Returns the files and devices that store the data of a disk, below any number of loop devices, logical volumes and
    /// partitions.
    pub fn files_behind(&self, device: &str) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut numbers: Vec<_> = block_device_number(device).into_iter().collect();
        while let Some(number) = numbers.pop() {
            for number in self.below(&number) {
                let link = self.sys.join("dev/block").join(number);
                let Ok(folder) = fs::canonicalize(link) else {
                    continue;
                };
                let disk = folder.parent().unwrap_or(&folder);
                if let Some(file) = backing_file(&folder).or_else(|| backing_file(disk)) {
                    numbers.extend(block_device_number(&file));
                    files.push(file.into());
                }
            }
        }
        files
    }

    fn on_same_file(&self, found: &Found) -> Vec<Found> {
        let Some(own_file) = backing_file(&found.folder) else {
            return Vec::new();
        };
        let others = self.loops().into_iter().filter(|(folder, file)| {
            !found.names.contains(&name_of(folder)) && is_same(file, &own_file)
        });
        others
            .filter_map(|(folder, _)| {
                let folder = fs::canonicalize(folder).ok()?;
                Some(Found::at(&format!("/dev/{}", name_of(&folder)), folder))
            })
            .collect()
    }

    /// Returns folder and backing file of all loop devices that have one.
    fn loops(&self) -> Vec<(PathBuf, String)> {
        let blocks = entries(&self.sys.join("block")).into_iter();
        blocks
            .filter_map(|folder| backing_file(&folder).map(|file| (folder, file)))
            .collect()
    }

    /// Reads a file below `/proc`; empty if it cannot be read.
    pub(crate) fn proc_text(&self, name: &str) -> String {
        let bytes = fs::read(self.proc.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Found {
    /// Returns the device in a folder of sysfs, with its partitions.
    fn at(device: &str, folder: PathBuf) -> Found {
        let children = folders(&folder).into_iter();
        let partitions = children.filter(|path| path.join("partition").exists());
        let all: Vec<PathBuf> = std::iter::once(folder.clone()).chain(partitions).collect();
        Found {
            device: device.to_string(),
            names: all.iter().map(|path| name_of(path)).collect(),
            numbers: all
                .iter()
                .filter_map(|path| text(&path.join("dev")))
                .collect(),
            folder,
        }
    }

    /// Returns true if a path names the disk or one of its partitions, perhaps through a link.
    fn is_named(&self, path: &str) -> bool {
        let real = fs::canonicalize(path).unwrap_or(PathBuf::from(path));
        let is_device = |path: &Path| path.parent() == Some(Path::new("/dev"));
        is_device(&real) && self.names.contains(&name_of(&real))
    }
}

/// States that a loop device shares its file with another one, and how that one is used.
pub(crate) fn in_words(sibling: &str, file: &str, by: &str) -> String {
    format!("{sibling} is a loop device on the same file ({file}), and {by}")
}

/// Returns the file or device behind a loop device.
fn backing_file(folder: &Path) -> Option<String> {
    let bytes = fs::read(folder.join("loop/backing_file")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.trim_end_matches('\n').to_string())
}

/// Returns true if two paths lead to the same file. A file that cannot be found, because it was deleted for example, is
/// known by its path only.
fn is_same(a: &str, b: &str) -> bool {
    let number = |path: &str| fs::metadata(path).ok().map(|file| identity(&file));
    a == b || number(a).is_some_and(|a| number(b) == Some(a))
}

pub(crate) fn block_device_number(path: &str) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    let (major, minor) = device_number(&metadata);
    is_block_device(&metadata).then(|| format!("{major}:{minor}"))
}

pub(crate) fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let mut paths = entries(folder);
    paths.retain(|path| path.is_dir());
    paths
}
