//! Timed reads of a disk, which change nothing on it.

use crate::error::Failed;
use crate::medium::Medium;
use crate::pattern::splitmix64;
use crate::store::FailedBlock;
use cardiograph_system::{is_of_medium, is_of_whole_device};
use cardiograph_workload::{Activity, Clock, Observer, Operation, OperationKind, Phase, Workload};
use std::ops::ControlFlow;

/// Number of blocks that may fail before the run ends.
const FAILED_MAX: usize = 64;

/// Longest pause between two polls of the observer.
const PAUSE_SLICE_NS: u64 = 50_000_000;

/// Reads what the workload would write: as many calls of the same length and order, from the beginning of the disk.
/// Whatever the span of a phase, each call is timed on its own. Returns the blocks that could not be read.
///
/// # Errors
/// A read that failed after 64 such blocks, once the disk as a whole has failed, or for an error that is not of the disk.
pub fn read_workload(
    disk: &mut impl Medium,
    workload: &Workload,
    clock: &mut impl Clock,
    observer: &mut impl Observer,
    buffer: &mut [u8],
) -> Result<Vec<FailedBlock>, Box<Failed<Vec<FailedBlock>>>> {
    let mut failed = Vec::new();
    let mut first_file = 0u32;
    let mut random = 1;
    for phase in workload.phases {
        let capacity_bytes = disk.capacity_bytes();
        let calls =
            u64::from(phase.calls_per_file) * u64::from(phase.files) * u64::from(phase.passes);
        for call in 0..calls {
            let offset_bytes = offset_bytes(phase, call, capacity_bytes, &mut random);
            let length = phase.bytes_per_call as usize;
            let start_ns = clock.now_ns();
            let read = disk.read_at(offset_bytes, &mut buffer[..length]);
            let end_ns = clock.now_ns();
            if let Err(error) = read {
                let is_of_block = is_of_medium(&error) && !is_of_whole_device(&error);
                if failed.len() >= FAILED_MAX || !is_of_block {
                    return Err(Box::new(Failed {
                        so_far: failed,
                        offset_bytes: Some(offset_bytes),
                        source: error,
                    }));
                }
                failed.push(FailedBlock {
                    offset_bytes,
                    error: error.to_string(),
                });
            }
            let operation = Operation {
                kind: OperationKind::Read,
                file: first_file,
                offset_bytes,
                length_bytes: length as u64,
                start_ns,
                end_ns,
            };
            if observer.observe(&operation).is_break() || pause(phase, clock, observer).is_break() {
                return Ok(failed);
            }
        }
        first_file = first_file.saturating_add(1);
    }
    Ok(failed)
}

fn offset_bytes(phase: &Phase, call: u64, capacity_bytes: u64, random: &mut u64) -> u64 {
    let payload = u64::from(phase.bytes_per_call);
    let places = (capacity_bytes / payload).max(1);
    match phase.jump_within_bytes {
        0 => call % places * payload,
        within_bytes => {
            let within_run = call % u64::from(phase.jump_every_calls);
            if within_run == 0 {
                *random = splitmix64(*random);
            }
            let places = places.min(within_bytes / payload).max(1);
            (*random % places + within_run) % places * payload
        }
    }
}

fn pause(phase: &Phase, clock: &mut impl Clock, observer: &mut impl Observer) -> ControlFlow<()> {
    let mut left_ns = u64::from(phase.delay_us) * 1000;
    while left_ns > 0 {
        let slice_ns = left_ns.min(PAUSE_SLICE_NS);
        clock.pause_ns(slice_ns);
        left_ns -= slice_ns;
        observer.poll(Activity::Measuring, clock.now_ns())?;
    }
    ControlFlow::Continue(())
}
