//! One stream of samples: its ring, its file, and how much of it is durable.
//!
//! ```text
//!               reserve             roll           roll               close
//!   (nothing) ──────────> `ahead` ────────> `file` ────────> `closing` ──────────> closed
//!                         up to 7           written          complete, in its full length
//!
//!   a checkpoint:  due ──> target: all that was pushed by now
//!                      ──> written up to there ──> marked ──> stream ended: durable
//! ```

use crate::admission::Rate;
use crate::format::{Encoder, Filled, Format};
use crate::gap::{Cause, Gap};
use crate::limits::{AHEAD_MAX, MARK_BLOCKS, OVERDUE_PART, OVERDUE_US_MIN, STEP_PART};
use crate::ring::Source;
use crate::volume::{FileId, Reserved};
use cardiograph_card::BLOCK_BYTES;
use heapless::Deque;

/// What a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamConfig {
    /// What names of its files begin with: capital letters.
    pub prefix: [u8; 3],
    /// How samples are written down.
    pub format: Format,
    /// How much of the newest data a power cut may cost.
    pub window: Window,
}

/// Durability window: how much of the newest data a power cut may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// What was pushed in the last so many us; at least 1.
    Us(u64),
    /// The newest sample.
    Sample,
}

/// One second.
impl Default for Window {
    fn default() -> Self {
        Window::Us(1_000_000)
    }
}

/// A checkpoint under way.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    /// Bytes ever pushed when it was begun, modulo 2^32.
    head: u32,
    /// When that was.
    at_us: u64,
    /// Whether it is made at any cost.
    pub(crate) is_forced: bool,
}

/// A file that is complete, but still has its full length.
#[derive(Clone, Copy)]
pub(crate) struct Closing {
    pub(crate) slot: u8,
    pub(crate) id: FileId,
    pub(crate) bytes: u64,
}

/// What the card is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// The block is full.
    Push,
    /// All up to the target is in marked blocks: the card has to make them durable.
    Checkpoint,
    /// The file is full, or to be left: the next one begins.
    Roll,
}

/// What became of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamSummary {
    /// Samples that are durable.
    pub written: u64,
    /// Samples that are missing; each is in a gap.
    pub lost: u64,
    /// Bytes of the files that were closed; what was recovered after the card had failed is in
    /// [`Event::Recovered`](crate::Event::Recovered).
    pub bytes: u64,
    /// Files that were written.
    pub files: u32,
    /// Highest level of the ring, in bytes.
    pub ring_peak_bytes: usize,
    /// Checkpoints made.
    pub checkpoints: u32,
    /// How often the window was not kept, because keeping it could have lost samples, or because the card
    /// did not allow it.
    pub window_breaches: u32,
    /// Greatest age that data had which a power cut would have taken, in us.
    pub at_risk_us_max: u64,
}

