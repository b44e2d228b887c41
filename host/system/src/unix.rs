//! Linux, and other systems with its file operations.

use crate::rename::link_or_reserve;
use crate::{Computer, Flag, Space};
use rustix::fs::{
    Advice, CWD, FallocateFlags, OFlags, RenameFlags, SeekFrom, StatVfs, fallocate, renameat_with,
    statvfs,
};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
pub use std::os::unix::fs::FileExt as Positioned;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// Adds flags to the options.
pub fn set(options: &mut OpenOptions, flags: &[Flag]) {
    options.custom_flags(bits_of(flags).bits() as i32);
}

pub(crate) fn bits_of(flags: &[Flag]) -> OFlags {
    let bits = flags.iter().map(|flag| match flag {
        Flag::BypassCache => OFlags::DIRECT,
        Flag::WriteThrough => OFlags::DSYNC,
        Flag::NotThroughLinks => OFlags::NOFOLLOW,
        Flag::Exclusively => OFlags::EXCL,
    });
    bits.collect()
}

/// Drops a file from the page cache; the kernel begins to write what is dirty.
///
/// # Errors
/// Those of the system.
pub fn drop_from_cache(file: &File) -> io::Result<()> {
    Ok(rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?)
}

/// Renames a file.
///
/// # Errors
/// [`AlreadyExists`](io::ErrorKind::AlreadyExists) if the new name exists, and those of the system.
pub fn rename_without_replacing(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems do not support RENAME_NOREPLACE.
        Err(Errno::INVAL | Errno::NOSYS) => link_or_reserve(from, to),
        renamed => Ok(renamed?),
    }
}

/// Extends a file to the given length, and allocates its blocks if the file system supports this.
///
/// # Errors
/// Those of the system.
pub fn preallocate(file: &File, bytes: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => file.set_len(bytes),
        done => Ok(done?),
    }
}

/// Returns the space of the file system that holds a directory.
///
/// # Errors
/// Those of the system.
pub fn space(directory: &Path) -> io::Result<Space> {
    Ok(space_of(&statvfs(directory)?))
}

pub(crate) fn space_of(found: &StatVfs) -> Space {
    Space {
        free_bytes: found.f_bavail.saturating_mul(found.f_frsize),
        total_bytes: found.f_blocks.saturating_mul(found.f_frsize),
    }
}

/// Returns the present path of an open file, if the system knows it.
pub(crate) fn path_of(file: &File) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
}

/// Returns numbers that no other file on this computer has: those of the device and of the inode.
pub fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Returns true for a block device.
pub fn is_block_device(metadata: &Metadata) -> bool {
    metadata.file_type().is_block_device()
}

/// Returns major and minor number of a device.
pub fn device_number(metadata: &Metadata) -> (u32, u32) {
    let device = metadata.rdev();
    (rustix::fs::major(device), rustix::fs::minor(device))
}

/// Returns true if a device has no medium: an empty card reader, for example.
pub fn is_without_medium(error: &io::Error) -> bool {
    errno(error) == Some(Errno::NOMEDIUM)
}

/// Returns true for errors of a whole device rather than of one of its blocks.
pub fn is_of_whole_device(error: &io::Error) -> bool {
    let whole = [Errno::NODEV, Errno::NXIO, Errno::NOMEDIUM, Errno::INVAL];
    errno(error).is_some_and(|errno| whole.contains(&errno))
}

/// Returns true for errors that a medium or its connection causes, and not this computer: EIO, data that cannot be read,
/// a device that has vanished.
pub fn is_of_medium(error: &io::Error) -> bool {
    // The errors of the block layer (block/blk-core.c), of vanished devices, and of file systems that find wrong data.
    const OF_MEDIUM: [Errno; 12] = [
        Errno::IO,
        Errno::NODATA,
        Errno::REMOTEIO,
        Errno::ILSEQ,
        Errno::NOLINK,
        Errno::TIMEDOUT,
        Errno::BADE,
        Errno::NODEV,
        Errno::NXIO,
        Errno::NOMEDIUM,
        Errno::BADMSG,
        Errno::UCLEAN,
    ];
    match errno(error) {
        Some(errno) => OF_MEDIUM.contains(&errno),
        // A disk that ends before the offset.
        None => matches!(
            error.kind(),
            io::ErrorKind::UnexpectedEof | io::ErrorKind::WriteZero
        ),
    }
}

/// Starts a program in a process group of its own: Ctrl-C in a terminal does not reach it.
pub fn in_own_group(command: &mut Command) {
    command.process_group(0);
}

/// Kills a program that was started with [`in_own_group`], and the programs that it has started.
///
/// # Errors
/// Those of the system.
pub fn kill_group(child: &mut Child) -> io::Result<()> {
    Ok(kill_process_group(Pid::from_child(child), Signal::KILL)?)
}

/// Returns true if the program that started this one has it ignore SIGHUP, as nohup(1) does. Known on Linux only.
pub fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignores(&status, Signal::HUP.as_raw())
}

fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Bit 0 stands for signal 1.
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Returns a path to an open folder that stays valid if the folder is renamed. Known on Linux only.
pub fn path_of_open(folder: &File) -> Option<PathBuf> {
    let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    path.exists().then_some(path)
}

