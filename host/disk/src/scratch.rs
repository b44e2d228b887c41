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

use crate::error::Failed;
use crate::marker::{MARKER_BYTES, Marker};
use crate::program::{Unfinished, last_line, missing, not_started, run, tool};
use crate::{Aligned, DiskError, FileSystem, Medium, RawDisk};
use cardiograph_system::{Mount, in_own_group, is_of_medium};
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Begin of the region: a multiple of what allocation units of cards usually are.
pub const REGION_BEGIN_BYTES: u64 = 4 << 20;

/// Smallest disk that is formatted.
pub const SCRATCH_BYTES_MIN: u64 = 32 << 20;

/// Bytes that are cleared where signatures of file systems and partition tables can be.
const CLEARED_BYTES: usize = 1 << 20;

/// Number of places that are written to find out why a write failed, and their length.
const PROBES: u64 = 64;
const PROBE_BYTES: u64 = 4096;

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
    /// The disk changed after it was first written.
    Changed {
        /// Property that differs, with both values.
        what: String,
    },
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
    /// The file system cannot have blocks of the requested size on this disk.
    BlockSize {
        /// Name of the program that formats.
        name: String,
        /// Its reason.
        said: String,
    },
    /// The caller stopped the program that formats; the disk still has its marker.
    Interrupted,
}

impl ScratchError {
    /// Returns true if the disk or its connection caused the error, and not this computer.
    pub fn is_of_medium(&self) -> bool {
        // A program reports an error as a text; EIO is the one that the kernel returns for its files.
        const EIO: &str = "Input/output error";
        match self {
            ScratchError::Disk(DiskError::Io { source, .. }) => is_of_medium(source),
            ScratchError::Io { source, .. } => is_of_medium(source),
            ScratchError::Tool { said, .. } => said.contains(EIO),
            _ => false,
        }
    }
}

impl std::error::Error for ScratchError {}

