//! A disk that a run formats and mounts as often as it wants.
//!
//! ```text
//!   0        4 KiB             4 MiB                                       end
//!   ┌────────┬─────────────────┬───────────────────────────────────────────┐
//!   │ marker │ unused          │ region: file systems, or raw transfers    │
//!   └────────┴─────────────────┴───────────────────────────────────────────┘
//! ```
//!
//! The disk stays exclusively open from beginning to end. A file system is created on a loop device over the region,
//! which bypasses the page cache, and is mounted where only this process sees it ([`Mount`]). The loop device detaches
//! itself when its last user closes it (autoclear), so that neither survives the process. What survives is the marker.

use crate::file_system::tool;
use crate::marker::{MARKER_BYTES, Marker};
use crate::{Aligned, DiskError, FileSystem, Medium, RawDisk};
use cardiograph_system::Mount;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Begin of the region: a multiple of what allocation units of cards usually are.
pub const REGION_BEGIN_BYTES: u64 = 4 << 20;

/// Smallest disk that is formatted.
pub const SCRATCH_BYTES_MIN: u64 = 32 << 20;

/// Bytes of the region that are cleared before it is formatted and at the end: all signatures of file systems.
const CLEARED_BYTES: usize = 1 << 20;

/// A disk whose content belongs to this run.
pub struct Scratch {
    disk: RawDisk,
    marker: Marker,
}

/// A mounted file system of a [`Scratch`], unmounted when it is dropped.
pub struct Formatted {
    mount: Mount,
    // Fields are dropped in this order: the loop device goes last.
    _attached: Attached,
}

/// Failure to format, mount or clear a disk.
#[derive(Debug)]
pub enum ScratchError {
    /// The disk is not the one shown.
    Disk(DiskError),
    /// The disk is too small.
    TooSmall {
        /// Path on the command line.
        path: String,
    },
    /// An access to the disk failed.
    Io {
        /// Action that failed.
        action: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A program failed.
    Tool {
        /// Name of the program.
        name: String,
        /// Last line that it printed.
        said: String,
    },
}

impl std::error::Error for ScratchError {}

impl fmt::Display for ScratchError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            ScratchError::Disk(error) => error.fmt(f),
            ScratchError::TooSmall { path } => write!(
                f,
                "{path}: smaller than {} MiB; choose a larger disk",
                SCRATCH_BYTES_MIN >> 20
            ),
            ScratchError::Io { action, source } => write!(f, "{action}: {source}"),
            ScratchError::Tool { name, said } => write!(f, "{name}: {said}"),
        }
    }
}

impl RawDisk {
    /// Returns the marker of an interrupted run, if the disk has one.
    pub fn marker(&mut self) -> Option<Marker> {
        let mut block = Aligned::zeros(MARKER_BYTES);
        self.read_at(0, block.bytes()).ok()?;
        Marker::parse(block.bytes())
    }
}

impl Scratch {
    /// Takes a disk that may be overwritten, and writes the marker.
    ///
    /// # Errors
    /// [`ScratchError`]; unless the marker could not be written, nothing has been.
    pub fn begin(disk: RawDisk, marker: Marker) -> Result<Scratch, ScratchError> {
        if disk.capacity_bytes() < SCRATCH_BYTES_MIN {
            return Err(ScratchError::TooSmall {
                path: disk.identity().device.clone(),
            });
        }
        disk.check_unchanged().map_err(ScratchError::Disk)?;
        let mut scratch = Scratch { disk, marker };
        scratch.mark()?;
        Ok(scratch)
    }

    /// Returns the disk, for raw transfers within the region.
    pub fn disk(&mut self) -> &mut RawDisk {
        &mut self.disk
    }

    /// Returns begin and length of the region, in bytes.
    pub fn region(&self) -> (u64, u64) {
        let whole = self.disk.capacity_bytes() >> 20 << 20;
        (REGION_BEGIN_BYTES, whole - REGION_BEGIN_BYTES)
    }

    /// Names the step that the next run would report if this one were killed.
    ///
    /// # Errors
    /// [`ScratchError`].
    pub fn step(&mut self, step: &str) -> Result<(), ScratchError> {
        self.disk.check_unchanged().map_err(ScratchError::Disk)?;
        self.marker.step = step.to_string();
        self.mark()
    }

