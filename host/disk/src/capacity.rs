//! Check of the capacity: does the disk keep data at every offset that it claims?
//!
//! Cards that claim more flash than they have store data beyond their real capacity somewhere else, or nowhere:
//!
//! ```text
//!   wrapping     offset a is stored at a modulo the real capacity
//!   dropping     a write beyond is ignored; a read returns old data, or other bytes
//!   zeros        a read beyond returns zeros
//! ```
//!
//! The quick check writes 4 KiB every 16 MiB and at the end, then one contiguous run of 16 MiB at the beginning. If
//! the card wraps at *any* length L, one of the probes lies in L to L + 16 MiB, and therefore at an offset of the
//! run: one of the two overwrote the other. Probes at powers of two would meet only if L is a power of two.
//!
//! The run is written last and is as long as the probes of 64 GB together, so that a card that holds the last writes
//! in RAM must have given up the probes when they are read back. The full pass writes and reads every block.

use crate::error::Failed;
use crate::medium::{Aligned, Medium};
use crate::pattern::{Content, SECTOR_BYTES, content, fill};
use cardiograph_system::is_of_medium;
use serde::Serialize;
use std::io;
use std::ops::ControlFlow;

/// Distance between two probes, and length of the contiguous run.
pub const SPACING_BYTES: u64 = 16 << 20;

/// Length of a probe.
const PROBE_BYTES: u64 = 4 << 10;

/// Payload of a call within a contiguous run.
const CALL_BYTES: u64 = 1 << 20;

/// Longest list of findings; later ones are only counted.
const FINDINGS_MAX: usize = 100;

/// Extent of the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapacityPlan {
    /// A run of 16 MiB, and 4 KiB every 16 MiB.
    Quick,
    /// Every block.
    Full,
}

/// Result of the check, or of its beginning if it ended early.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Capacity {
    /// Capacity that the disk claims.
    pub claimed_bytes: u64,
    /// Bytes written and read back.
    pub tested_bytes: u64,
    /// Bytes up to which all tested data were kept; equal to the claimed capacity if nothing was wrong.
    ///
    /// For a card that wraps, the length at which it wraps. 0 if the check ended before anything was read back.
    pub kept_bytes: u64,
    /// Blocks with other data than those written.
    pub wrong_blocks: u64,
    /// Blocks that could not be read; if the check ended before anything was read back, those that could not be written.
    pub failed_blocks: u64,
    /// The first 100 of these blocks in order of their offsets.
    pub findings: Vec<Finding>,
}

impl Capacity {
    /// Returns true if all data were kept.
    pub fn is_honest(&self) -> bool {
        self.wrong_blocks == 0 && self.failed_blocks == 0
    }
}

/// Answer to the question whether a device keeps data everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// At least 99 % of the capacity was written and read back without a fault.
    Genuine,
    /// A block lost its data or failed.
    Fake,
    /// No fault was found, and less than 99 % of the capacity was written and read back.
    NotTested,
}

/// Least share of the capacity, in %, that has to be tested before a device is called genuine.
const GENUINE_PERCENT: u128 = 99;

/// Judges a device from the check of its capacity. `device_bytes` is the size of the whole device, if it is known;
/// `failed_calls` counts failures outside the check.
pub fn verdict(
    capacity: Option<&Capacity>,
    device_bytes: Option<u64>,
    failed_calls: u64,
) -> Verdict {
    let is_honest = capacity.is_none_or(Capacity::is_honest);
    if !is_honest || failed_calls > 0 {
        return Verdict::Fake;
    }
    let tested_bytes = capacity.map_or(0, |capacity| capacity.tested_bytes);
    match device_bytes {
        Some(bytes @ 1..)
            if u128::from(tested_bytes) * 100 >= u128::from(bytes) * GENUINE_PERCENT =>
        {
            Verdict::Genuine
        }
        _ => Verdict::NotTested,
    }
}

/// A block that lost its data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Offset of the block.
    pub offset_bytes: u64,
    /// Fault: `stored elsewhere`, `zeros`, `other data`, or the error of the operating system.
    pub fault: String,
    /// Offset that the data found there was written to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found_offset_bytes: Option<u64>,
}

/// Reason for an early end of the check.
#[derive(Debug)]
pub enum Stopped {
    /// The caller asked for it; what was measured before.
    Interrupted(Box<Capacity>),
    /// Many blocks in a row failed, or the computer could not access the disk.
    Failed(Box<Failed<Capacity>>),
}

/// Returns the bytes that the check writes and reads, for a progress bar.
pub fn pass_bytes(plan: CapacityPlan, capacity_bytes: u64) -> u64 {
    2 * steps(plan, capacity_bytes)
        .map(|step| step.length_bytes)
        .sum::<u64>()
}

