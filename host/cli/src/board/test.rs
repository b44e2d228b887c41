//! Workloads that a board can run.

use crate::failure::Failure;
use crate::workload_file::OwnedWorkload;
use cardiograph_workload::{OperationKind, Order, Phase, Span, Sync};

/// Longest write that the board accepts, in bytes.
const WRITE_BYTES_MAX: u32 = 64 << 10;
/// Workload for boards only: 10 files of 1000 lines of 100 B, which state the latency of the previous write, as in the
/// simulated recorder of study 1.
pub const SELF_TIMING: &str = "self-timing";
/// Workload for sketches that run a load on two cores before they test the card, such as `MeasureCores`.
pub const TWO_CORES: &str = "two-cores";

/// The writes of a workload.
#[derive(Clone)]
pub struct Test {
    bytes: u32,
    writes: u32,
    files: u32,
    delay_ms: u32,
    has_lines: bool,
}

impl Test {
    /// Returns the writes of a workload that consists of one phase of plain writes to open files. For [`TWO_CORES`], they are
    /// those of the default workload.
    pub fn of(workload: &str) -> Result<Test, Failure> {
        let workload = match workload {
            TWO_CORES => cardiograph_workload::DEFAULT,
            named => named,
        };
        if workload == SELF_TIMING {
            return Ok(Test {
                bytes: 100,
                writes: 1000,
                files: 10,
                delay_ms: 100,
                has_lines: true,
            });
        }
        let owned = OwnedWorkload::named(workload)?;
        match owned.borrow().phases {
            [phase] if is_plain(phase) => Ok(Test {
                bytes: phase.bytes_per_call,
                writes: phase.calls_per_file,
                files: phase.files,
                delay_ms: phase.delay_us / 1000,
                has_lines: false,
            }),
            _ => Err(Failure::new(format!(
                "--workload {workload} does not apply to a board, which writes files one after another, keeps them open \
                 and times each write of at most 64 KiB; use {}, {SELF_TIMING}, {TWO_CORES}, or a TOML file",
                cardiograph_workload::DEFAULT
            ))),
        }
    }

    /// Returns the total number of writes.
    pub fn writes(&self) -> u64 {
        u64::from(self.writes) * u64::from(self.files)
    }

    /// Returns true if a board states that it runs this test.
    pub fn matches(&self, bytes: Option<u64>, writes: Option<u64>) -> bool {
        bytes == Some(self.bytes.into()) && writes == Some(self.writes())
    }

    /// Returns the arguments of the request.
    pub fn arguments(&self) -> String {
        let Test {
            bytes,
            writes,
            files,
            delay_ms,
            has_lines,
        } = self;
        let lines = if *has_lines { "&lines=1" } else { "" };
        format!("bytes={bytes}&writes={writes}&files={files}&delay={delay_ms}{lines}")
    }
}

fn is_plain(phase: &Phase) -> bool {
    phase.operation == OperationKind::Write
        && phase.span == Span::Call
        && (phase.order == Order::FileByFile || phase.files == 1)
        && (phase.sync_file, phase.sync_end) == (Sync::Never, Sync::Never)
        && !phase.write_through
        && (phase.passes, phase.pause_us, phase.jump_within_bytes) == (1, 0, 0)
        && phase.delay_us.is_multiple_of(1000)
        && phase.delay_us <= 60_000_000
        && phase.bytes_per_call <= WRITE_BYTES_MAX
}