fn errno(error: &io::Error) -> Option<Errno> {
    error.raw_os_error().map(Errno::from_raw_os_error)
}

/// Makes the names in a directory durable.
///
/// # Errors
/// Those of the system.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Makes all files of the file system that holds this one durable.
///
/// # Errors
/// Those of the system.
pub fn sync_file_system(file: &File) -> io::Result<()> {
    Ok(rustix::fs::syncfs(file)?)
}

/// Returns the offset of the next data from an offset, or `None` if only a hole follows. File systems that do not
/// report holes have data everywhere.
///
/// # Errors
/// Those of the system.
pub fn next_data(file: &File, offset_bytes: u64) -> io::Result<Option<u64>> {
    match rustix::fs::seek(file, SeekFrom::Data(offset_bytes)) {
        Ok(data) => Ok(Some(data)),
        Err(Errno::NXIO) => Ok(None),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(Some(offset_bytes)),
        Err(error) => Err(error.into()),
    }
}

/// Returns the names of this computer.
pub fn computer() -> Computer {
    let system = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    Computer {
        name: text(system.nodename()),
        system: [system.sysname(), system.release(), system.machine()]
            .map(text)
            .join(" "),
    }
}

/// Returns the cores that this process may use.
pub fn allowed_cores() -> Vec<usize> {
    match sched_getaffinity(None) {
        Ok(allowed) => (0..CpuSet::MAX_CPU)
            .filter(|&core| allowed.is_set(core))
            .collect(),
        Err(_) => Vec::new(),
    }
}

/// Runs the calling thread on one core from now on. Without permission, it runs on any core.
pub fn pin_to_core(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    let _ = sched_setaffinity(None, &set);
}

/// Returns the time that the host of this virtual machine has taken from all of its processors together since it
/// started, or `None` if the system does not count it. It grows in steps of usually 10 ms.
pub fn steal_ns() -> Option<u64> {
    const NS_PER_S: u64 = 1_000_000_000;
    let ticks = stolen_ticks(&std::fs::read_to_string("/proc/stat").ok()?)?;
    let ticks_per_s = rustix::param::clock_ticks_per_second();
    Some(ticks.saturating_mul(NS_PER_S / ticks_per_s.max(1)))
}

/// Times that a thread was ready and waited for a processor.
pub struct RunQueue(File);

impl RunQueue {
    /// Watches the calling thread, also from other threads. Returns `None` if the system does not count these times.
    pub fn of_this_thread() -> Option<RunQueue> {
        let thread = rustix::thread::gettid().as_raw_pid();
        let path = format!("/proc/self/task/{thread}/schedstat");
        File::open(path).ok().map(RunQueue)
    }

    /// Returns the total time, up to the last time that the thread began to run.
    pub fn waited_ns(&self) -> Option<u64> {
        let mut text = [0; 80];
        let length = self.0.read_at(&mut text, 0).ok()?;
        waited_ns(std::str::from_utf8(&text[..length]).ok()?)
    }
}

/// Returns the second of the three numbers: time running, time waiting, number of times.
fn waited_ns(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the column `steal` of the line for all processors.
fn stolen_ticks(stat: &str) -> Option<u64> {
    let all = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    // user nice system idle iowait irq softirq steal
    all.split_whitespace().nth(7)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_the_second_number_of_a_thread() {
        assert_eq!(waited_ns("848775 1244531 2\n"), Some(1_244_531));
        assert_eq!(waited_ns("848775"), None);
    }

    #[test]
    fn ignored_signals_are_bits_of_a_mask() {
        let status = "Name:\ta\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000001002\n";
        assert!(ignores(status, 2) && ignores(status, 13));
        assert!(!ignores(status, 1) && !ignores(status, 3));
        assert!(!ignores("", 1));
    }

    #[test]
    fn errors_of_a_medium_differ_from_those_of_the_computer() {
        let of = |errno: Errno| is_of_medium(&errno.into());
        for errno in [Errno::IO, Errno::NODATA, Errno::NXIO, Errno::NODEV] {
            assert!(of(errno), "{errno}");
        }
        for errno in [
            Errno::NOMEM,
            Errno::MFILE,
            Errno::FBIG,
            Errno::NOENT,
            Errno::NOSPC,
            Errno::ACCESS,
        ] {
            assert!(!of(errno), "{errno}");
        }
        assert!(is_of_medium(&io::ErrorKind::UnexpectedEof.into()));
        assert!(!is_of_medium(&io::ErrorKind::PermissionDenied.into()));
    }

    #[test]
    fn steal_is_the_eighth_column_of_all_processors() {
        let stat = "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 1 1 1 1 1 1 99 1 1\n";
        assert_eq!(stolen_ticks(stat), Some(8));
        // Kernels before 2.6.11 do not count it.
        assert_eq!(stolen_ticks("cpu  1 2 3 4 5 6 7\n"), None);
        assert_eq!(stolen_ticks("intr 1 2 3 4 5 6 7 8\n"), None);
        assert_eq!(stolen_ticks(""), None);
    }
}
