//! Long streams from the card's timing alone: tens of millions of blocks per second of real time.
//!
//! Bus and driver add the same time to each block; a short stream over the simulated bus measures this time.
//! Only the busy time after a complete page varies, and a [`Controller`] computes it without any data. The
//! driver notices the end of busy slightly later; `tests/long.rs` compares the two.

use crate::stream::BLOCK_BYTES;
use cardiograph_sim_card::{Controller, Profile, Seed};
use cardiograph_timing::{Pass, Replay};
use cardiograph_trace::{About, Operation, OperationKind, Trace};

/// A stream to a new card. Replaying it gives the same result every time.
#[derive(Clone, Copy)]
pub struct LongStream<'a> {
    /// Card profile.
    pub profile: &'a Profile,
    /// Seed of the simulated card.
    pub seed: u64,
    /// First block. After writing half of the card's capacity, the stream starts at this block again, like a
    /// logger that has been emptied.
    pub start: u64,
    /// Number of blocks written.
    pub blocks: u64,
    /// Time per block in ns, apart from the busy time before it.
    pub block_ns: u64,
    /// Interval between blocks in ns; `None` if each block follows as soon as the card accepts it.
    pub period_ns: Option<f64>,
}

/// Energy, erases and time of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Consumption {
    /// Energy from the supply, in pJ.
    pub energy_pj: u64,
    /// Number of flash blocks erased.
    pub erases: u64,
    /// Duration in ns.
    pub elapsed_ns: u64,
}

impl LongStream<'_> {
    /// Returns the pushes of all blocks as operations.
    pub fn trace(&self) -> Trace {
        let mut trace = Trace::new(About::default());
        for (block, (start_ns, end_ns)) in Pushes::of(self).enumerate() {
            let pushed = Operation {
                kind: OperationKind::Write,
                file: 0,
                offset_bytes: block as u64 * BLOCK_BYTES,
                length_bytes: BLOCK_BYTES,
                start_ns,
                end_ns,
            };
            if trace.push(&pushed).is_err() {
                unreachable!("virtual time does not go back");
            }
        }
        trace
    }

    /// Replays the stream while `goes_on`, which is called for each page, returns true.
    pub(crate) fn replay_while(&self, pass: &mut impl Pass, goes_on: impl Fn() -> bool) {
        let mut pushes = Pushes::of(self);
        while let Some((start_ns, end_ns)) = pushes.next().filter(|_| goes_on()) {
            pass.take_run(BLOCK_BYTES, std::iter::once(end_ns - start_ns));
            pass.take_equal(BLOCK_BYTES, self.block_ns, pushes.push_alike());
        }
    }

    /// Returns the energy, erases and time that the stream takes.
    pub fn consumption(&self) -> Consumption {
        let mut pushes = Pushes::of(self);
        pushes.by_ref().for_each(drop);
        let elapsed_ns = pushes.ready_ns.max(pushes.now_ns);
        Consumption {
            energy_pj: pushes.controller.energy(elapsed_ns).total_pj(),
            erases: pushes.controller.erases(),
            elapsed_ns,
        }
    }
}

impl Replay for LongStream<'_> {
    fn replay_run(&self, pass: &mut impl Pass) {
        self.replay_while(pass, || true);
    }
}

/// Iterator over the start and end of every push.
struct Pushes<'a> {
    stream: &'a LongStream<'a>,
    controller: Controller,
    page_blocks: u64,
    /// Number of blocks pushed.
    done: u64,
    next: u64,
    end: u64,
    page_start: u64,
    now_ns: u64,
    /// Time at which the card is no longer busy.
    ready_ns: u64,
}

impl<'a> Pushes<'a> {
    fn of(stream: &'a LongStream) -> Pushes<'a> {
        let mut controller = Controller::new(stream.profile, Seed::new(stream.seed));
        Pushes {
            page_blocks: controller.blocks_per_page(),
            ready_ns: controller.command(0),
            controller,
            done: 0,
            next: stream.start,
            end: stream.start + stream.profile.capacity_bytes / BLOCK_BYTES / 2,
            page_start: stream.start,
            now_ns: 0,
            stream,
        }
    }

    /// Pushes the blocks before the last one of the page, if the card accepts each as soon as it arrives, and returns
    /// their number; each takes the time of a block.
    fn push_alike(&mut self) -> u64 {
        if self.stream.period_ns.is_some() || self.now_ns < self.ready_ns {
            return 0;
        }
        let page_end = (self.next + 1)
            .next_multiple_of(self.page_blocks)
            .min(self.end);
        let count = (page_end - 1 - self.next).min(self.stream.blocks - self.done);
        self.now_ns += count * self.stream.block_ns;
        self.done += count;
        self.next += count;
        count
    }

    /// Writes the blocks of an incomplete page.
    fn write_page(&mut self) {
        let (start, count) = (self.page_start, self.next - self.page_start);
        let busy = self.controller.write(self.now_ns, start, count);
        self.ready_ns = self.now_ns + busy.total_ns;
        self.page_start = self.next;
    }

    fn begin_again(&mut self) {
        self.ready_ns += self.controller.command(self.ready_ns);
        (self.next, self.page_start) = (self.stream.start, self.stream.start);
    }
}

impl Iterator for Pushes<'_> {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        if self.done == self.stream.blocks {
            return None;
        }
        let scheduled_ns = self
            .stream
            .period_ns
            .map_or(0, |period| (period * self.done as f64) as u64);
        let start_ns = scheduled_ns.max(self.now_ns);
        self.now_ns = start_ns.max(self.ready_ns) + self.stream.block_ns;
        self.done += 1;
        self.next += 1;
        let is_over = self.next == self.end;
        if is_over || self.next.is_multiple_of(self.page_blocks) {
            self.write_page();
        }
        if is_over {
            self.begin_again();
        }
        Some((start_ns, self.now_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Equal blocks in one step, and one block at a time, over the end of the stream's range and back to its start.
    #[test]
    fn pages_in_steps_take_as_long_as_their_blocks() {
        struct Times(Vec<u64>);
        impl Pass for Times {
            fn take_run(&mut self, _: u64, durations_ns: impl Iterator<Item = u64>) {
                self.0.extend(durations_ns);
            }
        }
        let mut profile = Profile::named("panasonic-1g").unwrap();
        profile.capacity_bytes = 64 << 20;
        for (start, blocks) in [(0, 1), (5, 200_001), (64, 70_000), (8191, 3)] {
            for block_ns in [1000, 1_000_000] {
                let stream = LongStream {
                    profile: &profile,
                    seed: 3,
                    start,
                    blocks,
                    block_ns,
                    period_ns: None,
                };
                let mut times = Times(Vec::new());
                stream.replay_run(&mut times);
                let each: Vec<u64> = Pushes::of(&stream)
                    .map(|(start, end)| end - start)
                    .collect();
                assert!(
                    times.0 == each,
                    "start {start}, {blocks} blocks of {block_ns} ns"
                );
            }
        }
    }
}
