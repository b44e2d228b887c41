//! A FUSE file system with the single file `disk`, served by a thread of the test. Only what a loop device needs of the
//! protocol (linux/fuse.h, version 7.31) is here.

use rustix::fs::OFlags;
use rustix::mount::{MountFlags, UnmountFlags};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

/// Contents of the file.
pub trait Disk: Send + 'static {
    /// Length of the file in bytes.
    fn bytes(&self) -> u64;
    /// Fills `buffer` from `offset_bytes`; an error is a number of errno.
    fn read(&mut self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), i32>;
    /// Stores `data` at `offset_bytes`.
    fn write(&mut self, offset_bytes: u64, data: &[u8]) -> Result<(), i32>;
}

/// A mounted file system; unmounted when dropped.
pub struct Mounted {
    folder: PathBuf,
    server: Option<JoinHandle<()>>,
}

const DISK_NODE: u64 = 2;
const DATA_BYTES_MAX: usize = 1 << 20;
const HEADER_BYTES: usize = 40;
const ENOENT: i32 = 2;
const ENOSYS: i32 = 38;

impl Mounted {
    /// Mounts on an empty folder. Returns `None` if this computer has no FUSE, or does not permit it.
    pub fn at(folder: &Path, disk: impl Disk) -> Option<Mounted> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let flags = OFlags::CLOEXEC.bits() as i32;
        let Ok(channel) = options.custom_flags(flags).open("/dev/fuse") else {
            super::skipped("no /dev/fuse for this user: FUSE is not tested");
            return None;
        };
        let data = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0,allow_other",
            channel.as_raw_fd()
        );
        let data = CString::new(data).unwrap();
        let mounted = rustix::mount::mount("disk", folder, "fuse", MountFlags::empty(), &*data);
        if mounted.is_err() {
            super::skipped("FUSE cannot be mounted by this user: it is not tested");
            return None;
        }
        let server = std::thread::spawn(move || serve(channel, disk));
        Some(Mounted {
            folder: folder.to_path_buf(),
            server: Some(server),
        })
    }

    /// Returns the path of the file.
    pub fn disk(&self) -> PathBuf {
        self.folder.join("disk")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.folder, UnmountFlags::DETACH);
        // The server ends when the last user of the file has closed it.
        if let Some(server) = self.server.take().filter(JoinHandle::is_finished) {
            let _ = server.join();
        }
    }
}

fn serve(mut channel: File, mut disk: impl Disk) {
    let mut request = vec![0; DATA_BYTES_MAX + 4096];
    loop {
        let length = match channel.read(&mut request) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // A request that was withdrawn before it was read.
            Err(error) if error.raw_os_error() == Some(ENOENT) => continue,
            // The file system was unmounted.
            Err(_) => return,
        };
        let Some(response) = respond(&request[..length], &mut disk) else {
            continue;
        };
        let (error, body) = match response {
            Ok(body) => (0, body),
            Err(number) => (-number, Vec::new()),
        };
        let mut reply = Vec::with_capacity(16 + body.len());
        reply.extend((16 + body.len() as u32).to_le_bytes());
        reply.extend(error.to_le_bytes());
        // The number of the request.
        reply.extend(&request[8..16]);
        reply.extend(body);
        if channel.write_all(&reply).is_err() {
            return;
        }
    }
}

/// Returns the body of the response, or `None` for requests that have none.
fn respond(request: &[u8], disk: &mut impl Disk) -> Option<Result<Vec<u8>, i32>> {
    let word = |at: usize| u32::from_le_bytes(request[at..at + 4].try_into().unwrap());
    let long = |at: usize| u64::from_le_bytes(request[at..at + 8].try_into().unwrap());
    let (code, node) = (word(4), long(16));
    let body = &request[HEADER_BYTES..];
    let response = match code {
        // FORGET, INTERRUPT and BATCH_FORGET.
        2 | 36 | 42 => return None,
        // LOOKUP
        1 if body == b"disk\0" => {
            let mut entry = longs(&[DISK_NODE, 0, 3600, 3600, 0]);
            entry.extend(attributes(DISK_NODE, disk.bytes()));
            Ok(entry)
        }
        1 => Err(ENOENT),
        // GETATTR and SETATTR
        3 | 4 => {
            let mut reply = longs(&[3600, 0]);
            reply.extend(attributes(node, disk.bytes()));
            Ok(reply)
        }
        // OPEN and OPENDIR: every access reaches this server (FOPEN_DIRECT_IO).
        14 | 27 => Ok([longs(&[0]), words(&[1, 0])].concat()),
        // READ
        15 => {
            let offset_bytes = long(HEADER_BYTES + 8);
            let left = disk.bytes().saturating_sub(offset_bytes);
            let wanted = u64::from(word(HEADER_BYTES + 16)).min(left);
            let mut data = vec![0; wanted as usize];
            disk.read(offset_bytes, &mut data).map(|()| data)
        }
        // WRITE
        16 => {
            let length = word(HEADER_BYTES + 16);
            let written = disk.write(long(HEADER_BYTES + 8), &body[40..40 + length as usize]);
            written.map(|()| words(&[length, 0]))
        }
        // STATFS
        17 => Ok([
            longs(&[1 << 30; 5]),
            words(&[4096, 255, 4096, 0, 0, 0, 0, 0, 0, 0]),
        ]
        .concat()),
        // RELEASE, FSYNC, FLUSH, RELEASEDIR, ACCESS, DESTROY
        18 | 20 | 25 | 29 | 34 | 38 => Ok(Vec::new()),
        // INIT: version 7.31, large writes and up to 256 pages.
        26 => {
            let flags = 1 << 5 | 1 << 22;
            let mut reply = words(&[7, 31, 0, flags]);
            reply.extend(words(&[0, DATA_BYTES_MAX as u32, 1, 256, 0]));
            reply.extend(words(&[0; 7]));
            Ok(reply)
        }
        _ => Err(ENOSYS),
    };
    Some(response)
}

fn attributes(node: u64, bytes: u64) -> Vec<u8> {
    let (mode, length) = match node {
        DISK_NODE => (0o100_600, bytes),
        _ => (0o040_755, 0),
    };
    let mut attributes = longs(&[node, length, length / 512, 0, 0, 0]);
    attributes.extend(words(&[0, 0, 0, mode, 1, 0, 0, 0, 4096, 0]));
    attributes
}

fn longs(values: &[u64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

fn words(values: &[u32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}
