//! Decides when work other than samples may use the card.
//!
//! While the card is busy with other work, a ring that receives `rate` bytes per second suffices if
//!
//! ```text
//!   level + rate * (cost + longest stall) <= capacity
//! ```
//!
//! where cost is the recent duration of such an operation on this card, and the stall is the longest since
//! the card was acquired.

use crate::limits::{
    BUSY_US_MAX, COST_US_FIRST, COST_US_MIN, RATE_US, STEP_PART_OF_RING, STEP_STALL_US,
};
use cardiograph_card::BLOCK_BYTES;

/// Number of blocks after which the totals of the mean latency are halved, so that older blocks count less.
const BLOCKS_MAX: u32 = 65_536;

/// Recent duration of one kind of operation, in us. A stall during an operation at most doubles the cost,
/// because stalls are accounted for separately.
#[derive(Clone, Copy)]
pub(crate) struct Cost(u32);

impl Cost {
    pub(crate) const fn new() -> Cost {
        Cost(COST_US_FIRST)
    }

    pub(crate) fn us(self) -> u32 {
        self.0
    }

    pub(crate) fn observe(&mut self, us: u32) {
        self.0 = match us > self.0 {
            true => us.min(self.0.saturating_mul(2).max(COST_US_MIN)),
            false => self.0 - (self.0 - us) / 4,
        };
    }

    /// Halves the cost without a measurement.
    pub(crate) fn fade(&mut self) {
        self.0 /= 2;
    }
}

/// Arrival rate of a ring, in bytes per second.
#[derive(Clone, Copy)]
pub(crate) struct Rate {
    bytes_per_s: u32,
    /// Time of the last observation, in us modulo 2^32.
    since_us: u32,
    head: u32,
}

impl Rate {
    pub(crate) const fn new() -> Rate {
        Rate {
            bytes_per_s: 0,
            since_us: 0,
            head: 0,
        }
    }

    /// Creates a rate that was last observed at this time, when `head` bytes had been pushed.
    #[cfg(test)]
    pub(crate) fn of(bytes_per_s: u32, now_us: u64, head: u32) -> Rate {
        Rate {
            bytes_per_s,
            since_us: now_us as u32,
            head,
        }
    }

    /// Updates the rate, given that `head` bytes (modulo 2^32) have been pushed by now. Rises apply at once,
    /// falls gradually.
    pub(crate) fn observe(&mut self, now_us: u64, head: u32) {
        let us = u64::from((now_us as u32).wrapping_sub(self.since_us));
        if us < RATE_US {
            return;
        }
        let bytes = u64::from(head.wrapping_sub(self.head));
        let rate = u32::try_from(bytes.saturating_mul(1_000_000) / us).unwrap_or(u32::MAX);
        self.bytes_per_s = rate.max(self.bytes_per_s - self.bytes_per_s / 8);
        self.since_us = now_us as u32;
        self.head = head;
    }

    /// Returns the number of bytes that arrive in `us`.
    pub(crate) fn bytes_in(self, us: u32) -> u64 {
        (u64::from(self.bytes_per_s) * u64::from(us)).div_ceil(1_000_000)
    }

    /// Returns the time until `bytes` have arrived, in us; `None` at rate 0.
    pub(crate) fn us_for(self, bytes: u64) -> Option<u64> {
        bytes
            .saturating_mul(1_000_000)
            .checked_div(u64::from(self.bytes_per_s))
    }
}

/// Costs observed since the card was acquired. The time for mounting, file-system steps and reads is kept
/// apart from that of block writes.
pub(crate) struct Costs {
    /// Cost of a checkpoint: ending the open write.
    pub(crate) commit: Cost,
    /// Longest file-system step, in us.
    step_longest_us: u32,
    /// Cost of a read requested by another task.
    pub(crate) read: Cost,
    /// Longest latency of one block, or the declared stall if that is longer, in us.
    pub(crate) longest_us: u32,
    /// Blocks written, and their total latency; halved from time to time.
    blocks: u32,
    blocks_us: u32,
}

impl Costs {
    /// Returns the costs of a card about which only the declared stall is known.
    pub(crate) const fn new(stall_budget_us: u32) -> Costs {
        Costs {
            commit: Cost::new(),
            step_longest_us: 0,
            read: Cost::new(),
            longest_us: stall_budget_us,
            blocks: 0,
            blocks_us: 0,
        }
    }

    /// Records the latency of `blocks` blocks.
    pub(crate) fn observe_block(&mut self, us: u32, blocks: u32) {
        self.longest_us = self.longest_us.max(us);
        self.blocks += blocks;
        self.blocks_us = self.blocks_us.saturating_add(us);
        if self.blocks >= BLOCKS_MAX {
            (self.blocks, self.blocks_us) = (self.blocks / 2, self.blocks_us / 2);
        }
    }

    /// Records the duration of a file-system step.
    pub(crate) fn observe_step(&mut self, us: u32) {
        self.step_longest_us = self.step_longest_us.max(us);
    }

    /// Returns the mean time to write `bytes`, in us.
    pub(crate) fn us_to_write(&self, bytes: u64) -> u64 {
        (u64::from(self.blocks_us) * bytes.div_ceil(BLOCK_BYTES as u64))
            .checked_div(self.blocks.into())
            .unwrap_or(0)
    }

    /// Returns the stall to plan for: the specification's limit, or the longest observed if that is longer.
    pub(crate) fn stall_us(&self) -> u32 {
        self.longest_us.max(BUSY_US_MAX)
    }

    /// Returns true if a ring absorbs `us` without the card, followed by the longest stall. If that stall alone would fill the
    /// ring, `part` (1/n) of the ring counts as room.
    pub(crate) fn absorbs(
        &self,
        rate: Rate,
        level: usize,
        capacity: usize,
        us: u32,
        part: u64,
    ) -> bool {
        let kept = rate.bytes_in(self.longest_us);
        let room = (capacity as u64).saturating_sub(kept);
        let room = room.max(capacity as u64 / part);
        level as u64 + rate.bytes_in(us) <= room
    }

    /// Returns true if a ring absorbs an interruption of the write plus the garbage collection that this may
    /// cause: cards stall after small writes to other places. Garbage collection may follow only one of many
    /// interruptions, so at least the specification's limit is assumed, not just the longest stall observed.
    pub(crate) fn absorbs_garbage(&self, rate: Rate, level: usize, capacity: usize) -> bool {
        let us = BUSY_US_MAX.max(self.longest_us.saturating_mul(2));
        level as u64 + rate.bytes_in(us) <= capacity as u64
    }

    /// Returns true if a ring absorbs a file-system step. A ring too small for the worst garbage collection
    /// has to be nearly empty first. Then half of it must absorb the longest step observed on this card plus
    /// a stall after it; the other half is for stalls that occur anyway.
    pub(crate) fn absorbs_step(&self, rate: Rate, level: usize, capacity: usize) -> bool {
        let stall_us = self.longest_us.max(STEP_STALL_US);
        let needed = rate.bytes_in(self.step_longest_us.saturating_add(stall_us));
        let (level_bytes, capacity_bytes) = (level as u64, capacity as u64);
        let is_low = level_bytes <= capacity_bytes / STEP_PART_OF_RING;
        self.absorbs_garbage(rate, level, capacity)
            || is_low && level_bytes + needed <= capacity_bytes / 2
    }
}

#[cfg(test)]
mod tests;