/// Checks the capacity; this overwrites data. `progress` receives the bytes written and read so far, and may stop the
/// check. `run` is a number that no earlier check of this disk has used.
///
/// # Errors
/// [`Stopped`].
pub fn check_capacity(
    medium: &mut impl Medium,
    plan: CapacityPlan,
    run: u64,
    mut progress: impl FnMut(u64) -> ControlFlow<()>,
) -> Result<Capacity, Stopped> {
    let claimed_bytes = medium.capacity_bytes();
    let mut check = Check {
        medium,
        run,
        buffer: Aligned::zeros(CALL_BYTES as usize),
        done_bytes: 0,
        tested_bytes: 0,
        faults: Vec::new(),
        wrong_blocks: 0,
        failed_blocks: 0,
        failed_in_a_row: 0,
    };
    let mut progress = |done_bytes| match progress(done_bytes) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Halt::Interrupted),
    };
    let ended = check.run(plan, &mut progress);
    let capacity = check.result(claimed_bytes);
    match ended {
        Ok(()) => Ok(capacity),
        Err(Halt::Interrupted) => Err(Stopped::Interrupted(Box::new(capacity))),
        Err(Halt::Failed(offset_bytes, source)) => Err(Stopped::Failed(Box::new(Failed {
            so_far: capacity,
            offset_bytes,
            source,
        }))),
    }
}

/// A call of the check.
#[derive(Clone, Copy)]
struct Step {
    offset_bytes: u64,
    length_bytes: u64,
}

/// Returns the calls in the order of writing.
fn steps(plan: CapacityPlan, capacity_bytes: u64) -> Box<dyn Iterator<Item = Step>> {
    let call = move |offset_bytes: u64, end_bytes: u64, length: u64| Step {
        offset_bytes,
        length_bytes: length.min(end_bytes - offset_bytes),
    };
    let run = move |end_bytes: u64| {
        let offsets = (0..end_bytes).step_by(CALL_BYTES as usize);
        offsets.map(move |offset| call(offset, end_bytes, CALL_BYTES))
    };
    match plan {
        CapacityPlan::Full => Box::new(run(capacity_bytes)),
        CapacityPlan::Quick => {
            let offsets = (SPACING_BYTES..capacity_bytes).step_by(SPACING_BYTES as usize);
            let last = capacity_bytes
                .saturating_sub(PROBE_BYTES)
                .max(SPACING_BYTES);
            let is_apart = !last.is_multiple_of(SPACING_BYTES) && last < capacity_bytes;
            let probes = offsets.chain(is_apart.then_some(last));
            let probes = probes.map(move |offset| call(offset, capacity_bytes, PROBE_BYTES));
            Box::new(probes.chain(run(capacity_bytes.min(SPACING_BYTES))))
        }
    }
}

/// Divides a step into blocks.
fn blocks(step: Step) -> impl Iterator<Item = Step> {
    let end_bytes = step.offset_bytes + step.length_bytes;
    let offsets = (step.offset_bytes..end_bytes).step_by(PROBE_BYTES as usize);
    offsets.map(move |offset_bytes| Step {
        offset_bytes,
        length_bytes: PROBE_BYTES.min(end_bytes - offset_bytes),
    })
}

/// Reason for an early end within the check.
enum Halt {
    Interrupted,
    /// Address and error of the access, if it has an address.
    Failed(Option<u64>, io::Error),
}

struct Check<'a, M> {
    medium: &'a mut M,
    run: u64,
    buffer: Aligned,
    /// Bytes written and read so far.
    done_bytes: u64,
    /// Bytes read back so far.
    tested_bytes: u64,
    faults: Vec<Finding>,
    wrong_blocks: u64,
    failed_blocks: u64,
    failed_in_a_row: u32,
}

/// Number of failing blocks in a row after which the check ends.
pub const FAILED_IN_A_ROW_MAX: u32 = 64;

