//! Who may have the card, besides the samples.
//!
//! A ring that takes `rate` bytes a second bears an absence of the card as long as
//!
//! ```text
//!   level + rate * cost <= capacity
//! ```
//!
//! cost being what such a thing took lately on this card, and the longest stall that it has shown.

use crate::limits::{COST_US_FIRST, COST_US_MIN, RATE_US};

/// What one kind of operation takes, in us. A stall that happens to fall into one is not believed at once:
/// it doubles the cost at most. Stalls are accounted for by themselves.
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
        self.0 = match us > self.0 {
            true => us.min(self.0.saturating_mul(2).max(COST_US_MIN)),
            false => self.0 - (self.0 - us) / 4,
        };
    }

    /// Forgets half, without having seen any.
    pub(crate) fn fade(&mut self) {
        self.0 /= 2;
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
    pub(crate) fn us_for(self, bytes: u64) -> Option<u64> {
        bytes
            .saturating_mul(1_000_000)
            .checked_div(u64::from(self.bytes_per_s))
    }
}
