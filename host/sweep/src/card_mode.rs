//! The mode `card`: the recorder's writes on the card's timing alone.
//!
//! ```text
//!   samples ──> backlog ──> flash pages, in order ──> Controller: busy time
//!                              │ durability window over: the write ends at a multiple of 32 KiB,
//!                              └─ or, if the samples are too slow for that, within a page
//! ```
//!
//! Bus and driver take the same time for each block, which a short stream over the simulated bus measures. Files,
//! directories and marks are left out, so that a run needs one step per flash page. If the backlog never exceeds a
//! buffer, nothing is lost with that buffer; one simulation therefore serves all buffer sizes.

use crate::SweepError;
use crate::task::{Row, Task};
use cardiograph_plan::stream;
use cardiograph_sim_card::{BLOCK_BYTES, Board, Controller, Profile, Seed};

/// First block of the recordings: 16 MiB, past the file system's own blocks.
const START_BLOCK: u64 = 32_768;
/// Blocks after which the recorder prefers to end a write: 32 KiB.
const STEP_BLOCKS: u64 = 64;
/// The recorder requests a checkpoint this fraction (1/n) of the durability window before its end.
const REQUEST_PART: u64 = 4;
/// Payload of the stream that measures the time per block.
const CALIBRATION_BYTES: u64 = 256 << 10;
/// Number of flash pages between two checks for a stop.
const PAGES_PER_CHECK: u64 = 4096;
const NS_PER_S: u64 = 1_000_000_000;

/// A card, and the time that bus and driver take per block.
#[derive(Clone, Debug)]
pub struct Set<'a> {
    profile: &'a Profile,
    block_ns: u64,
}

impl<'a> Set<'a> {
    /// Measures the time per block on the simulated bus.
    ///
    /// # Errors
    /// If the recorder's driver cannot write to the card.
    pub fn measure(
        target: &str,
        profile: &'a Profile,
        board: &Board,
    ) -> Result<Set<'a>, SweepError> {
        let streamed = stream((profile, board), 1, CALIBRATION_BYTES);
        let streamed = streamed.map_err(|error| SweepError::new(format!("{target}: {error}")))?;
        let times_ns = streamed.trace.operations();
        let mut times_ns: Vec<u64> = times_ns
            .map(|block| block.end_ns - block.start_ns)
            .collect();
        // The card is not busy before most blocks, so the median contains no busy time.
        let middle = times_ns.len() / 2;
        let (_, &mut block_ns, _) = times_ns.select_nth_unstable(middle);
        Ok(Set { profile, block_ns })
    }
}

/// Samples of a recording.
#[derive(Clone, Copy, Debug)]
pub struct CardLoad {
    /// Samples per second.
    pub rate_hz: u32,
    /// Bytes per sample.
    pub sample_bytes: u32,
    /// Length of the recording, in ns.
    pub run_ns: u64,
    /// Durability window, in ns.
    pub window_ns: u64,
}

impl CardLoad {
    /// Returns the arrival of a sample, in ns from the start.
    fn arrival_ns(&self, sample: u64) -> u64 {
        let rate = u64::from(self.rate_hz);
        sample / rate * NS_PER_S + sample % rate * NS_PER_S / rate
    }

    /// Returns the time at which `bytes` bytes of samples have arrived.
    fn arrival_of_byte_ns(&self, bytes: u64) -> u64 {
        self.arrival_ns(bytes.div_ceil(self.sample_bytes.into()).saturating_sub(1))
    }

    /// Returns the bytes of all samples that have arrived at `ns`.
    fn arrived_bytes(&self, ns: u64) -> u64 {
        let samples = u128::from(ns) * u128::from(self.rate_hz) / u128::from(NS_PER_S) + 1;
        samples as u64 * u64::from(self.sample_bytes)
    }
}

/// Returns the highest number of bytes that wait at any time of a recording on a new card, including the block being
/// sent, or `None` if `is_stopped` returned true.
pub fn peak_backlog(
    set: &Set,
    seed: u64,
    load: &CardLoad,
    is_stopped: &dyn Fn() -> bool,
) -> Option<u64> {
    let mut run = Run::new(set, seed, load);
    let mut pages = 0_u64;
    while run.now_ns < load.run_ns {
        run.write_next();
        pages += 1;
        if pages.is_multiple_of(PAGES_PER_CHECK) && is_stopped() {
            return None;
        }
    }
    Some(run.peak_bytes)
}

struct Run<'a> {
    load: &'a CardLoad,
    controller: Controller,
    page_blocks: u64,
    block_ns: u64,
    start: u64,
    end: u64,
    /// Next block to write.
    next: u64,
    /// Bytes taken from the buffer so far.
    taken_bytes: u64,
    /// Bytes that are durable.
    durable_bytes: u64,
    now_ns: u64,
    peak_bytes: u64,
}