impl<M: Medium> Check<'_, M> {
    fn run(
        &mut self,
        plan: CapacityPlan,
        progress: &mut impl FnMut(u64) -> Result<(), Halt>,
    ) -> Result<(), Halt> {
        let claimed_bytes = self.medium.capacity_bytes();
        for step in steps(plan, claimed_bytes) {
            self.write(step)?;
            progress(self.done_bytes)?;
        }
        let flushed = self.medium.flush();
        flushed.map_err(|error| Halt::Failed(None, error))?;
        // Blocks that could not be written are found again when they are read.
        self.faults.clear();
        (self.failed_blocks, self.failed_in_a_row) = (0, 0);
        // In the order of writing: the oldest data have left a cache first.
        for step in steps(plan, claimed_bytes) {
            self.read(step)?;
            self.tested_bytes += step.length_bytes;
            progress(self.done_bytes)?;
        }
        Ok(())
    }

    /// Writes a step. If a long call fails, its blocks are written one by one.
    fn write(&mut self, step: Step) -> Result<(), Halt> {
        self.done_bytes += step.length_bytes;
        if self.write_once(step).is_ok() {
            self.failed_in_a_row = 0;
            return Ok(());
        }
        for block in blocks(step) {
            match self.write_once(block) {
                Ok(()) => self.failed_in_a_row = 0,
                Err(error) => self.record(block, error)?,
            }
        }
        Ok(())
    }

    fn write_once(&mut self, step: Step) -> io::Result<()> {
        let data = &mut self.buffer.bytes()[..step.length_bytes as usize];
        fill(self.run, step.offset_bytes, data);
        self.medium.write_at(step.offset_bytes, data)
    }

    /// Compares a step with what was written. If a long call fails, its blocks are read one by one.
    fn read(&mut self, step: Step) -> Result<(), Halt> {
        self.done_bytes += step.length_bytes;
        let data = &mut self.buffer.bytes()[..step.length_bytes as usize];
        let read = self.medium.read_at(step.offset_bytes, data);
        if read.is_ok() || step.length_bytes <= PROBE_BYTES {
            return self.compare(step, read);
        }
        for block in blocks(step) {
            let data = &mut self.buffer.bytes()[..block.length_bytes as usize];
            let read = self.medium.read_at(block.offset_bytes, data);
            self.compare(block, read)?;
        }
        Ok(())
    }

    fn compare(&mut self, step: Step, read: io::Result<()>) -> Result<(), Halt> {
        if let Err(error) = read {
            return self.record(step, error);
        }
        self.failed_in_a_row = 0;
        let blocks = (step.length_bytes.div_ceil(PROBE_BYTES)) as usize;
        for block in 0..blocks {
            let begin = block * PROBE_BYTES as usize;
            let end = (begin + PROBE_BYTES as usize).min(step.length_bytes as usize);
            let offset_bytes = step.offset_bytes + begin as u64;
            if let Some((at, found)) = self.first_wrong(offset_bytes, begin, end) {
                self.wrong_blocks += 1;
                let (fault, found) = match found {
                    Content::Elsewhere { offset_bytes } => ("stored elsewhere", Some(offset_bytes)),
                    Content::Zeros => ("zeros", None),
                    Content::Right | Content::Other => ("other data", None),
                };
                self.add(at, fault.to_string(), found);
            }
        }
        Ok(())
    }

    /// Returns offset and content of the first wrong sector of a block in the buffer.
    fn first_wrong(
        &mut self,
        offset_bytes: u64,
        begin: usize,
        end: usize,
    ) -> Option<(u64, Content)> {
        let run = self.run;
        let block = &self.buffer.bytes()[begin..end];
        let sectors = block.chunks_exact(SECTOR_BYTES);
        let offsets = (offset_bytes..).step_by(SECTOR_BYTES);
        sectors
            .zip(offsets)
            .map(|(sector, offset)| (offset, content(run, offset, sector)))
            .find(|(_, content)| *content != Content::Right)
    }

    /// Records a block that failed; an error after many in a row, and if the disk is not to blame.
    fn record(&mut self, block: Step, error: io::Error) -> Result<(), Halt> {
        let failed = |error| Halt::Failed(Some(block.offset_bytes), error);
        if !is_of_medium(&error) {
            return Err(failed(error));
        }
        self.failed_blocks += 1;
        self.add(block.offset_bytes, error.to_string(), None);
        self.failed_in_a_row += 1;
        match self.failed_in_a_row >= FAILED_IN_A_ROW_MAX {
            true => Err(failed(error)),
            false => Ok(()),
        }
    }

    fn add(&mut self, offset_bytes: u64, fault: String, found_offset_bytes: Option<u64>) {
        self.faults.push(Finding {
            offset_bytes,
            fault,
            found_offset_bytes,
        });
        // Probes come before the run, so the list is sorted before its end is dropped.
        if self.faults.len() >= 2 * FINDINGS_MAX {
            self.shorten();
        }
    }

    fn shorten(&mut self) {
        self.faults.sort_by_key(|finding| finding.offset_bytes);
        self.faults.truncate(FINDINGS_MAX);
    }

    fn result(mut self, claimed_bytes: u64) -> Capacity {
        // Data found elsewhere were written there and came to lie here: the distance is a multiple of the length at which
        // the card wraps, and the smallest distance is this length itself.
        let distances = self.faults.iter().filter_map(|finding| {
            let found = finding.found_offset_bytes?;
            Some(found.abs_diff(finding.offset_bytes))
        });
        let wraps_at = distances.min();
        self.shorten();
        let first_wrong = self.faults.first().map(|finding| finding.offset_bytes);
        let kept_bytes = match self.tested_bytes {
            0 => 0,
            _ => wraps_at.or(first_wrong).unwrap_or(claimed_bytes),
        };
        Capacity {
            claimed_bytes,
            tested_bytes: self.tested_bytes,
            kept_bytes,
            wrong_blocks: self.wrong_blocks,
            failed_blocks: self.failed_blocks,
            findings: self.faults,
        }
    }
}
