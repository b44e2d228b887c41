//! Buffers that receive pages while earlier ones are programmed.
//!
//! ```text
//!   bus     ─ page 1 ─┤─ page 2 ─┤busy├─ page 3 ─┤  busy  ├─ stop ─┤ busy: settles ├
//!   flash             ├─── page 1 ────┤───── page 2 ──────┤───── page 3 ───────────┤
//! ```

use std::collections::VecDeque;

/// Pages that the card has received and not programmed yet, with the times at which they will be in flash, in ns. A
/// card is busy only while all of its buffers are full (SanDisk SD Card Product Manual 2.2, 2004, page 4-45).
#[derive(Clone)]
pub(crate) struct Received {
    ends_ns: VecDeque<u64>,
    pages_max: usize,
}

impl Received {
    pub(crate) fn new(pages_max: u32) -> Received {
        Received {
            ends_ns: VecDeque::new(),
            pages_max: pages_max as usize,
        }
    }

    /// Returns true if the card receives pages while it programs earlier ones.
    pub(crate) fn is_ahead(&self) -> bool {
        self.pages_max > 0
    }

    /// Adds a page that takes `needed_ns`. Returns how long no buffer is free, and the time from then until the page is
    /// in flash.
    pub(crate) fn push(&mut self, now_ns: u64, needed_ns: u64) -> (u64, u64) {
        if !self.is_ahead() {
            return (needed_ns, 0);
        }
        while self.ends_ns.front().is_some_and(|end| *end <= now_ns) {
            self.ends_ns.pop_front();
        }
        let begin_ns = self.ends_ns.back().copied().unwrap_or(now_ns);
        let end_ns = begin_ns.saturating_add(needed_ns);
        self.ends_ns.push_back(end_ns);
        let mut free_ns = now_ns;
        while self.ends_ns.len() > self.pages_max {
            free_ns = self.ends_ns.pop_front().unwrap_or(now_ns);
        }
        (free_ns - now_ns, end_ns - free_ns)
    }

    /// Removes all pages; returns the time until the last one is in flash.
    pub(crate) fn take(&mut self, now_ns: u64) -> u64 {
        let last_ns = self.ends_ns.pop_back().unwrap_or(now_ns);
        self.ends_ns.clear();
        last_ns.saturating_sub(now_ns)
    }
}
