//! Workloads and their phases as data.

use crate::OperationKind;
use core::fmt;

/// Part of the work that is timed as one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Span {
    /// The call alone; files are kept open, and open and close are not timed.
    Call,
    /// Open, call and close together; every call opens and closes the file.
    OpenToClose,
    /// A whole file as one operation: open, every call, sync and close.
    File,
}

/// Order in which the calls go to the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Order {
    /// All calls to a file, then all calls to the next.
    FileByFile,
    /// One call to each file in turn.
    RoundRobin,
}

/// Syncing of a file to the storage device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Sync {
    /// Requests no sync; the store decides when data reaches the storage device.
    Never,
    /// Starts a sync without waiting for its completion.
    Start,
    /// Starts a sync and waits for its completion.
    Wait,
}

/// Content of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Fill {
    /// `~` throughout, with carriage return and line feed at the end (study 1).
    Line,
    /// Zeros (study 2).
    Zeros,
    /// The letter `A` plus the number of the file, modulo 26 (study 4).
    Letter,
    /// [`Fill::Letter`] with the number of the call in the first 8 bytes (little-endian; omitted from shorter
    /// payloads), so that reading back detects misplaced blocks.
    Numbered,
}

/// A phase of a workload: a number of files, each accessed with the same number of equal calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
pub struct Phase {
    /// Kind of the timed operations: writes, or reads of files that the run writes beforehand.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "operation_kind"))]
    pub operation: OperationKind,
    /// Number of files that the phase accesses.
    pub files: u32,
    /// Calls to each file per pass.
    pub calls_per_file: u32,
    /// Payload per call, in bytes.
    pub bytes_per_call: u32,
    /// Passes over all files; from the second pass on, files are rewritten.
    pub passes: u32,
    /// Part of the work that is timed.
    pub span: Span,
    /// Order of the files.
    pub order: Order,
    /// Sync after each file; timed if the span includes closing the file.
    pub sync_file: Sync,
    /// Sync after the last file of the last pass; unless it is [`Sync::Never`], it replaces `sync_file`
    /// after this file.
    pub sync_end: Sync,
    /// Syncs the file inside every timed write.
    pub write_through: bool,
    /// Gives each file its own folder.
    pub folder_per_file: bool,
    /// Pause after each call, in µs.
    pub delay_us: u32,
    /// Pause after each file, including those written beforehand, in µs.
    pub pause_us: u32,
    /// Size in bytes of a file that is written beforehand and then accessed at random multiples of the
    /// payload size; 0 for sequential access.
    pub jump_within_bytes: u64,
    /// Number of sequential calls after each jump to a random offset.
    pub jump_every_calls: u32,
    /// Content of the payload.
    pub fill: Fill,
}

/// An experiment.
#[derive(Clone, Copy, Debug)]
pub struct Workload<'a> {
    /// Name on the command line.
    pub name: &'a str,
    /// Publication of the experiment; empty if there is none.
    pub study: &'a str,
    /// Description in one sentence.
    pub about: &'a str,
    /// Phases, in order of execution.
    pub phases: &'a [Phase],
}

/// A value that is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// Number of the phase, counted from 0.
    pub phase: usize,
    /// Name of the field that is out of range.
    pub field: &'static str,
    /// Values that the field may have.
    pub allowed: &'static str,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Invalid {
            phase,
            field,
            allowed,
        } = self;
        write!(f, "phase {}: `{field}` must be {allowed}", phase + 1)
    }
}

impl Default for Phase {
    fn default() -> Self {
        Phase::WRITE
    }
}

impl Phase {
    /// Largest payload per call, in bytes.
    pub const BYTES_PER_CALL_MAX: u32 = 1 << 20;

    /// Largest number of files that a phase keeps open at the same time.
    pub const OPEN_FILES_MAX: u32 = 8;

    /// Writes one file of 8 MiB in 512 B blocks and keeps it open.
    pub const WRITE: Phase = Phase {
        operation: OperationKind::Write,
        files: 1,
        calls_per_file: 16_384,
        bytes_per_call: 512,
        passes: 1,
        span: Span::Call,
        order: Order::FileByFile,
        sync_file: Sync::Never,
        sync_end: Sync::Never,
        write_through: false,
        folder_per_file: false,
        delay_us: 0,
        pause_us: 0,
        jump_within_bytes: 0,
        jump_every_calls: 1,
        fill: Fill::Numbered,
    };

    /// Returns the payload of each file per pass, in bytes.
    pub const fn bytes_per_pass(&self) -> u64 {
        self.calls_per_file as u64 * self.bytes_per_call as u64
    }

    /// Returns the size of each file, in bytes.
    pub const fn file_bytes(&self) -> u64 {
        if self.jump_within_bytes > 0 {
            self.jump_within_bytes
        } else {
            self.bytes_per_pass()
        }
    }