    /// Creates a file system with blocks of the given size (sectors for vfat), and mounts it.
    ///
    /// # Errors
    /// [`ScratchError`].
    pub fn format(
        &mut self,
        file_system: FileSystem,
        block_bytes: Option<u32>,
        is_synchronous: bool,
    ) -> Result<Formatted, ScratchError> {
        let name = file_system.name();
        self.step(name)?;
        self.clear_region()?;
        let (begin_bytes, length_bytes) = self.region();
        let attached = Attached::over(&self.disk.identity().device, begin_bytes, length_bytes)?;
        let program = format!("mkfs.{name}");
        let mkfs = file_system.mkfs(&attached.device, block_bytes);
        run(&program, mkfs)?;
        let mount = Mount::new(name, &attached.device, is_synchronous);
        let mount = mount.map_err(|source| ScratchError::Io {
            action: format!("mounting {name}"),
            source,
        })?;
        Ok(Formatted {
            mount,
            _attached: attached,
        })
    }

    /// Clears the signatures of the region and then the marker, so that the disk is blank.
    ///
    /// # Errors
    /// [`ScratchError`]; the marker may still be there.
    pub fn end(mut self) -> Result<RawDisk, ScratchError> {
        self.disk.check_unchanged().map_err(ScratchError::Disk)?;
        self.clear_region()?;
        self.write(0, &[0; MARKER_BYTES])?;
        Ok(self.disk)
    }

    fn mark(&mut self) -> Result<(), ScratchError> {
        self.write(0, &self.marker.block())
    }

    fn clear_region(&mut self) -> Result<(), ScratchError> {
        self.write(REGION_BEGIN_BYTES, &[0; CLEARED_BYTES])
    }

    /// Writes data, and waits until the disk has them.
    fn write(&mut self, offset_bytes: u64, data: &[u8]) -> Result<(), ScratchError> {
        let mut buffer = Aligned::zeros(data.len());
        buffer.bytes().copy_from_slice(data);
        let written = self.disk.write_at(offset_bytes, buffer.bytes());
        let written = written.and_then(|()| self.disk.flush());
        written.map_err(|source| ScratchError::Io {
            action: format!("writing byte {offset_bytes} of the disk"),
            source,
        })
    }
}

impl Formatted {
    /// Returns the path of the root folder, which only this process can use.
    pub fn path(&self) -> PathBuf {
        self.mount.path()
    }

    /// Makes the file system read-only, which writes all data to the disk, or writable again.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remount(&self, is_read_only: bool) -> io::Result<()> {
        self.mount.remount(is_read_only)
    }
}

/// A loop device that detaches itself when its last user closes it, even if this process is killed.
struct Attached {
    device: String,
    _open: File,
}

impl Attached {
    fn over(disk: &str, begin_bytes: u64, length_bytes: u64) -> Result<Attached, ScratchError> {
        // A shell of its own, which ends its work even if this process is killed meanwhile: while it has the device
        // open, detaching it only asks for that at the last close. It waits until this process has opened it, too.
        const SCRIPT: &str = r#"
            d=$("$0" --find --show --direct-io=on --offset "$1" --sizelimit "$2" "$3") || exit 1
            exec 3<"$d"; "$0" --detach "$d" && echo "$d" && cat >/dev/null"#;
        let failed = |said: String| ScratchError::Tool {
            name: String::from("losetup"),
            said,
        };
        let losetup = tool("losetup");
        let losetup = losetup.ok_or_else(|| failed(String::from("no such program; install it")))?;
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT]).arg(losetup);
        shell.args([&begin_bytes.to_string(), &length_bytes.to_string(), disk]);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = shell.spawn().map_err(|error| failed(error.to_string()))?;
        let mut device = String::new();
        if let Some(output) = &mut child.stdout {
            let _ = BufReader::new(output).read_line(&mut device);
        }
        let device = device.trim().to_string();
        let open = File::open(&device);
        // Closes its input.
        let _ = child.wait();
        if device.is_empty() {
            return Err(failed(format!("no loop device on {disk}")));
        }
        let open = open.map_err(|source| ScratchError::Io {
            action: format!("opening {device}"),
            source,
        })?;
        Ok(Attached {
            device,
            _open: open,
        })
    }
}

/// Runs a program to its end, and returns what it printed.
fn run(name: &str, command: Option<Command>) -> Result<String, ScratchError> {
    let failed = |said: String| ScratchError::Tool {
        name: name.to_string(),
        said,
    };
    let mut command = command.ok_or_else(|| failed(String::from("no such program; install it")))?;
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        return Err(failed(
            last.map_or(output.status.to_string(), str::to_string),
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
