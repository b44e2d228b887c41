//! Mounted file systems that no other process sees.

use rustix::mount::{
    FsMountFlags, FsOpenFlags, FsPickFlags, MountAttrFlags, fsconfig_create, fsconfig_reconfigure,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, fspick,
};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

/// A mounted file system that belongs to this process alone.
///
/// It is in a mount namespace of its own (fsmount(2)), has no mount point, and ends when it is dropped or when the
/// process dies, even by SIGKILL.
pub struct Mount {
    root: OwnedFd,
}

impl Mount {
    /// Mounts the file system on a block device. With `is_synchronous`, every write waits for the device.
    ///
    /// # Errors
    /// Those of the system; `ENODEV` if the kernel does not know the file system.
    pub fn new(file_system: &str, device: &str, is_synchronous: bool) -> io::Result<Mount> {
        let context = fsopen(file_system, FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_set_string(&context, "source", device)?;
        if is_synchronous {
            fsconfig_set_flag(&context, "sync")?;
        }
        fsconfig_create(&context)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let root = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
        Ok(Mount { root })
    }

    /// Returns a path to the root folder, which only this process can use.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/", self.root.as_raw_fd()))
    }

    /// Makes the file system read-only, which writes all data to the device, or writable again.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remount(&self, is_read_only: bool) -> io::Result<()> {
        let flags = FsPickFlags::FSPICK_CLOEXEC | FsPickFlags::FSPICK_EMPTY_PATH;
        let context = fspick(&self.root, "", flags)?;
        fsconfig_set_flag(&context, if is_read_only { "ro" } else { "rw" })?;
        Ok(fsconfig_reconfigure(&context)?)
    }
}

/// Returns true if the kernel has a file system, perhaps after loading a module.
///
/// # Errors
/// Those of the system, for example without permission to mount.
pub fn has_file_system(name: &str) -> io::Result<bool> {
    match fsopen(name, FsOpenFlags::FSOPEN_CLOEXEC) {
        Ok(_) => Ok(true),
        Err(rustix::io::Errno::NODEV) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
