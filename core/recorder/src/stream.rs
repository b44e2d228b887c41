//! One stream of samples: its ring, its encoder, and its durability window.

use crate::admission::Rate;
use crate::format::{Encoder, Format};
use crate::gap::{Cause, Gap};
use crate::limits::TURN_BYTES;
use crate::plan::{Block, StreamConditions};
use crate::ring::{Consumer, Next};
use core::num::NonZeroU64;

/// Settings of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamConfig {
    /// First three characters of its file names: capital letters. Binary streams with the same prefix share
    /// their files.
    pub prefix: [u8; 3],
    /// Format of the samples.
    pub format: Format,
    /// Durability window.
    pub window: Window,
}

/// Durability window: the newest data, which a power loss may destroy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// Samples pushed in the last n us; n is at least [`WINDOW_US_MIN`](crate::WINDOW_US_MIN).
    Us(u64),
    /// Only the newest sample.
    Sample,
}

/// One second.
impl Default for Window {
    fn default() -> Self {
        Window::Us(1_000_000)
    }
}

/// Final statistics of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct StreamSummary {
    /// Durable samples.
    pub written: u64,
    /// Lost samples; each is in exactly one gap.
    pub lost: u64,
    /// Bytes in the closed files of its track. Files recovered after a card failure are reported in
    /// [`Event::Recovered`](crate::Event::Recovered) instead.
    pub bytes: u64,
    /// Closed files of its track.
    pub files: u32,
    /// Highest level of the ring, in bytes.
    pub ring_peak_bytes: usize,
    /// Committed checkpoints.
    pub checkpoints: u32,
    /// Number of times that the durability window was exceeded, because meeting it could have lost samples or
    /// because the card did not allow it. Data that was at risk for just over ten windows counts ten times.
    pub window_breaches: u32,
    /// Greatest age of data that was lost, or could have been lost, in a power loss or a card failure, in us.
    pub at_risk_us_max: u64,
}

pub(crate) struct Stream<'a> {
    /// Length of the durability window; `None` for the newest sample.
    window_us: Option<NonZeroU64>,
    pub(crate) consumer: Consumer<'a>,
    pub(crate) encoder: Encoder,
    pub(crate) rate: Rate,
    pub(crate) track: u8,
    /// Bytes ever pushed, modulo 2^32, when the pending checkpoint was requested.
    checkpoint_head: u32,
    /// Samples ever lost, modulo 2^32, when the pending checkpoint was requested.
    checkpoint_lost: u32,
    /// Everything pushed before this time is durable.
    pub(crate) durable_before_us: u64,
    /// More than the newest sample was not durable at some time since the last checkpoint.
    has_exceeded_sample: bool,
    pub(crate) summary: StreamSummary,
}

/// A committed checkpoint.
#[derive(Clone, Copy)]
pub(crate) struct Committed {
    pub(crate) samples: u64,
    pub(crate) pushed_before_us: u64,
    pub(crate) is_late: bool,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(config: StreamConfig, consumer: Consumer<'a>, at: u8, track: u8) -> Self {
        Stream {
            window_us: match config.window {
                Window::Us(us) => NonZeroU64::new(us.max(1)),
                Window::Sample => None,
            },
            consumer,
            encoder: Encoder::new(config.format, config.prefix, at),
            rate: Rate::new(),
            track,
            checkpoint_head: 0,
            checkpoint_lost: 0,
            durable_before_us: 0,
            has_exceeded_sample: false,
            summary: StreamSummary::default(),
        }
    }

    pub(crate) fn window(&self) -> Window {
        match self.window_us {
            Some(us) => Window::Us(us.get()),
            None => Window::Sample,
        }
    }

    /// Returns true if samples or a gap are not in blocks yet, including a gap after a session boundary.
    pub(crate) fn is_waiting(&self) -> bool {
        self.encoder.account().gap().is_some()
            || self.consumer.level_bytes() > 0
            || self.consumer.lost() != self.consumer.lost_taken()
    }

