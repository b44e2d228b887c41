//! A long stream by the card's timing alone: tens of millions of blocks a second of real time.
//!
//! Wire and driver cost each block the same, which a short stream over the wire has shown. What differs
//! is how long the card is busy once a page is whole, and that a [`Controller`] tells without any data.
//! The driver notices the end of busy a little later; `tests/long.rs` holds the one against the other.

use crate::stream::BLOCK_BYTES;
use cardiograph_sim_card::{Controller, Profile, Seed};
use cardiograph_timing::{Pass, Replay};
use cardiograph_trace::{About, Operation, OperationKind, Trace};

/// A stream to a new card. Played twice it is the same.
#[derive(Clone, Copy)]
pub struct LongStream<'a> {
    /// The card.
    pub profile: &'a Profile,
    /// Its seed.
    pub seed: u64,
    /// The first block. Half a card on, it begins there again, as a logger does that is emptied.
    pub start: u64,
    /// How many blocks are written.
    pub blocks: u64,
    /// How long a block takes besides the busy time before it, in ns.
    pub block_ns: u64,
    /// Time between two blocks in ns, if they do not come as fast as they can.
    pub period_ns: Option<f64>,
}

/// What a stream takes of a card.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// Energy from its supply, in pJ.
    pub energy_pj: u64,
    /// Flash blocks it erased.
    pub erases: u64,
    /// Time, in ns.
    pub elapsed_ns: u64,
}

impl LongStream<'_> {
    /// Every block, from one push to the next.
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

    /// What it takes of the card.
    pub fn taken(&self) -> Taken {
        let mut pushes = Pushes::of(self);
        pushes.by_ref().for_each(drop);
        let elapsed_ns = pushes.ready_ns.max(pushes.now_ns);
        Taken {
            energy_pj: pushes.controller.energy(elapsed_ns).total_pj(),
            erases: pushes.controller.erases(),
            elapsed_ns,
        }
    }
}

impl Replay for LongStream<'_> {
    fn replay_alike(&self, pass: &mut impl Pass) {
        let times_ns = Pushes::of(self).map(|(start_ns, end_ns)| end_ns - start_ns);
        pass.take_alike(BLOCK_BYTES, times_ns);
    }
}

/// Start and end of every push.
struct Pushes<'a> {
    stream: &'a LongStream<'a>,
    controller: Controller,
    page_blocks: u64,
    /// Blocks that are pushed.
    done: u64,
    next: u64,
    end: u64,
    page_start: u64,
    now_ns: u64,
    /// When the card is no longer busy.
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

    /// The card writes what it has of a page.
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
        let due_ns = self
            .stream
            .period_ns
            .map_or(0, |period| (period * self.done as f64) as u64);
        let start_ns = due_ns.max(self.now_ns);
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
