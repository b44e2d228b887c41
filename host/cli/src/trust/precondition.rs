//! Writes before the measurement (`--precondition`).

use crate::disk;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::target::check_cleared;
use cardiograph_disk::{Aligned, FailedBlock, RawDisk, RawStore};
use cardiograph_store::{Directory, HostClock};
use cardiograph_workload::{
    Activity, Fill, Observer, Operation, OperationKind, Phase, Sync, Workload, run,
};
use std::ops::ControlFlow;

/// Writes the files of the workload to a directory, in long calls, and removes them. Returns the number of bytes.
pub fn of_directory(
    directory: &mut Directory,
    workload: &Workload,
    target: &str,
    interrupt: &Interrupt,
) -> Result<u64, Failure> {
    let phases: Vec<Phase> = workload.phases.iter().map(sequential).collect();
    let filling = Workload {
        phases: &phases,
        ..*workload
    };
    let mut quiet = Quiet {
        interrupt,
        bytes: 0,
        progress: Progress::over(filling.bytes()),
    };
    let mut buffer = Aligned::zeros(filling.bulk_buffer_bytes());
    let mut clock = HostClock::default();
    let buffer = buffer.bytes();
    let done = run(&filling, directory, &mut clock, &mut quiet, buffer);
    let bytes = quiet.bytes;
    quiet.progress.clear();
    let written = match done {
        Ok(outcome) if outcome.stopped => Err(interrupted(interrupt)),
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::new(format!("{target}: {error}"))),
    };
    Failure::join([written, check_cleared(directory)])?;
    Ok(bytes)
}

/// Returns a phase that writes the same files from beginning to end, up to a rest that is shorter than a call.
fn sequential(phase: &Phase) -> Phase {
    let calls = (Phase::BYTES_PER_CALL_MAX / phase.bytes_per_call).max(1);
    let in_file = phase.file_bytes() / u64::from(phase.bytes_per_call);
    let calls = in_file.min(u64::from(calls)).max(1) as u32;
    let bytes_per_call = calls * phase.bytes_per_call;
    Phase {
        operation: OperationKind::Write,
        files: phase.files,
        calls_per_file: (phase.file_bytes() / u64::from(bytes_per_call)).max(1) as u32,
        bytes_per_call,
        sync_file: Sync::Wait,
        folder_per_file: phase.folder_per_file,
        fill: Fill::Numbered,
        ..Phase::WRITE
    }
}

/// Overwrites the regions that the workload will use. Returns the disk, the number of bytes and the blocks that failed.
pub fn of_disk(
    disk: RawDisk,
    workload: &Workload,
    target: &str,
    interrupt: &Interrupt,
) -> Result<(RawDisk, u64, Vec<FailedBlock>), Failure> {
    let mut store = RawStore::new(disk, workload);
    let files = workload.phases.iter().map(|phase| phase.files).max();
    let mut progress = Progress::over(u64::from(files.unwrap_or(0)) * store.region_bytes());
    let written = store.precondition(workload, |bytes| {
        progress.show(bytes);
        match interrupt.is_raised() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    progress.clear();
    let bytes = written.map_err(|error| {
        let changed = disk::changed(store.disk());
        changed.unwrap_or_else(|| Failure::new(format!("{target}: {error}")))
    })?;
    if interrupt.is_raised() {
        return Err(interrupted(interrupt));
    }
    let failed = store.failed_blocks();
    Ok((store.into_disk(), bytes, failed))
}

fn interrupted(interrupt: &Interrupt) -> Failure {
    Failure::AlreadyPrinted(interrupt.exit_code().unwrap_or(1))
}

/// An observer that records nothing.
struct Quiet<'a> {
    interrupt: &'a Interrupt,
    bytes: u64,
    progress: Progress,
}

impl Observer for Quiet<'_> {
    fn observe(&mut self, operation: &Operation) -> ControlFlow<()> {
        self.bytes += operation.length_bytes;
        self.poll(Activity::Preparing, operation.end_ns)
    }

    fn poll(&mut self, _: Activity, _: u64) -> ControlFlow<()> {
        self.progress.show(self.bytes);
        match self.interrupt.is_raised() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_has_files_that_can_be_filled() {
        for workload in cardiograph_workload::WORKLOADS.iter().copied().flatten() {
            for phase in workload.phases {
                let filling = sequential(phase);
                assert_eq!(filling.check(), Ok(()), "{filling:?}");
                let rest = phase.file_bytes() - filling.file_bytes();
                assert!(rest < u64::from(filling.bytes_per_call), "{phase:?}");
                // Direct I/O needs whole blocks.
                assert!(filling.bytes_per_call.is_multiple_of(phase.bytes_per_call));
            }
        }
    }
}
