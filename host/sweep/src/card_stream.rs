//! The policy `stream` in the mode `card`: the recorder's writes.
//!
//! ```text
//!   samples ──> backlog ──> flash pages, in order ──> Controller: busy time
//!                              │ durability window over: the write ends at a multiple of 32 KiB,
//!                              └─ or, if the samples are too slow for that, within a page
//! ```
//!
//! Files, directories and marks are left out. A run takes one step per flash page, or a single one for several pages if
//! the card can only program them, each before the next one has arrived ([`Quick`]). The result is the same.

use crate::card_mode::{CardLoad, NS_PER_S, Set};
use cardiograph_sim_card::{BLOCK_BYTES, Controller, Seed};

/// First block of the recordings: 16 MiB, past the file system's own blocks.
const START_BLOCK: u64 = 32_768;
/// Blocks after which the recorder prefers to end a write: 32 KiB.
const STEP_BLOCKS: u64 = 64;
const STEP_BYTES: u64 = STEP_BLOCKS * BLOCK_BYTES as u64;
/// The recorder requests a checkpoint this fraction (1/n) of the durability window before its end.
const REQUEST_PART: u64 = 4;
/// Number of steps between two checks for a stop.
const STEPS_PER_CHECK: u64 = 4096;

/// Returns the highest number of bytes that wait at any time of a recording on a new card, including the block being
/// sent, or `None` if `is_stopped` returned true.
pub fn peak_backlog(
    set: &Set,
    seed: u64,
    load: &CardLoad,
    is_stopped: &dyn Fn() -> bool,
) -> Option<u64> {
    let mut run = Run::new(set, seed, load);
    let mut steps = 0_u64;
    while run.now_ns < load.run_ns {
        run.write_next();
        steps += 1;
        if steps.is_multiple_of(STEPS_PER_CHECK) && is_stopped() {
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
    quick: Option<Quick>,
}

/// Condition and bounds of steps of several pages.
///
/// As long as the card only programs pages, and each one before the last block of the next one has arrived, the time
/// at which a page is received depends on the samples only.
struct Quick {
    /// Longest time to program a page.
    program_ns: u64,
    /// Longest idle time of the card between two pages.
    idle_ns: u64,
    /// Most bytes that can wait meanwhile. Once the peak is higher, it need not be compared with each page.
    waiting_bytes: u64,
    /// Bytes up to which no page ends after the recording.
    run_bytes: u64,
}

impl Quick {
    /// Returns `None` if the card or the rate do not permit such steps.
    fn of(controller: &Controller, load: &CardLoad, block_ns: u64) -> Option<Quick> {
        let program_ns = controller.program_max_ns()?;
        let (rate, sample) = (u64::from(load.rate_hz), u64::from(load.sample_bytes));
        let page_blocks = controller.blocks_per_page();
        let page_bytes = page_blocks * BLOCK_BYTES as u64;
        // Arrivals are rounded down to ns.
        let shortest_ns = (page_bytes / sample * NS_PER_S / rate).saturating_sub(1);
        let longest_ns = page_bytes.div_ceil(sample) * NS_PER_S / rate + 1;
        let bytes_in = |ns: u64| (ns * rate).div_ceil(NS_PER_S) * sample;
        let waiting_bytes = BLOCK_BYTES as u64 + 2 * sample + bytes_in(2 * block_ns + program_ns);
        let last_ns = load.run_ns.saturating_sub(block_ns + program_ns + 1);
        (block_ns > 0 && shortest_ns > program_ns + page_blocks * block_ns).then(|| Quick {
            program_ns,
            idle_ns: longest_ns + block_ns,
            waiting_bytes,
            run_bytes: load.arrived_bytes(last_ns),
        })
    }
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
            quick: Quick::of(&controller, load, set.block_ns),
            controller,
        }
    }

    /// Writes up to the end of a flash page, or up to a checkpoint.
    fn write_next(&mut self) {
        let to_page_end = self.page_blocks - self.next % self.page_blocks;
        let oldest_ns = self.load.arrival_of_byte_ns(self.durable_bytes + 1);
        let deadline_ns = oldest_ns + self.load.window_ns;
        let is_written = to_page_end == self.page_blocks && self.write_pages(oldest_ns);
        match is_written || self.complete_before(deadline_ns) >= to_page_end {
            true => {
                if !is_written {
                    self.write(to_page_end, u64::MAX);
                }
                if self.is_checkpoint_due(oldest_ns, deadline_ns) {
                    self.checkpoint();
                }
            }
            false => {
                self.write(self.complete_before(deadline_ns).max(1), deadline_ns);
                self.checkpoint();
            }
        }
        if self.next == self.end {
            // Like a logger that has been emptied.
            self.next = self.start;
            self.checkpoint();
        }
    }

    /// Writes several pages in one step; returns false if pages must be written one after the other.
    fn write_pages(&mut self, oldest_ns: u64) -> bool {
        let Some(quick) = self.quick.as_ref() else {
            return false;
        };
        let (load, block_ns) = (self.load, self.block_ns);
        let page_bytes = self.page_blocks * BLOCK_BYTES as u64;
        let received_ns = |taken: u64| load.arrival_of_byte_ns(taken) + block_ns;
        let is_behind = self.now_ns > received_ns(self.taken_bytes) + quick.program_ns;
        let first_ns = received_ns(self.taken_bytes + page_bytes);
        if is_behind || first_ns > self.now_ns.saturating_add(quick.idle_ns) {
            return false;
        }
        let bytes = self.bytes_before_checkpoint(quick, oldest_ns);
        let bytes = bytes.min((self.end - self.next) * BLOCK_BYTES as u64);
        let pages = bytes.min(quick.run_bytes.saturating_sub(self.taken_bytes)) / page_bytes;
        if pages == 0 {
            return false;
        }
        let (mut taken, mut now_ns, mut peak) = (self.taken_bytes, self.now_ns, self.peak_bytes);
        let received = |busy_ns| {
            if peak < quick.waiting_bytes {
                let block_ns = load
                    .arrival_of_byte_ns(taken + BLOCK_BYTES as u64)
                    .max(now_ns)
                    + block_ns;
                peak = peak.max(load.arrived_bytes(block_ns) - taken);
            }
            taken += page_bytes;
            let end_ns = received_ns(taken);
            now_ns = end_ns + busy_ns;
            end_ns
        };
        let written =
            self.controller
                .write_spaced(self.next, pages as u32, quick.idle_ns, received);
        (self.taken_bytes, self.now_ns, self.peak_bytes) = (taken, now_ns, peak);
        self.next += u64::from(written) * self.page_blocks;
        written > 0
    }

    /// Returns the number of bytes after which a checkpoint may be due for the first time: the end of a step; or fewer,
    /// if the window ends before.
    fn bytes_before_checkpoint(&self, quick: &Quick, oldest_ns: u64) -> u64 {
        let taken = self.taken_bytes;
        let deadline_ns = oldest_ns + self.load.window_ns;
        let requested_ns = self.requested_ns(oldest_ns);
        let arrived_in_window = self.load.arrived_bytes(deadline_ns);
        let before_ns = requested_ns.saturating_sub(self.block_ns + quick.program_ns + 1);
        // No checkpoint is due at the end of a step up to here.
        let without = self.load.arrived_bytes(before_ns);
        let without = without.min(arrived_in_window.saturating_sub(STEP_BYTES));
        let to_step_end = (STEP_BLOCKS - self.next % STEP_BLOCKS) * BLOCK_BYTES as u64;
        let steps = match without.checked_sub(taken + to_step_end) {
            Some(more) => more / STEP_BYTES + 1,
            None => 0,
        };
        let bytes = to_step_end + steps * STEP_BYTES;
        bytes.min(arrived_in_window.saturating_sub(taken))
    }

    /// Returns the number of whole blocks that wait at `ns`, beyond those written.
    fn complete_before(&self, ns: u64) -> u64 {
        let arrived = self.load.arrived_bytes(ns.max(self.now_ns));
        arrived.saturating_sub(self.taken_bytes) / BLOCK_BYTES as u64
    }

    fn requested_ns(&self, oldest_ns: u64) -> u64 {
        oldest_ns + self.load.window_ns / REQUEST_PART * (REQUEST_PART - 1)
    }

    /// Returns true if the write ends here because the next end of a step would come too late.
    fn is_checkpoint_due(&self, oldest_ns: u64, deadline_ns: u64) -> bool {
        let next_ns = self.load.arrival_of_byte_ns(self.taken_bytes + STEP_BYTES);
        let is_step = self.next.is_multiple_of(STEP_BLOCKS);
        is_step && (self.now_ns >= self.requested_ns(oldest_ns) || next_ns > deadline_ns)
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

#[cfg(test)]
mod tests {
    use super::*;
    use cardiograph_sim_card::{Board, CARDS, Profile};

    /// Runs to the end with or without steps of several pages; returns the state, and the number of steps.
    fn run(set: &Set, seed: u64, load: &CardLoad, is_quick: bool) -> ([u64; 10], u64) {
        let mut run = Run::new(set, seed, load);
        run.quick = run.quick.filter(|_| is_quick);
        let mut steps = 0;
        while run.now_ns < load.run_ns {
            run.write_next();
            steps += 1;
        }
        let card = &run.controller;
        let state = [
            run.peak_bytes,
            run.now_ns,
            run.next,
            run.taken_bytes,
            run.durable_bytes,
            card.busy_ns(),
            card.ready_ns(),
            card.erases(),
            card.pages_programmed().unwrap_or(0),
            u64::from(card.spares_left()),
        ];
        (state, steps)
    }

    /// Compares both ways; returns the number of steps of each.
    fn compare(card: &str, member: &Profile, load: &CardLoad, seed: u64) -> [u64; 2] {
        let board = Board::named("esp32").unwrap();
        let set = Set::measure(card, member, &board).unwrap();
        let [(quick, quick_steps), (slow, slow_steps)] =
            [true, false].map(|is_quick| run(&set, seed, load, is_quick));
        assert_eq!(quick, slow, "{card}, {load:?}, seed {seed}");
        [quick_steps, slow_steps]
    }

    fn load(rate_hz: u32, sample_bytes: u32, run_s: u64, window_ms: u64) -> CardLoad {
        CardLoad {
            rate_hz,
            sample_bytes,
            run_ns: run_s * NS_PER_S,
            window_ns: window_ms * 1_000_000,
        }
    }

    #[test]
    fn several_pages_in_one_step_give_the_state_of_one_after_the_other() {
        let mut steps = [0; 2];
        let mut seed = 0;
        for (name, _) in CARDS {
            let profile = Profile::named(name).unwrap();
            for member in profile.members(name).unwrap() {
                for (load, has_pages) in [
                    (load(860, 100, 600, 1000), true),
                    (load(3300, 77, 120, 333), true),
                    (load(40, 405, 900, 5000), true),
                    (load(9000, 14, 60, 20_000), true),
                    (load(8, 81, 3600, 1000), false),
                ] {
                    seed += 1;
                    let [quick, slow] = compare(name, &member, &load, seed);
                    // Less than a page per window leaves nothing to join, and pages that a card receives ahead are not joined.
                    if !has_pages || member.ftl().receive_pages > 0 {
                        assert_eq!(quick, slow, "{name}");
                        continue;
                    }
                    steps = [steps[0] + quick, steps[1] + slow];
                }
            }
        }
        assert!(2 * steps[0] < steps[1], "{steps:?} steps");
    }

    #[test]
    fn the_state_stays_the_same_once_a_card_has_been_filled_and_is_written_again() {
        for name in ["panasonic-1g", "sandisk-1g-2008"] {
            let member = Profile::named(name).unwrap();
            let member = &member.members(name).unwrap()[0];
            let two_turns = load(1720, 100, 3 * 3600, 1000);
            let [quick, slow] = compare(name, member, &two_turns, 1);
            assert!(quick < slow);
        }
    }
}
