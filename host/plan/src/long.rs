//! A long stream by the card's timing alone: tens of millions of blocks a second of real time.
//!
//! Wire and driver cost each block the same, which a short stream over the wire has shown. What differs
//! is how long the card is busy once a page is whole, and that a [`Controller`] tells without any data.
//! The driver notices the end of busy a little later; `tests/long.rs` holds the one against the other.

use crate::stream::BLOCK_BYTES;
use cardiograph_sim_card::{Controller, Profile, Seed};
use cardiograph_trace::{About, Operation, OperationKind, Trace};

/// A stream as it goes to a card.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Its first block.
    pub start: u64,
    /// How long a block takes besides the busy time before it, in ns.
    pub block_ns: u64,
    /// Time between two blocks in ns, if they do not come as fast as they can.
    pub period_ns: Option<f64>,
}

/// What a long stream does to a card.
pub struct Long {
    /// Every block, from one push to the next.
    pub trace: Trace,
    /// What the card took from its supply, in pJ.
    pub energy_pj: u64,
    /// Flash blocks it erased.
    pub erases: u64,
    /// How long it took, in ns.
    pub elapsed_ns: u64,
}

/// So many blocks of a stream to a new card.
pub fn long_stream(profile: &Profile, seed: u64, pace: &Pace, blocks: u64) -> Long {
    let mut controller = Controller::new(profile, Seed::new(seed));
    let page_blocks = controller.blocks_per_page();
    let mut trace = Trace::new(About::default());
    let mut ready_ns = controller.command(0);
    let (mut page_start, mut now_ns) = (pace.start, 0);
    for block in 0..blocks {
        let due_ns = pace
            .period_ns
            .map_or(0, |period| (period * block as f64) as u64);
        let start_ns = due_ns.max(now_ns);
        now_ns = start_ns.max(ready_ns) + pace.block_ns;
        let next = pace.start + block + 1;
        if next.is_multiple_of(page_blocks) {
            let busy = controller.write(now_ns, page_start, next - page_start);
            ready_ns = now_ns + busy.total_ns;
            page_start = next;
        }
        let pushed = Operation {
            kind: OperationKind::Write,
            file: 0,
            offset_bytes: block * BLOCK_BYTES,
            length_bytes: BLOCK_BYTES,
            start_ns,
            end_ns: now_ns,
        };
        if trace.push(&pushed).is_err() {
            unreachable!("virtual time does not go back");
        }
    }
    let elapsed_ns = ready_ns.max(now_ns);
    Long {
        trace,
        energy_pj: controller.energy(elapsed_ns).total_pj(),
        erases: controller.erases(),
        elapsed_ns,
    }
}
