//! Who may have the card, besides the samples.
//!
//! A ring that takes `rate` bytes a second bears an absence of the card as long as
//!
//! ```text
//!   level + rate * cost <= capacity
//! ```
//!
//! cost being what this card has shown: the longest time that such a thing took lately.

use crate::limits::{COST_US_FIRST, RATE_US};

/// Longest time of one kind of operation lately, in us: a longer one counts at once, and is forgotten by a
/// sixteenth with each shorter one.
#[derive(Clone, Copy)]
pub(crate) struct Cost(u32);

impl Cost {
    pub(crate) const fn new() -> Cost {
        Cost(COST_US_FIRST)
    }

    pub(crate) fn us(self) -> u32 {
        self.0
    }

    pub(crate) fn saw(&mut self, us: u32) {
        self.0 = us.max(self.0 - self.0 / 16);
    }

    /// Forgets a sixteenth, without having seen any.
    pub(crate) fn fade(&mut self) {
        self.0 -= self.0 / 16;
    }
}

/// Bytes a second that come into a ring.
#[derive(Clone, Copy)]
pub(crate) struct Rate {
    bytes_per_s: u32,
    since_us: u64,
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

    /// The ring has taken so many bytes by now, modulo 2^32. A rate that falls is believed slowly.
    pub(crate) fn saw(&mut self, now_us: u64, head: u32) {
        let us = now_us.saturating_sub(self.since_us);
        if us < RATE_US {
            return;
        }
        let bytes = u64::from(head.wrapping_sub(self.head));
        let rate = u32::try_from(bytes.saturating_mul(1_000_000) / us).unwrap_or(u32::MAX);
        self.bytes_per_s = rate.max(self.bytes_per_s - self.bytes_per_s / 8);
        self.since_us = now_us;
        self.head = head;
    }

    /// Bytes that come in so many us.
    pub(crate) fn bytes_in(self, us: u32) -> u64 {
        (u64::from(self.bytes_per_s) * u64::from(us)).div_ceil(1_000_000)
    }

    /// How long so many bytes take to come, in us; `None` if none come.
    pub(crate) fn us_for(self, bytes: usize) -> Option<u64> {
        (bytes as u64 * 1_000_000).checked_div(u64::from(self.bytes_per_s))
    }
}
