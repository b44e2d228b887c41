//! Changes of names: rename, remove, create a directory.

use super::aside;
use super::room::Room;
use super::upload::{is_temporary, remove_leftover};
use crate::beneath::{Root, error_of, stem_of_part};
use crate::descriptors::{checked, entries_of};
use cardiograph_recorder::is_protected;
use cardiograph_server::Error;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, Timespec, Timestamps, UTIME_OMIT, fsync, mkdirat,
    openat, renameat, renameat_with, statat, unlinkat, utimensat,
};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Maximum number of levels below a folder that a removal or search descends into, and that clients may create. Each level
/// holds a descriptor.
pub const DEPTH_MAX: usize = 64;
/// Space that a new directory takes at most on common file systems.
const DIRECTORY_BYTES: u64 = 64 << 10;

/// Renames a file or directory; fails if the new name exists.
pub async fn rename(root: &Arc<Root>, from: &str, to: &str) -> Result<(), Error> {
    let (from_parent, from_name) = root.parent(from).await?;
    let (to_parent, to_name) = root.parent(to).await?;
    let (from_parent, to_parent) = (Arc::new(from_parent), to_parent);
    check_movable(&from_parent, from_name, levels_left(to)?).await?;
    let (from_name, to_name) = (from_name.to_string(), to_name.to_string());
    aside(move || {
        let exclusive = RenameFlags::NOREPLACE;
        match renameat_with(&from_parent, &from_name, &to_parent, &to_name, exclusive) {
            // Some file systems do not support RENAME_NOREPLACE.
            Err(Errno::INVAL | Errno::NOSYS) => {
                if statat(&to_parent, &to_name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                    return Err(Errno::EXIST);
                }
                renameat(&from_parent, &from_name, &to_parent, &to_name)?;
            }
            done => done?,
        }
        fsync(&to_parent)?;
        fsync(&from_parent)
    })
    .await
}

/// Removes a file, an empty directory, or a directory with everything in it. Refuses to remove anything that
/// clients cannot see.
pub async fn remove(root: &Arc<Root>, path: &str, is_recursive: bool) -> Result<(), Error> {
    let (parent, name) = root.parent(path).await?;
    let parent = Arc::new(parent);
    let found = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).map_err(error_of)?;
    let is_directory = match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => false,
        FileType::Directory => true,
        _ => return Err(Error::Forbidden),
    };
    if is_directory && is_recursive {
        check_removable(&parent, name).await?;
    }
    let name = name.to_string();
    aside(move || {
        match is_directory {
            true if is_recursive => remove_all(&parent, &name, DEPTH_MAX)?,
            true => unlinkat(&parent, &name, AtFlags::REMOVEDIR)?,
            false => unlinkat(&parent, &name, AtFlags::empty())?,
        }
        fsync(&parent)
    })
    .await
}

/// Creates a directory.
pub async fn make_directory(root: &Arc<Root>, room: &Arc<Room>, path: &str) -> Result<(), Error> {
    if levels_left(path)? == 0 {
        return Err(Error::TooLong);
    }
    let (parent, name) = root.parent(path).await?;
    let (name, room) = (name.to_string(), Arc::clone(room));
    aside(move || {
        let _permit = room.take(&parent, DIRECTORY_BYTES)?;
        mkdirat(&parent, &name, Mode::from_raw_mode(0o755))?;
        fsync(&parent)
    })
    .await
}

/// Sets the time of the last change of a file.
pub async fn set_modified(root: &Arc<Root>, path: &str, modified_s: u64) -> Result<bool, Error> {
    let (parent, name) = root.parent(path).await?;
    let (name, Ok(modified_s)) = (name.to_string(), i64::try_from(modified_s)) else {
        return Ok(false);
    };
    let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    aside(move || {
        let times = Timestamps {
            last_access: time(0, UTIME_OMIT),
            last_modification: time(modified_s, 0),
        };
        utimensat(&parent, &name, &times, AtFlags::SYMLINK_NOFOLLOW)?;
        // Some file systems store another time if they cannot represent this one.
        let stored = statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(stored.st_mtime == modified_s)
    })
    .await
}

/// Returns how many levels may be below a path, so that a removal of everything above it reaches them.
fn levels_left(path: &str) -> Result<usize, Error> {
    let above = path.trim_matches('/').matches('/').count();
    DEPTH_MAX.checked_sub(above).ok_or(Error::TooLong)
}

