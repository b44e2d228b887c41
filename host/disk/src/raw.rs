//! A whole disk that this process has for itself.

use crate::system::{Found, System, in_words};
use crate::{DiskError, Identity, Medium, Resized};
use cardiograph_system::{Flag, Positioned, device_number, drop_from_cache, is_block_device};
use std::fs::{File, Metadata, OpenOptions};
use std::io;

/// A whole disk, held exclusively from [`RawDisk::open`] until it is dropped.
///
/// `O_EXCL` keeps other programs from mounting it, from using it as swap, and from opening it in the same way. Reads
/// and writes bypass the page cache.
pub struct RawDisk {
    system: System,
    identity: Identity,
    /// Device number, such as `8:16`.
    number: String,
    /// Keeps the disk exclusive.
    held: File,
    /// Keep other loop devices on the same file exclusive.
    _siblings_held: Vec<File>,
    /// File for reads and writes.
    file: File,
    access: Access,
}

/// Permission of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Reading,
    Destroying,
}

impl RawDisk {
    /// Opens a whole disk for reading. Refuses partitions, and disks that anything uses.
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn open(system: &System, device: &str) -> Result<RawDisk, DiskError> {
        let number = block_device_number(device)?;
        let found = system.find(device, &number)?;
        system.check_unused(&found)?;
        let held = open(device, &[Flag::BypassCache, Flag::Exclusively], false)?;
        let file = held
            .try_clone()
            .map_err(|error| DiskError::io(device, error))?;
        let disk = RawDisk {
            identity: system.identity(&found),
            system: system.clone(),
            number,
            held,
            _siblings_held: hold_siblings(system, &found)?,
            file,
            access: Access::Reading,
        };
        disk.check_numbers()?;
        Ok(disk)
    }

    /// Returns the identity of the disk, as read when it was opened.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Permits writing, if `named` is the name of the disk again. Repeats every check, and compares the identity
    /// with the one read before.
    ///
    /// # Errors
    /// [`DiskError`]; nothing has been written then.
    pub fn destroy(self, named: &str) -> Result<RawDisk, DiskError> {
        let device = self.identity.device.clone();
        if named != device {
            return Err(DiskError::OtherName {
                path: device,
                named: named.to_string(),
            });
        }
        self.check_unchanged()?;
        let found = self.system.find(&device, &self.number)?;
        self.system.check_unused(&found)?;
        if crate::identity::text(&found.folder.join("ro")).as_deref() == Some("1") {
            return Err(DiskError::ReadOnly { path: device });
        }
        // The first file keeps the disk exclusive; the second one need not be exclusive to write.
        let file = open(&device, &[Flag::BypassCache], true)?;
        let disk = RawDisk {
            file,
            access: Access::Destroying,
            ..self
        };
        disk.check_unchanged()?;
        Ok(disk)
    }

    /// Returns an error if the disk is no longer the one that was opened.
    ///
    /// # Errors
    /// [`DiskError::Exchanged`], or [`DiskError::NotADisk`] if it has vanished.
    pub fn check_unchanged(&self) -> Result<(), DiskError> {
        self.check_numbers()?;
        let found = self.system.find(&self.identity.device, &self.number)?;
        match self.identity.difference(&self.system.identity(&found)) {
            None => Ok(()),
            Some(what) => Err(DiskError::Exchanged {
                path: self.identity.device.clone(),
                what,
            }),
        }
    }

    /// Returns true if the kernel no longer knows the disk.
    pub fn has_vanished(&self) -> bool {
        let found = self.system.find(&self.identity.device, &self.number);
        found.is_err_and(|error| !matches!(error, DiskError::Io { .. }))
    }

    /// Returns both capacities if the kernel now reports another one than when the disk was opened.
    pub fn resized(&self) -> Option<Resized> {
        let found = self.system.find(&self.identity.device, &self.number).ok()?;
        let resized = Resized {
            before_bytes: self.identity.capacity_bytes,
            now_bytes: self.system.identity(&found).capacity_bytes,
        };
        (resized.before_bytes != resized.now_bytes).then_some(resized)
    }

    fn check_numbers(&self) -> Result<(), DiskError> {
        let device = &self.identity.device;
        for file in [&self.held, &self.file] {
            let metadata = file.metadata();
            let metadata = metadata.map_err(|error| DiskError::io(device, error))?;
            let number = number_of(&metadata);
            if number != self.number {
                return Err(DiskError::Exchanged {
                    path: device.clone(),
                    what: format!("its device number was {} and is {number}", self.number),
                });
            }
        }
        Ok(())
    }
}

impl Medium for RawDisk {
    fn capacity_bytes(&self) -> u64 {
        self.identity.capacity_bytes
    }

    fn block_bytes(&self) -> u32 {
        self.identity.block_bytes
    }

    #[inline]
    fn read_at(&mut self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset_bytes)
    }

    #[inline]
    fn write_at(&mut self, offset_bytes: u64, data: &[u8]) -> io::Result<()> {
        if self.access != Access::Destroying {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.file.write_all_at(data, offset_bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.access == Access::Destroying {
            self.file.sync_data()?;
        }
        // O_DIRECT leaves nothing in the page cache; other programs may have.
        let _ = drop_from_cache(&self.file);
        Ok(())
    }
}

/// Opens the other loop devices on the file of a loop device exclusively: each could change the content of this one.
fn hold_siblings(system: &System, found: &Found) -> Result<Vec<File>, DiskError> {
    let mut held = Vec::new();
    for (sibling, file) in system.siblings(found) {
        match open(&sibling, &[Flag::Exclusively], false) {
            Ok(open) => held.push(open),
            Err(DiskError::InUse { by, remedy, .. }) => {
                return Err(DiskError::InUse {
                    path: found.device.clone(),
                    by: in_words(&sibling, &file, &by),
                    remedy,
                });
            }
            // It has just been detached.
            Err(_) => {}
        }
    }
    Ok(held)
}

fn open(device: &str, flags: &[Flag], writable: bool) -> Result<File, DiskError> {
    let mut options = OpenOptions::new();
    options.read(true).write(writable);
    cardiograph_system::set(&mut options, flags);
    options.open(device).map_err(|error| match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => DiskError::ReadOnly {
            path: device.to_string(),
        },
        _ => DiskError::io(device, error),
    })
}

fn block_device_number(device: &str) -> Result<String, DiskError> {
    let metadata = std::fs::metadata(device);
    let metadata = metadata.map_err(|error| DiskError::io(device, error))?;
    match is_block_device(&metadata) {
        true => Ok(number_of(&metadata)),
        false => Err(DiskError::NotADisk {
            path: device.to_string(),
        }),
    }
}

fn number_of(device: &Metadata) -> String {
    let (major, minor) = device_number(device);
    format!("{major}:{minor}")
}
