//! File descriptors that the server leaves to the recorder, which needs some whenever it begins a file.
//!
//! The system assigns the lowest free number. A server that gives back every number from the ceiling on therefore never
//! holds the last descriptors, whatever its clients do:
//!
//! ```text
//!   0 ──── sockets and files ──── socket ceiling ── files ── ceiling ── recorder only ── RLIMIT_NOFILE
//! ```

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::Dir;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that the server leaves to the recorder. A recorder opens up to 8 files in advance, and their folders.
const SPARED: u64 = 48;
/// Descriptors below those that sockets leave to files.
const FOR_FILES: u64 = 32;
/// Descriptors that the server needs at most, with all connections and the recorder.
const WANTED: u64 = 4096;

/// Raises the soft limit of this process as far as the server can use it and the hard limit permits.
pub fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = limit.maximum.map_or(WANTED, |maximum| maximum.min(WANTED));
    if limit.current.is_some_and(|current| current < raised) {
        let current = Some(raised);
        // If this fails, there are fewer connections.
        let _ = setrlimit(Resource::Nofile, Rlimit { current, ..limit });
    }
}

/// Returns a descriptor that the server may hold.
///
/// # Errors
/// [`Errno::MFILE`] if only those for the recorder are left.
pub fn checked(descriptor: OwnedFd) -> Result<OwnedFd, Errno> {
    check(descriptor.as_fd())?;
    Ok(descriptor)
}

/// Begins to read the entries of a directory, through a descriptor of its own.
///
/// # Errors
/// As [`checked`], and errors of the system.
pub fn entries_of(directory: &OwnedFd) -> Result<Dir, Errno> {
    let entries = Dir::read_from(directory)?;
    check(entries.fd()?)?;
    Ok(entries)
}

fn check(descriptor: BorrowedFd) -> Result<(), Errno> {
    match number(descriptor) < ceiling() {
        true => Ok(()),
        false => Err(Errno::MFILE),
    }
}

/// Returns true if a connection may keep its socket.
pub fn permits_socket(socket: BorrowedFd) -> bool {
    let ceiling = ceiling();
    number(socket) < ceiling - FOR_FILES.min(ceiling / 4)
}

fn number(descriptor: BorrowedFd) -> u64 {
    descriptor.as_raw_fd().unsigned_abs().into()
}

/// Returns the first number that the server leaves to the recorder.
fn ceiling() -> u64 {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(WANTED);
    limit - SPARED.min(limit / 2)
}