pub(crate) struct Stream<'a> {
    pub(crate) config: StreamConfig,
    pub(crate) source: Source<'a>,
    pub(crate) encoder: Encoder,
    pub(crate) rate: Rate,
    pub(crate) file: Option<Reserved>,
    /// Files that are prepared, in the order in which they will be written.
    pub(crate) ahead: Deque<Reserved, AHEAD_MAX>,
    /// Files that are complete, but still have their full length.
    pub(crate) closing: Deque<Closing, AHEAD_MAX>,
    pub(crate) target: Option<Target>,
    /// The file is to be left as soon as all before now is in it.
    pub(crate) is_rolling: bool,
    /// When the file was begun.
    pub(crate) opened_us: u64,
    /// The number that the next file gets.
    pub(crate) next_number: u32,
    /// There was no room for another file when it was tried last.
    pub(crate) is_card_full: bool,
    /// It was said that the card is full.
    pub(crate) is_full_told: bool,
    /// There is no room for another file, and it is needed.
    pub(crate) is_given_up: bool,
    /// When the checkpoint that waits was last given a lower cost.
    put_off_us: u64,
    /// All that was pushed before is durable.
    covered_us: u64,
    /// Samples below are durable, or in a gap that is.
    covered_sample: u64,
    /// Samples in gaps that are durable.
    covered_lost: u64,
    pub(crate) summary: StreamSummary,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(config: StreamConfig, source: Source<'a>) -> Self {
        Stream {
            config,
            source,
            encoder: Encoder::new(config.format),
            rate: Rate::new(),
            file: None,
            ahead: Deque::new(),
            closing: Deque::new(),
            target: None,
            is_rolling: false,
            opened_us: 0,
            next_number: 1,
            is_card_full: false,
            is_full_told: false,
            is_given_up: false,
            put_off_us: 0,
            covered_us: 0,
            covered_sample: 0,
            covered_lost: 0,
            summary: StreamSummary::default(),
        }
    }

    /// Whether anything was pushed that is not durable.
    pub(crate) fn has_unsaved(&self) -> bool {
        let (waiting, gap) = self.source.next();
        waiting > 0
            || gap.is_some()
            || self.encoder.gap().is_some()
            || !self.encoder.is_marked()
            || self.encoder.durable() < self.encoder.index()
    }

    /// Looks at the clock: the rate, and whether a checkpoint is due. `lead_us` is how long before the end
    /// of the window it is begun.
    pub(crate) fn look(&mut self, now_us: u64, lead_us: u64, may_begin: bool) {
        self.rate.saw(now_us, self.source.head());
        if self.file.is_none() || self.target.is_some() {
            return;
        }
        if !self.has_unsaved() {
            self.covered_us = now_us;
            return;
        }
        if may_begin && now_us >= self.due_us(lead_us) {
            self.aim(now_us, false);
        }
    }

    /// Whether a checkpoint waits for long because of what it may cost.
    pub(crate) fn is_overdue(&self, now_us: u64) -> bool {
        let wait_us = match self.config.window {
            Window::Us(window_us) => (window_us / OVERDUE_PART).max(OVERDUE_US_MIN),
            Window::Sample => OVERDUE_US_MIN,
        };
        self.target.is_some_and(|target| {
            now_us
                >= (target.at_us.saturating_add(self.step_us_max()))
                    .max(self.put_off_us)
                    .saturating_add(wait_us)
        })
    }

    pub(crate) fn put_off(&mut self, now_us: u64) {
        self.put_off_us = now_us;
    }

    /// Whether anything was written to the file.
    pub(crate) fn is_begun(&self) -> bool {
        self.file.is_some() && (self.encoder.index() > 0 || self.has_unsaved())
    }

    /// Whether there is no file that the next block could go to.
    pub(crate) fn is_blocked(&self) -> bool {
        self.file
            .is_none_or(|file| self.encoder.index() >= file.extent.blocks)
            && self.ahead.is_empty()
    }

    /// How long there is room in files, in us; `None` if nothing comes.
    pub(crate) fn us_left(&self) -> Option<u64> {
        let file = self
            .file
            .map_or(0, |file| file.extent.blocks - self.encoder.index());
        let ahead: u64 = self
            .ahead
            .iter()
            .map(|file| u64::from(file.extent.blocks))
            .sum();
        self.rate
            .us_for((u64::from(file) + ahead) * BLOCK_BYTES as u64)
    }

    /// When a checkpoint will be due, if something comes meanwhile.
    pub(crate) fn due_us(&self, lead_us: u64) -> u64 {
        match self.config.window {
            Window::Us(window_us) => {
                let wait_us = window_us - lead_us.min(window_us / 2);
                self.covered_us.saturating_add(wait_us)
            }
            Window::Sample => self.covered_us,
        }
    }

    /// Begins a checkpoint of all that was pushed by now; forced ones do not ask what they cost.
    pub(crate) fn aim(&mut self, now_us: u64, is_forced: bool) {
        if self.target.is_none() || is_forced {
            self.target = Some(Target {
                head: self.source.head(),
                at_us: now_us,
                is_forced,
            });
        }
    }

    /// Fills the block, and says what the card is wanted for. `may_mark`: whether the rings bear a
    /// checkpoint.
    pub(crate) fn need(&mut self, may_mark: bool, now_us: u64) -> Option<Need> {
        let file = self.file?;
        if self.encoder.is_full() {
            return Some(Need::Push);
        }
        if self.encoder.index() >= file.extent.blocks {
            return Some(Need::Roll);
        }
        let Some(target) = self.target else {
            self.encoder.set_step(0);
            return match self.is_rolling {
                true => Some(Need::Roll),
                false => self.fill(usize::MAX),
            };
        };
        let left = target.head.wrapping_sub(self.source.tail()) as i32;
        // Behind such a step a binary sample may go on, and it must not in another file.
        let step = if self.is_rolling {
            1
        } else {
            self.step_blocks()
        };
        if !target.is_forced && step > 1 && now_us < target.at_us.saturating_add(self.step_us_max())
        {
            self.encoder.set_step(step);
            let is_there = left <= 0 && self.encoder.index().is_multiple_of(step);
            if is_there && may_mark && self.encoder.is_behind_mark() {
                return Some(Need::Checkpoint);
            }
            return self.fill(usize::MAX);
        }
        let need = self.fill(usize::try_from(left).unwrap_or(0));
        if need.is_some() {
            return need;
        }
        if !may_mark && !target.is_forced {
            return self.fill(usize::MAX);
        }
        match self.encoder.mark(&mut self.source) {
            Filled::Full => Some(Need::Push),
            Filled::Dry => Some(Need::Checkpoint),
        }
    }

    /// How long a checkpoint may wait for the end of a page.
    fn step_us_max(&self) -> u64 {
        match self.config.window {
            Window::Us(window_us) => window_us / STEP_PART,
            Window::Sample => 0,
        }
    }

    /// Checkpoints are made at multiples of so many blocks: as many as fill in that time.
    fn step_blocks(&self) -> u32 {
        let us = u32::try_from(self.step_us_max()).unwrap_or(u32::MAX);
        let blocks = (self.rate.bytes_in(us) / BLOCK_BYTES as u64).clamp(1, MARK_BLOCKS.into());
        1 << blocks.ilog2()
    }

    /// How long that takes, in us.
    pub(crate) fn step_us(&self) -> u64 {
        match self.step_blocks() {
            1 => 0,
            blocks => self
                .rate
                .us_for(u64::from(blocks) * BLOCK_BYTES as u64)
                .unwrap_or(0),
        }
    }

    fn fill(&mut self, limit: usize) -> Option<Need> {
        match self.encoder.fill(&mut self.source, limit) {
            Filled::Full => Some(Need::Push),
            Filled::Dry => None,
        }
    }

    /// All that is in blocks is durable, and ends with a mark. Whether the window was not kept, if this
    /// was a checkpoint.
    pub(crate) fn cover(&mut self, now_us: u64) -> Option<Checkpoint> {
        let before_us = self.covered_us;
        self.encoder.set_durable();
        self.covered_sample = self.encoder.next_sample();
        self.covered_lost += self.encoder.take_lost();
        self.summary.lost = self.covered_lost;
        self.summary.written = self.covered_sample - self.covered_lost;
        let target = self.target?;
        // Less than a sample is none, and never will be.
        let sample_bytes = self.config.format.sample_bytes().unwrap_or(1) as i32;
        if target.head.wrapping_sub(self.source.tail()) as i32 >= sample_bytes {
            return None;
        }
        self.target = None;
        self.covered_us = target.at_us;
        let at_risk_us = now_us - before_us;
        self.summary.at_risk_us_max = self.summary.at_risk_us_max.max(at_risk_us);
        self.summary.checkpoints += 1;
        // A window that was not kept for ten times its length was not kept ten times.
        let breaches = match self.config.window {
            Window::Us(window_us) => at_risk_us.saturating_sub(1) / window_us.max(1),
            Window::Sample => u64::from(self.source.level_bytes() > self.newest_bytes()),
        };
        let is_late = breaches > 0;
        let breaches = u32::try_from(breaches).unwrap_or(u32::MAX);
        self.summary.window_breaches = self.summary.window_breaches.saturating_add(breaches);
        Some(Checkpoint {
            samples: self.covered_sample,
            pushed_before_us: target.at_us,
            is_late,
        })
    }

    /// Bytes of one sample.
    fn newest_bytes(&self) -> usize {
        match self.config.format {
            Format::Lines { line_bytes_max, .. } => line_bytes_max.into(),
            Format::Csv(schema) | Format::Binary(schema) => schema.sample_bytes(),
        }
    }

    /// The next file begins, with this number; the one before is to be closed.
    pub(crate) fn roll(&mut self, now_us: u64, number: u32) -> Option<Reserved> {
        let mut next = self.ahead.pop_front()?;
        next.id = Some(FileId {
            prefix: next.prefix,
            extension: next.extension,
            number,
        });
        if let Some(file) = self.file {
            let closing = self.closing_of(file);
            // Prepared and closing files together are no more than either may be.
            let is_noted = self.closing.push_back(closing).is_ok();
            debug_assert!(is_noted);
        }
        self.begin(next, now_us);
        Some(next)
    }

    /// Files that this stream has, besides the one that is written.
    pub(crate) fn files_beside(&self) -> usize {
        self.ahead.len() + self.closing.len()
    }

    pub(crate) fn closing_of(&self, file: Reserved) -> Closing {
        Closing {
            slot: file.slot,
            id: file.id.unwrap_or(FileId {
                prefix: file.prefix,
                extension: file.extension,
                number: self.next_number,
            }),
            bytes: self.encoder.content_bytes(),
        }
    }

    pub(crate) fn begin(&mut self, file: Reserved, now_us: u64) {
        let number = file.id.map_or(0, |id| id.number);
        self.encoder.start(file.epoch, file.extent.blocks, number);
        self.file = Some(file);
        self.is_rolling = false;
        self.opened_us = now_us;
        self.summary.files += 1;
    }

    /// The card is gone, and with it what was not durable: returns the gap, if it was not told yet.
    pub(crate) fn lose_card(&mut self, now_us: u64, cause: Cause) -> Option<Gap> {
        let end = self.encoder.abandon(&mut self.source);
        let end = self.encoder.gap().map_or(end, |gap| gap.first + gap.count);
        self.drop_files();
        (self.target, self.is_rolling) = (None, false);
        (self.is_card_full, self.is_given_up) = (false, false);
        let count = end.saturating_sub(self.covered_sample);
        let is_known = |gap: Gap| (gap.first, gap.count) == (self.covered_sample, count);
        if count == 0 || self.encoder.gap().is_some_and(is_known) {
            return None;
        }
        let gap = Gap {
            first: self.covered_sample,
            count,
            at_us: now_us,
            cause,
        };
        self.encoder.note_gap(gap);
        Some(gap)
    }

    /// There is nothing to write to any more.
    pub(crate) fn drop_files(&mut self) {
        self.file = None;
        self.ahead.clear();
        self.closing.clear();
    }

    /// Nothing more can be written: all that is not durable is lost. Returns the gap.
    pub(crate) fn lose_rest(&mut self, now_us: u64, cause: Cause) -> Option<Gap> {
        self.lose_card(now_us, cause);
        let gap = self.encoder.gap();
        let mut end = gap.map_or(self.covered_sample, |gap| gap.first + gap.count);
        loop {
            match self.source.next() {
                (0, None) => break,
                (0, Some(gap)) => {
                    self.source.take_gap();
                    end = gap.first + gap.count;
                }
                (waiting, _) => end += self.drop_samples(waiting),
            }
        }
        let count = end.saturating_sub(self.covered_sample);
        self.summary.lost = self.covered_lost + count;
        (count > 0).then_some(Gap {
            first: self.covered_sample,
            count,
            at_us: now_us,
            cause,
        })
    }

    /// Drops samples from the ring; returns how many it were.
    fn drop_samples(&mut self, bytes: usize) -> u64 {
        if let Some(sample) = self.config.format.sample_bytes() {
            self.source.release(bytes);
            return (bytes / sample) as u64;
        }
        let mut lines = 0;
        for _ in 0..bytes {
            let mut byte = [0];
            self.source.peek(0, &mut byte);
            self.source.release(1);
            lines += u64::from(byte[0] == b'\n');
        }
        lines
    }
}

/// What a checkpoint came to.
#[derive(Clone, Copy)]
pub(crate) struct Checkpoint {
    pub(crate) samples: u64,
    pub(crate) pushed_before_us: u64,
    pub(crate) is_late: bool,
}