    /// Returns the payload of all timed calls, in bytes.
    pub const fn bytes(&self) -> u64 {
        let per_pass = self.bytes_per_pass().saturating_mul(self.files as u64);
        per_pass.saturating_mul(self.passes as u64)
    }

    /// Checks that every value is in range.
    ///
    /// # Errors
    /// The name of the first field that is out of range, and its allowed values.
    pub const fn check(&self) -> Result<(), (&'static str, &'static str)> {
        if self.files == 0 || self.files > 100_000 {
            return Err(("files", "1 to 100000"));
        }
        if self.calls_per_file == 0 {
            return Err(("calls_per_file", "at least 1"));
        }
        if self.bytes_per_call == 0 || self.bytes_per_call > Phase::BYTES_PER_CALL_MAX {
            return Err(("bytes_per_call", "1 to 1048576"));
        }
        if self.passes == 0 || self.passes > 100_000 {
            return Err(("passes", "1 to 100000"));
        }
        if self.file_bytes() >= 1 << 32 {
            return Err((
                "calls_per_file",
                "small enough that a file stays below 4 GiB, the FAT limit",
            ));
        }
        if matches!(self.order, Order::RoundRobin) && self.files > Phase::OPEN_FILES_MAX {
            return Err(("files", "at most 8 with `order = \"round-robin\"`"));
        }
        if matches!(self.order, Order::RoundRobin) && matches!(self.span, Span::File) {
            return Err((
                "span",
                "`call` or `open-to-close` with `order = \"round-robin\"`",
            ));
        }
        if self.delay_us > 0 && matches!(self.span, Span::File) {
            return Err(("delay_us", "0 with `span = \"file\"`"));
        }
        self.check_jumps()
    }

    const fn check_jumps(&self) -> Result<(), (&'static str, &'static str)> {
        if self.jump_within_bytes == 0 {
            return Ok(());
        }
        if self.jump_every_calls == 0 {
            return Err(("jump_every_calls", "at least 1"));
        }
        if self.jump_within_bytes < self.bytes_per_call as u64 * self.jump_every_calls as u64 {
            return Err((
                "jump_within_bytes",
                "0, or at least `bytes_per_call` times `jump_every_calls`",
            ));
        }
        if matches!(self.fill, Fill::Numbered) {
            return Err((
                "fill",
                "`line`, `zeros` or `letter` with `jump_within_bytes`",
            ));
        }
        let payload = self.bytes_per_call as u64;
        if matches!(self.fill, Fill::Line) && !self.jump_within_bytes.is_multiple_of(payload) {
            return Err((
                "jump_within_bytes",
                "a multiple of `bytes_per_call` with `fill = \"line\"`",
            ));
        }
        Ok(())
    }
}

impl Workload<'_> {
    /// Returns the payload of all timed calls, in bytes.
    pub fn bytes(&self) -> u64 {
        let sizes = self.phases.iter().map(Phase::bytes);
        sizes.fold(0, u64::saturating_add)
    }

    /// Returns the largest payload per call, in bytes.
    pub fn bytes_per_call_max(&self) -> u32 {
        let sizes = self.phases.iter().map(|phase| phase.bytes_per_call);
        sizes.max().unwrap_or(0)
    }

    /// Returns true if any phase reads files that are written beforehand.
    pub fn reads(&self) -> bool {
        let mut operations = self.phases.iter().map(|phase| phase.operation);
        operations.any(|operation| operation == OperationKind::Read)
    }

    /// Returns true if every writing phase syncs within the measured time. Such a workload measures the
    /// storage device even on a store that does not sync.
    pub fn times_its_syncs(&self) -> bool {
        let mut writing = self.phases.iter();
        writing.all(|phase| {
            let syncs = phase.sync_file != Sync::Never || phase.sync_end != Sync::Never;
            let is_timed = phase.write_through || (phase.span == Span::File && syncs);
            is_timed || phase.operation == OperationKind::Read
        }) && !self.only_reads()
    }

    fn only_reads(&self) -> bool {
        let mut operations = self.phases.iter().map(|phase| phase.operation);
        operations.all(|operation| operation == OperationKind::Read)
    }

    /// Checks every phase.
    ///
    /// # Errors
    /// [`Invalid`], for the first value that is out of range.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.phases.is_empty() {
            return Err(Invalid {
                phase: 0,
                field: "[[phase]]",
                allowed: "given at least once",
            });
        }
        for (phase, data) in self.phases.iter().enumerate() {
            data.check().map_err(|(field, allowed)| Invalid {
                phase,
                field,
                allowed,
            })?;
        }
        Ok(())
    }
}

#[cfg(feature = "serde")]
fn operation_kind<'de, D: serde::Deserializer<'de>>(from: D) -> Result<OperationKind, D::Error> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Kind {
        Write,
        Read,
    }
    Ok(match serde::Deserialize::deserialize(from)? {
        Kind::Write => OperationKind::Write,
        Kind::Read => OperationKind::Read,
    })
}