    /// Returns true if anything pushed is not yet durable.
    pub(crate) fn has_unsaved(&self) -> bool {
        self.is_waiting() || !self.encoder.is_marked() || self.encoder.account().has_unsaved()
    }

    /// Updates the arrival rate. While everything is durable, also moves the durable time to the present.
    pub(crate) fn observe(&mut self, now_us: u64) {
        self.rate.observe(now_us, self.consumer.head());
        if !self.has_unsaved() {
            self.durable_before_us = now_us;
        }
    }

    /// Requests a checkpoint of everything in the ring.
    pub(crate) fn request_checkpoint(&mut self) {
        self.checkpoint_head = self.consumer.head();
        self.checkpoint_lost = self.consumer.lost();
    }

    /// Returns the number of bytes in the ring that the pending checkpoint still has to write.
    pub(crate) fn checkpoint_bytes(&self) -> usize {
        let left = self.checkpoint_head.wrapping_sub(self.consumer.tail()) as i32;
        usize::try_from(left).unwrap_or(0)
    }

    /// Returns true if the pending checkpoint includes something that is not in blocks yet.
    pub(crate) fn is_behind(&self) -> bool {
        let lost_left = self
            .checkpoint_lost
            .wrapping_sub(self.consumer.lost_taken()) as i32;
        self.checkpoint_bytes() > 0 || lost_left > 0 || self.encoder.account().gap().is_some()
    }

    /// Returns the bytes of a turn when several tracks share the card: at most half of the ring, because the
    /// ring keeps filling meanwhile.
    pub(crate) fn turn_bytes(&self) -> usize {
        let half_bytes = self.consumer.capacity_bytes() / 2;
        TURN_BYTES.min(1 << half_bytes.ilog2())
    }

    /// Returns the stream's conditions for the planner.
    pub(crate) fn conditions(&self) -> StreamConditions {
        let level_bytes = self.consumer.level_bytes();
        let capacity_bytes = self.consumer.capacity_bytes();
        StreamConditions {
            track: self.track,
            block: self.block(),
            is_waiting: self.is_waiting(),
            is_behind: self.is_behind(),
            is_at_session: matches!(self.consumer.next(), Next::Session),
            has_turn: level_bytes >= self.turn_bytes(),
            level: (level_bytes as u64 * 1000 / capacity_bytes as u64) as u16,
        }
    }

    /// Returns the number of blocks that a checkpoint would write now.
    pub(crate) fn unfinished_blocks(&self) -> u32 {
        self.encoder.unfinished_blocks()
    }

    fn block(&self) -> Block {
        if self.encoder.is_full() {
            Block::Full
        } else if self.encoder.is_marked() {
            Block::Clean
        } else {
            Block::Partial
        }
    }

    /// Returns the time at which a checkpoint is due, `lead_us` before the end of the window.
    pub(crate) fn due_us(&self, lead_us: u64) -> u64 {
        match self.window() {
            Window::Us(window_us) => {
                let wait_us = window_us - lead_us.min(window_us / 2);
                self.durable_before_us.saturating_add(wait_us)
            }
            Window::Sample => self.durable_before_us,
        }
    }