/// Refuses to move a directory with unfinished recordings in it, or with more levels than this.
async fn check_movable(parent: &Arc<OwnedFd>, name: &str, levels: usize) -> Result<(), Error> {
    let (parent, name) = (Arc::clone(parent), name.to_string());
    match aside(move || has_unfinished(&parent, &name, levels)).await? {
        true => Err(Error::Forbidden),
        false => Ok(()),
    }
}

/// Refuses to remove a directory that contains anything that clients cannot see, such as an unfinished recording.
async fn check_removable(parent: &Arc<OwnedFd>, name: &str) -> Result<(), Error> {
    let (parent, name) = (Arc::clone(parent), name.to_string());
    match aside(move || has_unseen(&parent, &name, DEPTH_MAX)).await? {
        true => Err(Error::NotEmpty),
        false => Ok(()),
    }
}

/// Returns true if a directory contains, at any depth, something that is not listed: a hidden name, a link, a pipe,
/// a device, or a name that is not UTF-8. Temporary files of uploads do not count, because they are the server's own.
fn has_unseen(parent: &OwnedFd, name: &str, depth: usize) -> Result<bool, Errno> {
    let directory = open_directory(parent, name)?;
    // The search holds one descriptor per level.
    let names = entries_of(&directory)?.map(|entry| Ok(entry?.file_name().to_owned()));
    for name in names.collect::<Result<Vec<_>, Errno>>()? {
        let Ok(name) = name.to_str() else {
            return Ok(true);
        };
        if name == "." || name == ".." || is_temporary(name) {
            continue;
        }
        let found = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let is_unseen = match FileType::from_raw_mode(found.st_mode) {
            _ if is_protected(name) => true,
            FileType::RegularFile => false,
            FileType::Directory => has_unseen(&directory, name, deeper(depth)?)?,
            _ => true,
        };
        if is_unseen {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns true if `name` is a directory with an unfinished recording in it or below it.
fn has_unfinished(parent: &OwnedFd, name: &str, depth: usize) -> Result<bool, Errno> {
    let directory = match open_directory(parent, name) {
        // A file or a link.
        Err(Errno::NOTDIR | Errno::LOOP) => return Ok(false),
        directory => directory?,
    };
    for name in names_in(&directory)? {
        let is_unfinished = stem_of_part(&name).is_some() && !is_temporary(&name);
        if is_unfinished || has_unfinished(&directory, &name, deeper(depth)?)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes what interrupted uploads left behind in a directory and below it; errors leave it there.
pub fn remove_leftovers(directory: &OwnedFd, depth: usize) {
    for name in names_in(directory).unwrap_or_default() {
        if is_temporary(&name) {
            let _ = remove_leftover(directory, &name);
        } else if let (Ok(inner), Some(depth)) =
            (open_directory(directory, &name), depth.checked_sub(1))
        {
            remove_leftovers(&inner, depth);
        }
    }
}

/// Removes a directory and everything in it. Links are removed, not followed.
fn remove_all(parent: &OwnedFd, name: &str, depth: usize) -> Result<(), Errno> {
    match open_directory(parent, name) {
        Ok(directory) => {
            for name in names_in(&directory)? {
                remove_all(&directory, &name, deeper(depth)?)?;
            }
            unlinkat(parent, name, AtFlags::REMOVEDIR)
        }
        Err(Errno::NOTDIR | Errno::LOOP) => unlinkat(parent, name, AtFlags::empty()),
        Err(error) => Err(error),
    }
}

fn deeper(depth: usize) -> Result<usize, Errno> {
    depth.checked_sub(1).ok_or(Errno::NAMETOOLONG)
}

fn open_directory(parent: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    checked(openat(parent, name, flags, Mode::empty())?)
}

/// Returns the names in a directory. Omits names that are not UTF-8, which neither the recorder nor the server creates.
fn names_in(directory: &OwnedFd) -> Result<Vec<String>, Errno> {
    let mut names = Vec::new();
    for entry in entries_of(directory)? {
        let entry = entry?;
        if let Ok(name) = entry.file_name().to_str()
            && name != "."
            && name != ".."
        {
            names.push(name.to_string());
        }
    }
    Ok(names)
}
