//! Write latencies of the last hour, for the live view.

use cardiograph_server::WriteLatency;
use cardiograph_sim_card::wire::SpiCard;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Time after which a latency is dropped, in ms.
const HISTORY_MS: u64 = 3_600_000;
/// Upper bound for fast recordings: 16 MB.
const LATENCIES_MAX: usize = 1 << 20;

/// Latencies in the order of their ends, numbered from 0.
#[derive(Default)]
pub(crate) struct History {
    kept: VecDeque<(u64, u32)>,
    /// Number of the oldest one kept.
    first: u64,
}

impl History {
    /// Adds a latency by its end, in ms, and its length, in us.
    pub(crate) fn push(&mut self, at_ms: u64, us: u32) {
        self.kept.push_back((at_ms, us));
        let is_old = |oldest: Option<&(u64, u32)>| {
            oldest.is_some_and(|(then_ms, _)| at_ms.saturating_sub(*then_ms) > HISTORY_MS)
        };
        while self.kept.len() > LATENCIES_MAX || is_old(self.kept.front()) {
            self.kept.pop_front();
            self.first += 1;
        }
    }

    /// Returns a latency, or the oldest one kept if that is newer.
    pub(crate) fn get(&self, number: u64) -> Option<WriteLatency> {
        let number = number.max(self.first);
        let index = usize::try_from(number - self.first).ok()?;
        let (at_ms, us) = *self.kept.get(index)?;
        Some(WriteLatency { number, at_ms, us })
    }

    /// Returns the newest latencies in us, at most `count`.
    pub(crate) fn newest(&self, count: usize) -> Vec<u32> {
        self.kept.iter().rev().take(count).map(|it| it.1).collect()
    }

    /// Returns the number of latencies so far.
    pub(crate) fn len(&self) -> u64 {
        self.first + self.kept.len() as u64
    }
}

/// Busy times of the card after its writes.
#[derive(Default)]
pub(crate) struct Latencies {
    history: RefCell<History>,
    busy_until_ns: Cell<u64>,
}

impl Latencies {
    /// Notes a busy time that began with the last bus transfer.
    pub(crate) fn observe(&self, card: &SpiCard) {
        let until_ns = card.busy_until_ns();
        if self.busy_until_ns.replace(until_ns) == until_ns {
            return;
        }
        let now_ns = card.clock().now_ns();
        if until_ns > now_ns {
            let us = u32::try_from((until_ns - now_ns) / 1000).unwrap_or(u32::MAX);
            self.history.borrow_mut().push(until_ns / 1_000_000, us);
        }
    }

    /// Returns a latency, or the oldest one kept if that is newer.
    pub(crate) fn get(&self, number: u64) -> Option<WriteLatency> {
        self.history.borrow().get(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_an_hour() {
        let mut history = History::default();
        history.push(0, 5);
        history.push(1000, 6);
        history.push(HISTORY_MS + 1, 7);
        let oldest = history.get(0).unwrap();
        assert_eq!((oldest.number, oldest.us), (1, 6));
        assert_eq!(history.get(2).unwrap().us, 7);
        assert_eq!(history.get(3), None);
        assert_eq!(history.len(), 3);
        assert_eq!(history.newest(1), [7]);
    }
}
