//! A FUSE file system whose files have a second, unlisted name, as on FAT. It refuses changes, and counts them. Only what
//! a file server needs of the protocol (linux/fuse.h, version 7.31) is here.

use rustix::fs::OFlags;
use rustix::mount::{MountFlags, UnmountFlags};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Listed name, unlisted name and contents of a file in the root directory.
pub type Named = (&'static str, &'static str, &'static str);

/// A mounted file system; unmounted when dropped.
pub struct Mounted {
    folder: PathBuf,
    changes: Arc<AtomicU32>,
}

const ROOT: u64 = 1;
const HEADER_BYTES: usize = 40;
const ENOENT: i32 = 2;
const EROFS: i32 = 30;
const ENOSYS: i32 = 38;

impl Mounted {
    /// Mounts on an empty folder. Returns `None` if this computer has no FUSE, or does not permit it.
    pub fn at(folder: &Path, files: &'static [Named]) -> Option<Mounted> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let flags = OFlags::CLOEXEC.bits() as i32;
        let channel = options.custom_flags(flags).open("/dev/fuse");
        let mounted = channel.and_then(|channel| {
            let data = format!(
                "fd={},rootmode=40000,user_id=0,group_id=0,allow_other",
                channel.as_raw_fd()
            );
            let data = CString::new(data).unwrap();
            rustix::mount::mount("names", folder, "fuse", MountFlags::empty(), &*data)?;
            Ok(channel)
        });
        let Ok(channel) = mounted else {
            // This reaches the terminal even if the test passes.
            let why = b"FUSE cannot be mounted by this user: it is not tested\n";
            let _ = io::stderr().write_all(why);
            return None;
        };
        let changes = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&changes);
        std::thread::spawn(move || serve(channel, files, &counter));
        Some(Mounted {
            folder: folder.to_path_buf(),
            changes,
        })
    }

    /// Returns the number of changes that were requested.
    pub fn changes(&self) -> u32 {
        self.changes.load(Ordering::Relaxed)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.folder, UnmountFlags::DETACH);
    }
}

fn serve(mut channel: File, files: &[Named], changes: &AtomicU32) {
    let mut request = vec![0; 1 << 17];
    loop {
        let length = match channel.read(&mut request) {
            Ok(length) => length,
            // Also for a request that was withdrawn before it was read.
            Err(error)
                if error.kind() == io::ErrorKind::Interrupted
                    || error.raw_os_error() == Some(ENOENT) =>
            {
                continue;
            }
            // The file system was unmounted.
            Err(_) => return,
        };
        let Some(response) = respond(&request[..length], files, changes) else {
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
fn respond(request: &[u8], files: &[Named], changes: &AtomicU32) -> Option<Result<Vec<u8>, i32>> {
    let word = |at: usize| u32::from_le_bytes(request[at..at + 4].try_into().unwrap());
    let long = |at: usize| u64::from_le_bytes(request[at..at + 8].try_into().unwrap());
    let (code, node) = (word(4), long(16));
    let body = &request[HEADER_BYTES..];
    let part = |bytes: &[u8]| {
        let begin = bytes.len().min(long(HEADER_BYTES + 8) as usize);
        let end = bytes.len().min(begin + word(HEADER_BYTES + 16) as usize);
        bytes[begin..end].to_vec()
    };
    let contents = |node: u64| {
        files
            .get((node - ROOT - 1) as usize)
            .map_or("", |file| file.2)
    };
    let response = match code {
        // FORGET, INTERRUPT and BATCH_FORGET.
        2 | 36 | 42 => return None,
        // LOOKUP, without regard to case
        1 => {
            let name = str::from_utf8(&body[..body.len() - 1]).unwrap_or_default();
            let is_it = |file: &Named| {
                [file.0, file.1]
                    .iter()
                    .any(|one| one.eq_ignore_ascii_case(name))
            };
            match files.iter().position(is_it) {
                Some(at) => {
                    let node = ROOT + 1 + at as u64;
                    let mut entry = longs(&[node, 0, 0, 0, 0]);
                    entry.extend(attributes(node, contents(node)));
                    Ok(entry)
                }
                None => Err(ENOENT),
            }
        }
        // GETATTR
        3 => {
            let of_file = if node == ROOT { "" } else { contents(node) };
            Ok([longs(&[0, 0]), attributes(node, of_file)].concat())
        }
        // OPEN and OPENDIR: every access reaches this server (FOPEN_DIRECT_IO).
        14 | 27 => Ok([longs(&[0]), words(&[1, 0])].concat()),
        // READ
        15 => Ok(part(contents(node).as_bytes())),
        // READDIR: all entries at once, then none.
        28 if long(HEADER_BYTES + 8) > 0 => Ok(Vec::new()),
        28 => Ok(entries(files)),
        // STATFS
        17 => Ok([
            longs(&[1 << 30; 5]),
            words(&[4096, 255, 4096, 0, 0, 0, 0, 0, 0, 0]),
        ]
        .concat()),
        // RELEASE, FSYNC, FLUSH, RELEASEDIR, DESTROY
        18 | 20 | 25 | 29 | 38 => Ok(Vec::new()),
        // INIT
        26 => {
            let mut reply = words(&[7, 31, 0, 0, 0, 1 << 16, 1, 0]);
            reply.extend(words(&[0; 8]));
            Ok(reply)
        }
        // SETATTR, SYMLINK, MKNOD, MKDIR, UNLINK, RMDIR, RENAME, LINK, WRITE, CREATE, RENAME2
        4 | 6 | 8..=13 | 16 | 35 | 45 => {
            changes.fetch_add(1, Ordering::Relaxed);
            Err(EROFS)
        }
        _ => Err(ENOSYS),
    };
    Some(response)
}

/// Returns the listed names in the form of READDIR.
fn entries(files: &[Named]) -> Vec<u8> {
    let mut all = Vec::new();
    for (at, (name, ..)) in files.iter().enumerate() {
        const REGULAR: u32 = 8;
        all.extend(longs(&[ROOT + 1 + at as u64, 1 + at as u64]));
        all.extend(words(&[name.len() as u32, REGULAR]));
        all.extend(name.as_bytes());
        all.resize(all.len().next_multiple_of(8), 0);
    }
    all
}

fn attributes(node: u64, contents: &str) -> Vec<u8> {
    let mode = if node == ROOT { 0o040_755 } else { 0o100_600 };
    let mut attributes = longs(&[node, contents.len() as u64, 1, 0, 0, 0]);
    attributes.extend(words(&[0, 0, 0, mode, 1, 0, 0, 0, 4096, 0]));
    attributes
}

fn longs(values: &[u64]) -> Vec<u8> {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes());
    bytes.collect()
}

fn words(values: &[u32]) -> Vec<u8> {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes());
    bytes.collect()
}
