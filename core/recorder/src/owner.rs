//! The one owner of the card. Whoever wants it besides the samples has to come here, and the samples go
//! first.
//!
//! ```text
//!   rings ──> need: a block, a checkpoint, a new file ──> step ──> Medium
//!                            ^
//!   file system, readers ── give_way: until the rings can bear it
//! ```

use crate::Clock;
use crate::admission::Cost;
use crate::control::Control;
use crate::event::Event;
use crate::gap::Cause;
use crate::limits::{
    FILE_SYSTEM_US, HINT_BLOCKS, PATIENCE_US, ROOM_PART, SLEEP_US_MAX, SLEEP_US_MIN, TURN_BYTES,
};
use crate::reads::{ReadDesk, ReadFailed};
use crate::stream::{Need, Stream};
use crate::volume::Blocks;
use cardiograph_card::{BLOCK_BYTES, Block, Medium};
use embedded_hal_async::delay::DelayNs;

/// Owns the card, and what is to be written to it.
pub struct Owner<'a, M, C, D, E, const N: usize> {
    pub(crate) medium: M,
    pub(crate) clock: C,
    pub(crate) delay: D,
    pub(crate) events: E,
    control: &'a Control,
    /// A new file is begun after so long.
    file_us: Option<u64>,
    /// Files are prepared at any cost when there is room for so long only.
    urgent_us: u64,
    /// The flush that is under way.
    flush: Option<u32>,
    /// New files that were asked for, by their number.
    rolls: u32,
    /// Nothing is written any more but what was pushed before.
    is_finishing: bool,
    pub(crate) streams: [Stream<'a>; N],
    /// The stream that the card is just taking.
    active: Option<usize>,
    checkpoint: Cost,
    read: Cost,
    /// Longest time that one block took, in us.
    longest_us: u32,
    /// Blocks written, and the time that they took.
    blocks: u64,
    card_us: u64,
    /// Used for the blocks of the file system.
    scratch: Block,
}

/// What an owner is made of.
pub(crate) struct OwnerParts<'a, M, C, D, E> {
    pub(crate) medium: M,
    pub(crate) clock: C,
    pub(crate) delay: D,
    pub(crate) events: E,
    pub(crate) control: &'a Control,
    pub(crate) file_us: Option<u64>,
    pub(crate) urgent_us: u64,
}