impl<'a> Run<'a> {
    fn new(set: &Set, seed: u64, load: &'a CardLoad) -> Run<'a> {
        let mut controller = Controller::new(set.profile, Seed::new(seed));
        let blocks = set.profile.capacity_bytes / BLOCK_BYTES as u64;
        let start = START_BLOCK.min(blocks / 2 / STEP_BLOCKS * STEP_BLOCKS);
        Run {
            load,
            page_blocks: controller.blocks_per_page(),
            block_ns: set.block_ns,
            start,
            end: blocks / STEP_BLOCKS * STEP_BLOCKS,
            next: start,
            taken_bytes: 0,
            durable_bytes: 0,
            now_ns: controller.command(0),
            peak_bytes: 0,
            controller,
        }
    }

    /// Writes up to the end of the flash page, or up to a checkpoint.
    fn write_next(&mut self) {
        let to_page_end = self.page_blocks - self.next % self.page_blocks;
        let oldest_ns = self.load.arrival_of_byte_ns(self.durable_bytes + 1);
        let deadline_ns = oldest_ns + self.load.window_ns;
        let complete = self.complete_before(deadline_ns);
        match complete < to_page_end {
            true => {
                self.write(complete.max(1), deadline_ns);
                self.checkpoint();
            }
            false => {
                self.write(to_page_end, u64::MAX);
                if self.is_checkpoint_due(oldest_ns, deadline_ns) {
                    self.checkpoint();
                }
            }
        }
        if self.next == self.end {
            // Like a logger that has been emptied.
            self.next = self.start;
            self.checkpoint();
        }
    }

    /// Returns the number of whole blocks that wait at `ns`, beyond those written.
    fn complete_before(&self, ns: u64) -> u64 {
        let arrived = self.load.arrived_bytes(ns.max(self.now_ns));
        arrived.saturating_sub(self.taken_bytes) / BLOCK_BYTES as u64
    }

    /// Returns true if the write ends here because the next end of a step would come too late.
    fn is_checkpoint_due(&self, oldest_ns: u64, deadline_ns: u64) -> bool {
        let requested_ns = oldest_ns + self.load.window_ns / REQUEST_PART * (REQUEST_PART - 1);
        let step_bytes = STEP_BLOCKS * BLOCK_BYTES as u64;
        let next_ns = self.load.arrival_of_byte_ns(self.taken_bytes + step_bytes);
        let is_step = self.next.is_multiple_of(STEP_BLOCKS);
        is_step && (self.now_ns >= requested_ns || next_ns > deadline_ns)
    }

    /// Sends blocks; a block that is incomplete at `latest_ns` is filled up.
    fn write(&mut self, blocks: u64, latest_ns: u64) {
        let first_ns = self.block_arrival_ns(1).min(latest_ns).max(self.now_ns) + self.block_ns;
        let waiting = self.load.arrived_bytes(first_ns) - self.taken_bytes;
        self.peak_bytes = self.peak_bytes.max(waiting);
        let last_ns = self.block_arrival_ns(blocks).min(latest_ns);
        let all_ns = self.now_ns + blocks * self.block_ns;
        let end_ns = all_ns.max(last_ns + self.block_ns);
        let bytes = blocks * BLOCK_BYTES as u64;
        self.taken_bytes += bytes.min(self.load.arrived_bytes(end_ns) - self.taken_bytes);
        let busy = self.controller.write(end_ns, self.next, blocks);
        self.next += blocks;
        self.now_ns = end_ns + busy.total_ns;
    }

    fn block_arrival_ns(&self, blocks: u64) -> u64 {
        self.load
            .arrival_of_byte_ns(self.taken_bytes + blocks * BLOCK_BYTES as u64)
    }

    /// Ends the write, which makes everything durable, and begins another one.
    fn checkpoint(&mut self) {
        self.durable_bytes = self.taken_bytes;
        self.now_ns += self.controller.command(self.now_ns);
    }
}

/// Runs a task in card mode.
pub(crate) fn run(
    task: &Task,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Option<Vec<Row>>, SweepError> {
    let spec = task.spec;
    let load = CardLoad {
        rate_hz: task.rate_hz,
        sample_bytes: spec.sample_bytes,
        run_ns: spec.run_s * NS_PER_S,
        window_ns: spec.durability_window_ms * 1_000_000,
    };
    let mut rows = Vec::new();
    for (member, profile) in task.numbered() {
        let set = Set::measure(&task.target(), profile, task.board)?;
        for seed in task.seeds.clone() {
            let Some(peak_bytes) = peak_backlog(&set, seed, &load, is_stopped) else {
                return Ok(None);
            };
            for &buffer_bytes in task.buffers_bytes {
                let mut row = task.row(member, buffer_bytes, seed);
                row.lost = peak_bytes > buffer_bytes;
                row.peak_backlog_bytes = peak_bytes;
                rows.push(row);
            }
        }
    }
    Ok(Some(rows))
}
