//! An experiment as data.

use crate::OperationKind;
use core::fmt;

/// What of a call the clock sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Span {
    /// Files are kept open; the call alone is timed, open and close are not.
    Call,
    /// Every call opens and closes the file, and all three are timed together.
    OpenToClose,
    /// A whole file is one operation: open, every call, sync and close.
    File,
}

/// In which order the files are gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Order {
    /// One file to its end, then the next.
    FileByFile,
    /// One call to each file in turn.
    RoundRobin,
}

/// When data is brought to the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Sync {
    /// Left to the store.
    Never,
    /// Begun, not waited for.
    Start,
    /// Waited for.
    Wait,
}

/// What the payload holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Fill {
    /// `~` throughout, carriage return and line feed at the end: study 1.
    Line,
    /// Zeros: study 2.
    Zeros,
    /// `A` plus the number of the file: study 4.
    Letter,
    /// The number of the call in front (64 bits, little-endian, where it fits), then [`Fill::Letter`]:
    /// a block in the wrong place is found on reading back.
    Numbered,
}

/// A part of a workload: so many files of so many calls, all alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
pub struct Phase {
    /// Writing, or reading files that were written beforehand.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "operation_kind"))]
    pub operation: OperationKind,
    /// Number of files.
    pub files: u32,
    /// Calls to each file, in one pass.
    pub calls_per_file: u32,
    /// Payload of a call, in bytes.
    pub bytes_per_call: u32,
    /// How often all files are gone through; from the second pass on they are written anew.
    pub passes: u32,
    /// What is timed.
    pub span: Span,
    /// Which file comes next.
    pub order: Order,
    /// Sync after each file, inside what is timed if that is the file.
    pub sync_file: Sync,
    /// Sync of the last file of all, likewise.
    pub sync_end: Sync,
    /// Every call returns only when its data is on the medium.
    pub write_through: bool,
    /// Each file lies in a folder of its own.
    pub folder_per_file: bool,
    /// Pause after each call, in us.
    pub delay_us: u32,
    /// Pause after each file, those written beforehand included, in us.
    pub pause_us: u32,
    /// Where not 0: calls go to random multiples of the payload within a file of this size, in
    /// bytes, that was written beforehand.
    pub jump_within_bytes: u64,
    /// Calls in a row from one random place to the next.
    pub jump_every_calls: u32,
    /// What the payload holds.
    pub fill: Fill,
}

/// An experiment.
#[derive(Clone, Copy, Debug)]
pub struct Workload<'a> {
    /// The name it is asked for by.
    pub name: &'a str,
    /// Who published it, empty if nobody did.
    pub study: &'a str,
    /// What it does, in a sentence.
    pub about: &'a str,
    /// Its parts, in order.
    pub phases: &'a [Phase],
}

/// A value that no run can carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// Number of the phase, from 0.
    pub phase: usize,
    /// The field.
    pub field: &'static str,
    /// What it may be.
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
    /// Largest payload of a call, in bytes.
    pub const BYTES_PER_CALL_MAX: u32 = 1 << 20;

    /// Most files that a phase keeps open at once.
    pub const OPEN_FILES_MAX: u32 = 8;

    /// One file of 8 MiB in 512 B blocks, kept open.
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

    /// Payload of each file in one pass, in bytes.
    pub const fn bytes_per_pass(&self) -> u64 {
        self.calls_per_file as u64 * self.bytes_per_call as u64
    }

    /// Size of each file, in bytes.
    pub const fn file_bytes(&self) -> u64 {
        if self.jump_within_bytes > 0 {
            self.jump_within_bytes
        } else {
            self.bytes_per_pass()
        }
    }

    /// Payload of all timed calls, in bytes.
    pub const fn bytes(&self) -> u64 {
        let per_pass = self.bytes_per_pass().saturating_mul(self.files as u64);
        per_pass.saturating_mul(self.passes as u64)
    }

    /// Why the phase cannot be run: the field, and what it may be.
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
                "such that a file stays below 4 GiB, FAT's limit",
            ));
        }
        if matches!(self.order, Order::RoundRobin) && self.files > Phase::OPEN_FILES_MAX {
            return Err(("files", "at most 8 where they are written in turn"));
        }
        if matches!(self.order, Order::RoundRobin) && matches!(self.span, Span::File) {
            return Err((
                "span",
                "`call` or `open-to-close` where files are written in turn",
            ));
        }
        if self.delay_us > 0 && matches!(self.span, Span::File) {
            return Err(("delay_us", "0 where a whole file is timed"));
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
            return Err(("jump_within_bytes", "at least the bytes between two jumps"));
        }
        if matches!(self.fill, Fill::Numbered) {
            return Err((
                "fill",
                "`line`, `zeros` or `letter` where calls go to random places",
            ));
        }
        let payload = self.bytes_per_call as u64;
        if matches!(self.fill, Fill::Line) && !self.jump_within_bytes.is_multiple_of(payload) {
            return Err((
                "jump_within_bytes",
                "a multiple of the payload where that is a line",
            ));
        }
        Ok(())
    }
}

impl Workload<'_> {
    /// Payload of all timed calls, in bytes.
    pub fn bytes(&self) -> u64 {
        let sizes = self.phases.iter().map(Phase::bytes);
        sizes.fold(0, u64::saturating_add)
    }

    /// Largest payload of a call, in bytes.
    pub fn bytes_per_call_max(&self) -> u32 {
        let sizes = self.phases.iter().map(|phase| phase.bytes_per_call);
        sizes.max().unwrap_or(0)
    }

    /// Whether some phase reads files that were written beforehand.
    pub fn reads(&self) -> bool {
        let mut operations = self.phases.iter().map(|phase| phase.operation);
        operations.any(|operation| operation == OperationKind::Read)
    }

    /// Whether every phase that writes syncs inside what it times: on a store that syncs every write
    /// by itself that would make no difference.
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

    /// Whether every phase can be run.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.phases.is_empty() {
            return Err(Invalid {
                phase: 0,
                field: "[[phase]]",
                allowed: "there at least once",
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
