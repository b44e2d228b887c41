//! One row of an experiment: what is written, how often, and the unit of the result.

use crate::scenario::Scenario;
use cardiograph_workload::Phase;
use serde::Serialize;
use std::time::Duration;

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// Throughput; MB means 10^6 B.
    #[serde(rename = "MB/s")]
    MbPerS,
    /// Elapsed time.
    #[serde(rename = "s")]
    Seconds,
    /// Size; MB means 10^6 B.
    #[serde(rename = "MB")]
    Megabytes,
}

impl Unit {
    /// Returns the unit as text.
    pub fn name(self) -> &'static str {
        match self {
            Unit::MbPerS => "MB/s",
            Unit::Seconds => "s",
            Unit::Megabytes => "MB",
        }
    }

    /// Converts the time of one repetition.
    pub fn of(self, bytes: u64, elapsed: Duration) -> f64 {
        let elapsed_s = elapsed.as_secs_f64().max(1e-9);
        match self {
            Unit::MbPerS => bytes as f64 / 1e6 / elapsed_s,
            Unit::Seconds => elapsed_s,
            Unit::Megabytes => bytes as f64 / 1e6,
        }
    }
}

/// Data that one repetition writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// New files, one after the other, each followed by a sync.
    Files {
        /// Number of files.
        files: u32,
        /// Calls per file.
        calls: u32,
        /// Bytes per call.
        call_bytes: u32,
    },
    /// Transfers to random offsets, followed by a sync.
    Transfers {
        /// Number of calls.
        calls: u32,
        /// Bytes per call.
        call_bytes: u32,
        /// Calls in sequence at each random offset.
        calls_per_jump: u32,
        /// Length of the file that the offsets are in; on a raw disk, they are anywhere.
        within_bytes: u64,
    },
    /// A file that is rewritten several times.
    Scenario(Scenario),
}

impl Work {
    /// Takes the work of a phase of a workload.
    pub(crate) fn of(phase: &Phase) -> Work {
        let (calls, call_bytes) = (phase.calls_per_file, phase.bytes_per_call);
        match phase.jump_within_bytes {
            0 => Work::Files {
                files: phase.files,
                calls,
                call_bytes,
            },
            within_bytes => Work::Transfers {
                calls,
                call_bytes,
                calls_per_jump: phase.jump_every_calls,
                within_bytes,
            },
        }
    }

    /// Returns the length of the largest file or transfer, in bytes.
    pub fn largest_bytes(&self) -> u64 {
        match *self {
            Work::Files {
                calls, call_bytes, ..
            } => u64::from(calls) * u64::from(call_bytes),
            Work::Transfers { .. } => self.bytes(),
            Work::Scenario(_) => u64::from(Scenario::FILE_BYTES),
        }
    }

    /// Returns the space that the work needs, in bytes.
    pub fn space_bytes(&self) -> u64 {
        match *self {
            Work::Files { .. } => self.bytes(),
            Work::Transfers { within_bytes, .. } => within_bytes,
            Work::Scenario(_) => u64::from(Scenario::FILE_BYTES),
        }
    }

    /// Returns the bytes written by one repetition.
    pub fn bytes(&self) -> u64 {
        match *self {
            Work::Files {
                files,
                calls,
                call_bytes,
            } => u64::from(files) * u64::from(calls) * u64::from(call_bytes),
            Work::Transfers {
                calls, call_bytes, ..
            } => u64::from(calls) * u64::from(call_bytes),
            Work::Scenario(_) => Scenario::BYTES,
        }
    }
}

/// A row of an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Name in the report and in the published figures, such as `10 MB`.
    pub name: String,
    /// Data that one repetition writes.
    pub work: Work,
    /// Number of repetitions, as in the study.
    pub repeats: u32,
    /// Unit of the result.
    pub unit: Unit,
}