impl<'a, M: Medium, C: Clock, D: DelayNs, E: FnMut(Event), const N: usize>
    Owner<'a, M, C, D, E, N>
{
    pub(crate) fn new(parts: OwnerParts<'a, M, C, D, E>, streams: [Stream<'a>; N]) -> Self {
        Owner {
            medium: parts.medium,
            clock: parts.clock,
            delay: parts.delay,
            events: parts.events,
            control: parts.control,
            file_us: parts.file_us,
            urgent_us: parts.urgent_us,
            flush: None,
            rolls: parts.control.roll_asked(),
            is_finishing: false,
            streams,
            active: None,
            checkpoint: Cost::new(),
            read: Cost::new(),
            longest_us: 0,
            blocks: 0,
            card_us: 0,
            scratch: [0; BLOCK_BYTES],
        }
    }

    pub(crate) fn now_us(&self) -> u64 {
        self.clock.now_us()
    }

    /// Does what is most urgent for the samples; whether there was anything.
    ///
    /// # Errors
    /// Those of the card. What was not durable may be gone then.
    pub(crate) async fn work(&mut self) -> Result<bool, M::Error> {
        self.hear();
        self.look();
        let did = match self.choose() {
            None => false,
            Some((at, Need::Push)) => self.push(at).await.map(|()| true)?,
            Some((at, Need::Checkpoint)) => self.cover(at).await.map(|()| true)?,
            Some((at, Need::Roll)) => self.roll(at).await?,
        };
        if let (Some(number), false) = (self.flush, self.is_forced()) {
            self.control.set_flushed(number);
            self.flush = None;
        }
        Ok(did)
    }

    /// What others have asked for.
    fn hear(&mut self) {
        let now_us = self.now_us();
        let asked = self.control.flush_asked();
        // Without files it waits until there are some, or until all is closed.
        let can = self.streams.iter().all(|stream| stream.file.is_some());
        if can && !self.control.is_flushed(asked) && self.flush != Some(asked) {
            self.flush = Some(asked);
            self.aim_all(now_us);
        }
        let rolls = self.control.roll_asked();
        let is_asked = rolls != self.rolls;
        self.rolls = rolls;
        if self.is_finishing {
            return;
        }
        for stream in &mut self.streams {
            let is_time = |file_us| now_us - stream.opened_us >= file_us;
            let is_due = is_asked || self.file_us.is_some_and(is_time);
            if is_due && !stream.is_rolling && stream.is_begun() {
                stream.is_rolling = true;
                stream.aim(now_us, true);
            }
        }
    }

    fn aim_all(&mut self, now_us: u64) {
        for stream in &mut self.streams {
            if stream.file.is_some() && !stream.is_given_up {
                stream.aim(now_us, true);
            }
        }
    }

    /// From now on only what was pushed by now is written.
    pub(crate) fn begin_finish(&mut self) {
        self.is_finishing = true;
        // No file is begun that nothing would come to.
        for stream in &mut self.streams {
            stream.is_rolling = false;
        }
        self.aim_all(self.now_us());
    }

    /// A flush that was under way has to be begun again.
    pub(crate) fn forget_flush(&mut self) {
        self.flush = None;
    }

    /// Whether a checkpoint is to be made at any cost.
    pub(crate) fn is_forced(&self) -> bool {
        let mut streams = self.streams.iter();
        streams.any(|stream| stream.target.is_some_and(|target| target.is_forced))
    }

    fn look(&mut self) {
        let now_us = self.now_us();
        for at in 0..N {
            let lead_us = self.lead_us(at);
            let stream = &mut self.streams[at];
            stream.look(now_us, lead_us, !self.is_finishing);
            // Kept away by its cost: that was of one time, and fades.
            if stream.is_overdue(now_us) {
                self.checkpoint.fade();
                self.streams[at].put_off(now_us);
            }
        }
    }

    /// How long before the end of its window a checkpoint is begun: twice what it took lately, with what
    /// waits in the ring, until the end of a page, and through a stall.
    fn lead_us(&self, at: usize) -> u64 {
        let stream = &self.streams[at];
        let waiting = stream.source.level_bytes() as u64;
        2 * (u64::from(self.checkpoint.us()) + self.us_to_write(waiting))
            + stream.step_us()
            + u64::from(self.longest_us)
    }

    fn us_to_write(&self, bytes: u64) -> u64 {
        (self.card_us * bytes.div_ceil(BLOCK_BYTES as u64))
            .checked_div(self.blocks)
            .unwrap_or(0)
    }

    /// The longest that it should take to make all durable that waits, in us.
    pub(crate) fn flush_us_max(&self) -> u32 {
        let waiting: usize = self
            .streams
            .iter()
            .map(|stream| stream.source.level_bytes() + 2 * BLOCK_BYTES)
            .sum();
        let us = self.us_to_write(waiting as u64)
            + N as u64 * u64::from(self.checkpoint.us())
            + 2 * u64::from(self.longest_us);
        u32::try_from(us).unwrap_or(u32::MAX)
    }

    /// Whether all rings bear that the card is away for so many us, and stalls right afterwards as long as
    /// it ever has.
    pub(crate) fn bears(&self, us: u32) -> bool {
        self.streams.iter().all(|stream| {
            let capacity = stream.source.capacity_bytes() as u64;
            let kept = stream.rate.bytes_in(self.longest_us);
            let room = capacity.saturating_sub(kept).max(capacity / ROOM_PART);
            stream.source.level_bytes() as u64 + stream.rate.bytes_in(us) <= room
        })
    }

    /// The stream that needs the card most, and for what.
    fn choose(&mut self) -> Option<(usize, Need)> {
        let may_mark = self.bears(self.checkpoint.us());
        let now_us = self.now_us();
        let mut best: Option<(u32, usize, Need)> = None;
        for at in 0..N {
            let stream = &mut self.streams[at];
            if self.is_finishing && stream.target.is_none() {
                continue;
            }
            let need = stream.need(may_mark, now_us);
            while let Some(gap) = self.streams[at].encoder.take_news() {
                let stream = at as u8;
                (self.events)(Event::Lost { stream, gap });
            }
            let Some(need) = need else {
                continue;
            };
            let urgency = self.urgency(at, need);
            if urgency > 0 && best.is_none_or(|(other, ..)| urgency > other) {
                best = Some((urgency, at, need));
            }
        }
        best.map(|(_, at, need)| (at, need))
    }

    /// 0 is not yet: taking the card from another stream costs the end of one and the beginning of
    /// another.
    fn urgency(&self, at: usize, need: Need) -> u32 {
        let stream = &self.streams[at];
        let (level, capacity) = (stream.source.level_bytes(), stream.source.capacity_bytes());
        let parts = (level as u64 * 1000 / capacity as u64) as u32;
        let is_active = self.active.is_none() || self.active == Some(at);
        let is_blocked = need == Need::Roll && stream.ahead.is_empty();
        if is_blocked {
            return 0;
        }
        if parts > 500 {
            return 2000 + parts;
        }
        if stream.target.is_some() || need == Need::Roll {
            return 1000 + parts;
        }
        if is_active || level >= TURN_BYTES.min(capacity / 4) {
            return 1 + parts;
        }
        0
    }

    async fn push(&mut self, at: usize) -> Result<(), M::Error> {
        let begun_us = self.now_us();
        if self.active != Some(at) {
            self.end().await?;
            let stream = &self.streams[at];
            let Some(file) = stream.file else {
                return Ok(());
            };
            let index = stream.encoder.index();
            let hint = (file.extent.blocks - index).min(HINT_BLOCKS);
            let begun = self.medium.begin(file.extent.start + index, hint).await;
            begun.map_err(|error| error.cause)?;
            self.active = Some(at);
        }
        let pushed = self.medium.push(self.streams[at].encoder.block()).await;
        pushed.map_err(|error| error.cause)?;
        self.streams[at].encoder.advance();
        self.blocks += 1;
        self.spent(begun_us);
        Ok(())
    }

    fn spent(&mut self, begun_us: u64) -> u32 {
        let us = u32::try_from(self.now_us() - begun_us).unwrap_or(u32::MAX);
        self.card_us += u64::from(us);
        self.longest_us = self.longest_us.max(us);
        us
    }

    /// Ends the stream that is open: its blocks are durable.
    async fn end(&mut self) -> Result<(), M::Error> {
        if self.active.is_some() {
            self.medium.end().await.map_err(|error| error.cause)?;
            self.active = None;
        }
        Ok(())
    }

    /// Makes a stream's blocks durable, of which the last has a mark.
    pub(crate) async fn cover(&mut self, at: usize) -> Result<(), M::Error> {
        let begun_us = self.now_us();
        if self.active == Some(at) {
            self.end().await?;
            let us = self.spent(begun_us);
            self.checkpoint.saw(us);
        }
        let now_us = self.now_us();
        if let Some(checkpoint) = self.streams[at].cover(now_us) {
            (self.events)(Event::Checkpoint {
                stream: at as u8,
                samples: checkpoint.samples,
                pushed_before_us: checkpoint.pushed_before_us,
                is_late: checkpoint.is_late,
            });
        }
        Ok(())
    }

    async fn roll(&mut self, at: usize) -> Result<bool, M::Error> {
        self.cover(at).await?;
        Ok(self.begin_next(at).is_some())
    }

    /// Begins a stream's next file, if there is one: it gets the next number of its prefix.
    pub(crate) fn begin_next(&mut self, at: usize) -> Option<crate::Reserved> {
        let now_us = self.now_us();
        let prefix = self.streams[at].config.prefix;
        let is_same = |stream: &&Stream| stream.config.prefix == prefix;
        let same = self.streams.iter().filter(is_same);
        let number = same.map(|stream| stream.next_number).max()?;
        let file = self.streams[at].roll(now_us, number)?;
        self.streams[at].next_number = number + 1;
        self.say_opened(at, file);
        Some(file)
    }

    pub(crate) fn say_opened(&mut self, at: usize, file: crate::Reserved) {
        (self.events)(Event::Opened {
            stream: at as u8,
            name: file.id.map_or([b' '; 11], |id| id.short_name()),
            bytes_max: u64::from(file.extent.blocks) * BLOCK_BYTES as u64,
        });
    }

    /// Says what samples are lost to from now on.
    pub(crate) fn set_cause(&self, cause: Cause) {
        for stream in &self.streams {
            stream
                .source
                .set_cause(match (stream.is_card_full, stream.is_blocked()) {
                    (true, true) => Cause::CardFull,
                    (false, true) if cause == Cause::Busy => Cause::FileNotReady,
                    _ => cause,
                });
        }
    }

    /// Nobody knows what the card holds of the streams.
    pub(crate) fn forget_card(&mut self) {
        self.active = None;
    }

    /// Whether the rings bear an operation of the file system with the clean-up that it may lead to: small
    /// writes to other places are what cards stall for. It is not judged by what was seen: the clean-up may
    /// come with any of many.
    pub(crate) fn bears_file_system(&self) -> bool {
        self.streams.iter().all(|stream| {
            let us = FILE_SYSTEM_US.max(2 * self.longest_us);
            let level = stream.source.level_bytes() as u64 + stream.rate.bytes_in(us);
            level <= stream.source.capacity_bytes() as u64
        })
    }

    /// Whether a read may be done now. It stops the stream wherever it is, which the card may have to clean
    /// up for; unless a checkpoint has just done so at a good place.
    fn bears_read(&self) -> bool {
        let is_between = self.active.is_none() && self.bears(self.read.us());
        is_between || self.bears_file_system()
    }

    /// Whether the card is between two streams.
    pub(crate) fn is_between(&self) -> bool {
        self.active.is_none()
    }

    /// Whether a stream will have no file soon.
    pub(crate) fn is_urgent(&self, at: usize) -> bool {
        let stream = &self.streams[at];
        let is_out = stream.is_rolling && stream.ahead.is_empty();
        is_out || stream.is_blocked() || stream.us_left().is_some_and(|us| us < self.urgent_us)
    }

    /// Writes samples until the rings bear an operation of the file system, or it cannot wait any longer.
    async fn give_way(&mut self) -> Result<(), M::Error> {
        let until_us = self.now_us() + PATIENCE_US;
        while self.work().await? {
            let is_late = self.now_us() >= until_us;
            let is_pressing = (0..N).any(|at| self.is_urgent(at)) || self.is_ending();
            let is_saving = self.streams.iter().any(|stream| stream.target.is_some());
            if self.is_forced() {
                continue;
            }
            if is_late && is_pressing || !is_saving && self.bears_file_system() {
                break;
            }
        }
        Ok(())
    }

    /// Whether no more samples will come, or nobody wants them.
    pub(crate) fn is_ending(&self) -> bool {
        let mut streams = self.streams.iter();
        self.control.is_stopped() || streams.all(|stream| stream.source.is_closed())
    }

    /// Does a read that somebody asked for, if the rings bear it; whether it did.
    pub(crate) async fn serve(&mut self, reads: &ReadDesk<'_>) -> Result<bool, M::Error> {
        let Some(request) = reads.asked() else {
            return Ok(false);
        };
        if self.is_forced() || !self.bears_read() {
            reads.put_off();
            return Ok(false);
        }
        let Some(blocks) = reads.begin() else {
            return Ok(false);
        };
        self.set_cause(Cause::Read);
        let begun_us = self.now_us();
        let wanted = &mut blocks[..request.count as usize];
        let result = self.medium.read(request.start, wanted).await;
        let us = self.spent(begun_us);
        self.read.saw(us);
        self.set_cause(Cause::Busy);
        let told = result.as_ref().map(|()| request.count);
        reads.end(blocks, told.map_err(|_| ReadFailed), us);
        // A reader may ask for what is not there: that the card is well shows at the next block.
        Ok(true)
    }

    /// Sleeps until there is something to do.
    pub(crate) async fn rest(&mut self) {
        let now_us = self.now_us();
        let mut us = u64::from(SLEEP_US_MAX);
        for at in 0..N {
            let lead_us = self.lead_us(at);
            let stream = &self.streams[at];
            if stream.is_blocked() {
                continue;
            }
            let wanted = BLOCK_BYTES.saturating_sub(stream.source.level_bytes()) as u64;
            us = us.min(stream.rate.us_for(wanted).unwrap_or(us));
            if stream.has_unsaved() {
                us = us.min(stream.due_us(lead_us).saturating_sub(now_us));
            }
        }
        let us = (us as u32).clamp(SLEEP_US_MIN, SLEEP_US_MAX);
        self.delay.delay_us(us).await;
    }
}

/// For the file system: samples are written between its steps.
impl<M: Medium, C: Clock, D: DelayNs, E: FnMut(Event), const N: usize> Blocks
    for Owner<'_, M, C, D, E, N>
{
    type Error = M::Error;

    fn blocks(&self) -> u32 {
        self.medium.blocks()
    }

    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> Result<(), M::Error> {
        self.give_way().await?;
        let begun_us = self.now_us();
        self.medium.read(start, blocks).await?;
        self.spent(begun_us);
        Ok(())
    }

    async fn write(
        &mut self,
        start: u32,
        count: u32,
        make: &mut dyn FnMut(u32, &mut Block),
    ) -> Result<(), M::Error> {
        self.give_way().await?;
        let begun_us = self.now_us();
        self.end().await?;
        let begun = self.medium.begin(start, count).await;
        begun.map_err(|error| error.cause)?;
        for index in 0..count {
            make(index, &mut self.scratch);
            let pushed = self.medium.push(&self.scratch).await;
            pushed.map_err(|error| error.cause)?;
        }
        self.medium.end().await.map_err(|error| error.cause)?;
        self.spent(begun_us);
        Ok(())
    }
}