impl fmt::Display for ScratchError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            ScratchError::Disk(error) => error.fmt(f),
            ScratchError::Changed { what } => write!(f, "the disk changed during the run ({what})"),
            ScratchError::TooSmall { path } => write!(
                f,
                "{path}: smaller than {} MiB; choose a larger disk",
                SCRATCH_BYTES_MIN >> 20
            ),
            ScratchError::Io { action, source } => write!(f, "{action}: {source}"),
            ScratchError::Tool { name, said } | ScratchError::BlockSize { name, said } => {
                write!(f, "{name}: {said}")
            }
            ScratchError::Interrupted => f.write_str("interrupted"),
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
        self.check_unchanged()?;
        self.marker.step = step.to_string();
        self.mark()
    }

    /// Returns the step that the marker names.
    pub fn current_step(&self) -> &str {
        &self.marker.step
    }

    /// Creates a file system with blocks of the given size (sectors for vfat), and mounts it. `go_on` may stop the program
    /// that formats.
    ///
    /// # Errors
    /// [`ScratchError`].
    pub fn format(
        &mut self,
        file_system: FileSystem,
        block_bytes: Option<u32>,
        is_synchronous: bool,
        go_on: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Formatted, ScratchError> {
        let name = file_system.name();
        self.step(name)?;
        self.clear_region()?;
        let attached = self.attach()?;
        self.make(file_system, &attached, block_bytes, go_on)?;
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

    fn attach(&self) -> Result<Attached, ScratchError> {
        let (begin_bytes, length_bytes) = self.region();
        let disk = self.disk.identity();
        Attached::over(&disk.device, begin_bytes, length_bytes, disk.block_bytes)
    }

    fn make(
        &self,
        file_system: FileSystem,
        attached: &Attached,
        block_bytes: Option<u32>,
        go_on: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<(), ScratchError> {
        let name = format!("mkfs.{}", file_system.name());
        let least_bytes = self.disk.block_bytes();
        // mkfs.vfat would use larger sectors instead.
        if file_system == FileSystem::Vfat && block_bytes.is_some_and(|bytes| bytes < least_bytes) {
            let said =
                format!("sectors have at least {least_bytes} B, the size of the disk's blocks");
            return Err(ScratchError::BlockSize { name, said });
        }
        let Some(mkfs) = file_system.mkfs(&attached.device, block_bytes) else {
            let said = missing(&name);
            return Err(ScratchError::Tool { name, said });
        };
        run(&mkfs, &attached.open, go_on).map_err(|unfinished| match unfinished {
            Unfinished::Interrupted => ScratchError::Interrupted,
            Unfinished::Failed(said) => {
                let is_too_small = block_bytes.is_some_and(|bytes| bytes < least_bytes);
                match is_too_small {
                    true => ScratchError::BlockSize { name, said },
                    false => ScratchError::Tool { name, said },
                }
            }
        })
    }

    /// Clears the signatures of the region, both ends of the disk, and the marker last: no program finds a file system,
    /// a partition table or its backup on the disk. Other data stay.
    ///
    /// # Errors
    /// [`ScratchError`]; the marker may still be there.
    pub fn end(mut self) -> Result<RawDisk, ScratchError> {
        self.check_unchanged()?;
        self.clear_region()?;
        let last_bytes = self.disk.capacity_bytes() - CLEARED_BYTES as u64;
        self.clear(last_bytes, CLEARED_BYTES)?;
        self.clear(MARKER_BYTES as u64, CLEARED_BYTES - MARKER_BYTES)?;
        self.clear(0, MARKER_BYTES)?;
        Ok(self.disk)
    }

    /// Writes zeros to places all over the region, and returns the first error that the disk does not cause: it has become
    /// read-only, for example. A file system reports such an error as one of the disk.
    pub fn obstacle(&mut self) -> Option<Failed<()>> {
        let (begin_bytes, length_bytes) = self.region();
        let distance_bytes = length_bytes / PROBES / PROBE_BYTES * PROBE_BYTES;
        let mut zeros = Aligned::zeros(PROBE_BYTES as usize);
        for place in 0..PROBES {
            let offset_bytes = begin_bytes + place * distance_bytes;
            if let Err(source) = self.disk.write_at(offset_bytes, zeros.bytes()) {
                return (!is_of_medium(&source)).then_some(Failed {
                    so_far: (),
                    offset_bytes: Some(offset_bytes),
                    source,
                });
            }
        }
        None
    }

    fn check_unchanged(&self) -> Result<(), ScratchError> {
        self.disk.check_unchanged().map_err(|error| match error {
            DiskError::Exchanged { what, .. } => ScratchError::Changed { what },
            error => ScratchError::Disk(error),
        })
    }

    fn mark(&mut self) -> Result<(), ScratchError> {
        let mut block = Aligned::zeros(MARKER_BYTES);
        block.bytes().copy_from_slice(&self.marker.block());
        self.write(0, block)
    }

    fn clear_region(&mut self) -> Result<(), ScratchError> {
        self.clear(REGION_BEGIN_BYTES, CLEARED_BYTES)
    }

    fn clear(&mut self, offset_bytes: u64, length: usize) -> Result<(), ScratchError> {
        self.write(offset_bytes, Aligned::zeros(length))
    }

    /// Writes data, and waits until the disk has them.
    fn write(&mut self, offset_bytes: u64, mut data: Aligned) -> Result<(), ScratchError> {
        let written = self.disk.write_at(offset_bytes, data.bytes());
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
    open: File,
}

impl Attached {
    fn over(
        disk: &str,
        begin_bytes: u64,
        length_bytes: u64,
        block_bytes: u32,
    ) -> Result<Attached, ScratchError> {
        // A shell of its own, which ends its work even if this process is killed meanwhile: while it has the device
        // open, detaching it only asks for that at the last close. It waits until this process has opened it, too.
        const SCRIPT: &str = r#"
            d=$("$0" --find --show --direct-io=on --sector-size "$4" --offset "$1" --sizelimit "$2" "$3") || exit 1
            exec 3<"$d"; "$0" --detach "$d" && echo "$d" && { read -r _ || :; }"#;
        let failed = |said: String| ScratchError::Tool {
            name: String::from("losetup"),
            said,
        };
        let losetup = tool("losetup").ok_or_else(|| failed(missing("losetup")))?;
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT]).arg(losetup).env("LC_ALL", "C");
        shell.args([&begin_bytes.to_string(), &length_bytes.to_string(), disk]);
        shell.arg(block_bytes.to_string());
        shell.stdin(Stdio::piped());
        shell.stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C between the two calls of losetup would leave the device attached.
        in_own_group(&mut shell);
        let child = shell.spawn();
        let mut child = child.map_err(|error| failed(not_started(&error)))?;
        let mut device = String::new();
        if let Some(output) = &mut child.stdout {
            let _ = BufReader::new(output).read_line(&mut device);
        }
        let device = device.trim().to_string();
        let open = File::open(&device);
        // Closes its input.
        let output = child.wait_with_output();
        if device.is_empty() {
            let text = output.map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
            let said = text.ok().as_deref().and_then(last_line);
            return Err(failed(said.unwrap_or(format!("no loop device on {disk}"))));
        }
        let open = open.map_err(|source| ScratchError::Io {
            action: format!("opening {device}"),
            source,
        })?;
        Ok(Attached { device, open })
    }
}