    /// Records that everything in pushed blocks is durable. If the pending checkpoint is complete, `requested_us` is
    /// the time of its request.
    pub(crate) fn commit(&mut self, now_us: u64, requested_us: Option<u64>) -> Option<Committed> {
        let before = self.encoder.account().durable().next;
        self.encoder.commit();
        let durable = self.encoder.account().durable();
        self.summary.written = durable.written();
        self.summary.lost = durable.lost;
        // Blocks that become durable without a checkpoint count too, such as those of a file that is left.
        if self.window() == Window::Sample {
            self.has_exceeded_sample |= durable.next - before + self.waiting_samples() > 1;
        }
        // At the end of a file nothing of this stream may be left at risk, even if another stream is still
        // behind.
        let is_all = durable.next > before && !self.has_unsaved();
        let requested_us = requested_us.or(is_all.then_some(now_us))?;
        let at_risk_us = now_us.saturating_sub(self.durable_before_us);
        self.durable_before_us = requested_us;
        self.risk(at_risk_us);
        self.summary.checkpoints = self.summary.checkpoints.saturating_add(1);
        // An age of just over ten windows counts as ten breaches.
        let breaches = match self.window() {
            Window::Us(window_us) => at_risk_us.saturating_sub(1) / window_us,
            Window::Sample => u64::from(self.has_exceeded_sample),
        };
        self.has_exceeded_sample = false;
        self.breach(breaches);
        Some(Committed {
            samples: durable.next,
            pushed_before_us: requested_us,
            is_late: breaches > 0,
        })
    }

    fn risk(&mut self, us: u64) {
        self.summary.at_risk_us_max = self.summary.at_risk_us_max.max(us);
    }

    fn breach(&mut self, count: u64) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.summary.window_breaches = self.summary.window_breaches.saturating_add(count);
    }

    /// Returns the number of samples in the ring. Samples after a session boundary have that session's schema.
    fn waiting_samples(&self) -> u64 {
        let bytes = self.consumer.level_bytes();
        let Some(schema) = self.encoder.schema() else {
            return self.lines_in(bytes);
        };
        let (before, behind) = match self.consumer.next_session() {
            Some((before, place)) => (before.min(bytes), self.encoder.format().schema(place)),
            None => (bytes, None),
        };
        let behind = behind.unwrap_or(schema).sample_bytes();
        (before / schema.sample_bytes() + (bytes - before) / behind) as u64
    }

    /// Handles the loss of the card: blocks that were not durable are lost. Returns the resulting gap.
    pub(crate) fn lose_card(&mut self, now_us: u64, cause: Cause) -> Option<Gap> {
        if self.has_unsaved() {
            self.risk(now_us.saturating_sub(self.durable_before_us));
        }
        self.encoder.lose_blocks(now_us, cause)
    }

    /// Gives up the rest of the recording: nothing more can be written, and samples that are not durable are
    /// lost. Returns the resulting gap.
    pub(crate) fn lose_rest(&mut self, now_us: u64, cause: Cause) -> Option<Gap> {
        if self.has_unsaved()
            && let Window::Us(window_us) = self.window()
        {
            let at_risk_us = now_us.saturating_sub(self.durable_before_us);
            self.breach(at_risk_us.saturating_sub(1) / window_us);
            self.risk(at_risk_us);
        }
        self.lose_card(now_us, cause);
        let drained = self.drain();
        let gap = self.encoder.give_up(drained, now_us, cause);
        let durable = self.encoder.account().durable();
        self.summary.written = durable.written();
        self.summary.lost = durable.lost;
        gap
    }

    /// Empties the ring. Returns the number of samples in it and in its gaps.
    fn drain(&mut self) -> u64 {
        let mut schema = self.encoder.schema();
        let mut count = 0;
        loop {
            match self.consumer.next() {
                Next::Empty => return count,
                Next::Gap(_) => count += self.consumer.take_gap().map_or(0, |gap| gap.count),
                Next::Session => {
                    if let Some(session) = self.consumer.take_session() {
                        schema = self.encoder.format().schema(session.schema());
                    }
                }
                Next::Samples(bytes) => {
                    count += match schema {
                        Some(schema) => (bytes / schema.sample_bytes()) as u64,
                        None => self.lines_in(bytes),
                    };
                    self.consumer.release(bytes);
                }
            }
        }
    }

    /// Returns the number of lines in the next bytes of the ring.
    fn lines_in(&self, bytes: usize) -> u64 {
        let mut byte = [0];
        let ends = (0..bytes).filter(|at| {
            self.consumer.peek(*at, &mut byte);
            byte[0] == b'\n'
        });
        ends.count() as u64
    }
}

#[cfg(test)]
mod tests;
