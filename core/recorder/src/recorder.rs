//! The recorder: mounts the card, records until it is stopped, and closes all files.
//!
//! ```text
//!   run ──> next ──> Action ──┬── carry out (shell.rs) ──> apply ──┐
//!            ^                └── Start(job): advances it step by  │
//!            │                    step, between other actions      │
//!            └─────────────────────────────────────────────────────┘
//! ```

use crate::Clock;
use crate::control::Control;
use crate::error::StartError;
use crate::event::Event;
use crate::format::Format;
use crate::jobs::{Done, execute};
use crate::limits::{Limits, READS_US_MAX, RING_BYTES_MIN, WINDOW_US_MIN};
use crate::plan::{Action, Job, Outcome, Phase, Room};
use crate::reads::ReadDesk;
use crate::ring::Consumer;
use crate::shell::{Shell, ShellParts};
use crate::steps::{Port, Step, Steps};
use crate::stream::{Stream, StreamConfig, StreamSummary, Window};
use crate::volume::{ErrorKind, Volume};
use cardiograph_card::{BLOCK_BYTES, BlockDevice};
use core::future::poll_fn;
use core::pin::{Pin, pin};
use core::slice::from_mut;
use core::task::Poll;
use embedded_hal_async::delay::DelayNs;

/// Length of files, and the policy for a full card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Maximum file length in bytes: at least 64 KiB, at most the FAT limit. Files may be up to an eighth shorter, so that
    /// they end with a unit of the card's flash, of up to 4 MiB.
    pub file_bytes: u32,
    /// Interval after which a new file begins, in us; `None` for no interval. [`Control::rotate`] requests a
    /// new file at any time.
    pub rotate_us: Option<u64>,
    /// Policy for a full card.
    pub when_full: WhenFull,
    /// True if [`Recorder::serve`] continues to serve other tasks after the end of the recording.
    pub serves_after_end: bool,
    /// True if a card that is full at the start does not end the run: the recorder reports it, serves other tasks, which may
    /// remove files, and begins once there is room. Otherwise, the run ends with an error.
    pub waits_for_room: bool,
    /// Stall that the rings have to absorb in addition to reads of other tasks, in us. If the card has shown a longer
    /// one since it was acquired, that one counts. 0 if nothing is known about the card.
    pub stall_budget_us: u32,
}

/// Files of up to 45 MiB, which Windows Explorer can copy over WebDAV; the recorder removes nothing.
impl Default for Config {
    fn default() -> Self {
        Config {
            file_bytes: 45 << 20,
            rotate_us: None,
            when_full: WhenFull::Wait,
            serves_after_end: false,
            waits_for_room: false,
            stall_budget_us: 0,
        }
    }
}

/// Policy for a full card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// Pauses recording until there is room; samples that do not fit the ring are lost in one gap.
    Wait,
    /// Removes the oldest recording. Files of other programs are never removed.
    RemoveOldest,
}

/// Everything that a recorder needs.
pub struct Parts<'a, M, V, C, D, E> {
    /// The card.
    pub medium: M,
    /// Its file system.
    pub volume: V,
    /// The clock.
    pub clock: C,
    /// Delays; should have microsecond resolution.
    pub delay: D,
    /// Receives events.
    pub events: E,
    /// Requests from other tasks and interrupts.
    pub control: &'a Control,
    /// Desk for reads and changes of other tasks, if there are any.
    pub reads: Option<&'a ReadDesk<'a>>,
}

/// Records `N` streams on one card.
pub struct Recorder<'a, M, V, VE, C, D, E, const N: usize> {
    shell: Shell<'a, M, C, D, E, N>,
    volume: V,
    /// Reason why no first file could be prepared.
    no_room: Option<VE>,
}

impl<'a, M, V, VE, C, D, E, const N: usize> Recorder<'a, M, V, VE, C, D, E, N>
where
    M: BlockDevice,
    V: for<'s> Volume<Port<'s>, Error = VE>,
    C: Clock,
    D: DelayNs,
    E: FnMut(Event),
{
    /// Creates a recorder for this card. It does nothing before [`run`](Recorder::run).
    pub fn new(
        parts: Parts<'a, M, V, C, D, E>,
        config: Config,
        streams: [(StreamConfig, Consumer<'a>); N],
    ) -> Self {
        Recorder::with_limits(parts, config, streams, Limits::PRODUCT)
    }

    /// Creates a recorder with limits other than those of the product.
    pub(crate) fn with_limits(
        parts: Parts<'a, M, V, C, D, E>,
        config: Config,
        streams: [(StreamConfig, Consumer<'a>); N],
        limits: Limits,
    ) -> Self {
        let tracks = tracks_of(streams.each_ref().map(|(stream, _)| *stream));
        let mut at = 0;
        let streams = streams.map(|(config, consumer)| {
            at += 1;
            Stream::new(config, consumer, at as u8 - 1, tracks[at - 1])
        });
        let outside = ShellParts {
            medium: parts.medium,
            clock: parts.clock,
            delay: parts.delay,
            events: parts.events,
            control: parts.control,
            reads: parts.reads,
        };
        Recorder {
            shell: Shell::new(outside, config, limits, streams),
            volume: parts.volume,
            no_room: None,
        }
    }

    /// Records until [`Control::stop`], or until all producers are closed and all samples are written.
    ///
    /// May be called again after an error, for example with another card; samples pushed meanwhile stay in their rings.
    /// After the end of a recording it returns the same statistics again. If its future is dropped, the card is as after
    /// a power cut.
    ///
    /// # Errors
    /// [`StartError`] if there is no usable card at the start. A card may fail and come back later: events
    /// and gaps report that. With [`Config::waits_for_room`], a full card is no error.
    pub async fn run(&mut self) -> Result<[StreamSummary; N], StartError<M::Error, VE>> {
        let result = match self.check() {
            Ok(()) => self.record(|| false).await,
            Err(error) => Err(error),
        };
        self.shell.answer_last_flush(result.is_ok());
        if let Some(reads) = self.shell.reads {
            reads.watched.borrow_mut().note_end();
        }
        if let Some(reads) = self.shell.reads
            && !self.shell.config.serves_after_end
        {
            reads.close();
        }
        result
    }

    /// Serves reads of other tasks after the end of a recording, until `is_over` returns true. Calls `is_over` after
    /// each action, at least every 2 ms. A card that is removed meanwhile is mounted again when it is back, and one
    /// without a usable file system is tried again.
    ///
    /// # Errors
    /// [`StartError`] if the card fails after `is_over` has returned true.
    pub async fn serve(
        &mut self,
        is_over: impl Fn() -> bool,
    ) -> Result<(), StartError<M::Error, VE>> {
        self.shell.state.phase = Phase::Ended;
        self.shell.is_serving = true;
        let result = self.record(is_over).await;
        self.shell.is_serving = false;
        if let Some(reads) = self.shell.reads {
            reads.close();
        }
        result.map(|_| ())
    }

    /// Returns the card.
    pub fn into_medium(self) -> M {
        self.shell.medium
    }

    async fn record(
        &mut self,
        is_over: impl Fn() -> bool,
    ) -> Result<[StreamSummary; N], StartError<M::Error, VE>> {
        let steps = Steps::new();
        self.shell.abandon_run();
        loop {
            if self.shell.is_serving && is_over() {
                self.shell.is_serving = false;
            }
            let action = self.shell.next();
            let outcome = match action {
                Action::End => break,
                Action::Start(job) => {
                    self.shell.apply(action, Outcome::Done);
                    steps.reset(self.shell.medium.blocks());
                    let Some(mut order) = self.shell.order(job) else {
                        self.shell.end_job(Outcome::JobDone);
                        continue;
                    };
                    let end = loop {
                        let end = {
                            let operation = pin!(execute(&mut self.volume, &steps, &mut order));
                            drive(&mut self.shell, operation, &steps).await
                        };
                        let JobEnd::Done(done) = end else {
                            break end;
                        };
                        let Some(next) = order.next(&done) else {
                            break JobEnd::Done(done);
                        };
                        self.shell.take_done(done);
                        order = next;
                    };
                    self.finish_job(end)?;
                    continue;
                }
                other => self.shell.carry_out(other).await,
            };
            match outcome {
                Ok(()) => self.shell.apply(action, Outcome::Done),
                Err(error) if !self.shell.may_fail() => return Err(StartError::Card(error)),
                Err(_) => self.shell.apply(action, Outcome::Failed),
            }
            self.report_ready();
        }
        match self.no_room.take() {
            Some(error) => Err(StartError::Volume(error)),
            None => Ok(self.shell.summaries()),
        }
    }

    fn check(&self) -> Result<(), StartError<M::Error, VE>> {
        let streams = &self.shell.streams;
        if N == 0 || N > crate::STREAMS_MAX {
            return Err(StartError::Streams);
        }
        let is_small = |stream: &Stream| stream.consumer.capacity_bytes() < RING_BYTES_MIN;
        if streams.iter().any(is_small) {
            return Err(StartError::RingTooSmall);
        }
        let file_blocks = self.shell.config.file_bytes / BLOCK_BYTES as u32;
        if file_blocks < self.shell.limits().file_blocks_min {
            return Err(StartError::FileTooSmall);
        }
        if streams.iter().any(|stream| !stream.encoder.format().fits()) {
            return Err(StartError::LineTooLong);
        }
        let is_short =
            |stream: &Stream| matches!(stream.window(), Window::Us(us) if us < WINDOW_US_MIN);
        if streams.iter().any(is_short) {
            return Err(StartError::WindowTooShort);
        }
        let is_same = |one: &Stream, other: &Stream| {
            one.track != other.track && one.encoder.prefix() == other.encoder.prefix()
        };
        if streams
            .iter()
            .any(|one| streams.iter().any(|other| is_same(one, other)))
        {
            return Err(StartError::SamePrefix);
        }
        Ok(())
    }

    /// Evaluates the end of a job. A failure before the recording has started ends it.
    fn finish_job(&mut self, end: JobEnd<M::Error, VE>) -> Result<(), StartError<M::Error, VE>> {
        let may_fail = self.shell.may_fail();
        let outcome = match end {
            JobEnd::Done(done) => {
                let outcome = match done {
                    Done::Removed(None) => Outcome::NoRoom,
                    _ => Outcome::JobDone,
                };
                if let (Done::Reserved(..), Phase::Recording) = (&done, self.shell.state.phase) {
                    self.no_room = None;
                }
                self.shell.take_done(done);
                if let Some(reads) = self.shell.reads {
                    reads.set_free_blocks(self.volume.free_blocks());
                }
                if self.shell.state.job == Some(Job::Mount) {
                    let volume = &self.volume;
                    let next = |prefix, extension| volume.next_number(prefix, extension);
                    self.shell.take_mounted(volume.file_system(), next);
                }
                outcome
            }
            JobEnd::Refused(error)
                if self.shell.state.job == Some(Job::Change)
                    && let Some(refusal) = self.volume.refusal(&error) =>
            {
                self.shell.end_change(Err(refusal));
                Outcome::JobDone
            }
            // A volume without room for its own repair counts as not mounted.
            JobEnd::Refused(error)
                if V::error_kind(&error) == ErrorKind::NoRoom && !self.shell.is_mounting() =>
            {
                self.shell.take_no_room();
                if !may_fail && self.shell.has_no_file() {
                    self.no_room = Some(error);
                }
                Outcome::NoRoom
            }
            JobEnd::Refused(error) if !may_fail => return Err(StartError::Volume(error)),
            JobEnd::CardFailed(error) if !may_fail => return Err(StartError::Card(error)),
            JobEnd::Refused(_) | JobEnd::CardFailed(_) => Outcome::Failed,
            // The job was dropped with the card; `lose_card` has handled the failure.
            JobEnd::Dropped => return Ok(()),
        };
        self.shell.end_job(outcome);
        if outcome == Outcome::NoRoom && !may_fail && self.shell.has_no_file() {
            self.start_without_room();
        }
        self.report_ready();
        Ok(())
    }

    /// Waits for room for the first files, or ends the run, unless a recording can be removed to make room.
    fn start_without_room(&mut self) {
        match self.shell.config.waits_for_room {
            _ if self.shell.state.room != Room::None => (),
            true => {
                self.no_room = None;
                self.shell.report_full_at_start();
            }
            // First discard the files prepared for other streams.
            false => self.shell.state.phase = Phase::Ending,
        }
    }

    fn report_ready(&mut self) {
        if self.no_room.is_none() {
            self.shell.report_ready();
        }
    }
}

enum JobEnd<CardError, VolumeError> {
    /// The job is done.
    Done(Done),
    /// The volume refused the operation, or cannot be used.
    Refused(VolumeError),
    /// The card failed during one of the steps.
    CardFailed(CardError),
    /// The card failed during another action, which has been handled.
    Dropped,
}

impl<CardError, VolumeError> JobEnd<CardError, VolumeError> {
    fn of(result: Result<Done, VolumeError>) -> Self {
        match result {
            Ok(done) => JobEnd::Done(done),
            Err(error) => JobEnd::Refused(error),
        }
    }
}

/// Runs a file-system operation, one step whenever the planner decides on [`Action::Step`].
async fn drive<M, C, D, E, VE, const N: usize>(
    shell: &mut Shell<'_, M, C, D, E, N>,
    mut operation: Pin<&mut impl Future<Output = Result<Done, VE>>>,
    steps: &Steps,
) -> JobEnd<M::Error, VE>
where
    M: BlockDevice,
    C: Clock,
    D: DelayNs,
    E: FnMut(Event),
{
    loop {
        if let Some(result) = advance(operation.as_mut()).await {
            return JobEnd::of(result);
        }
        let action = shell.next();
        if action == Action::Step {
            shell.begin_step();
            let result = match serve(shell, operation.as_mut(), steps).await {
                Ok(result) => result,
                Err(error) => return JobEnd::CardFailed(error),
            };
            shell.observe_step();
            shell.apply(action, Outcome::Done);
            if let Some(result) = result {
                return JobEnd::of(result);
            }
            continue;
        }
        match shell.carry_out(action).await {
            Ok(()) => shell.apply(action, Outcome::Done),
            Err(_) => {
                shell.apply(action, Outcome::Failed);
                return JobEnd::Dropped;
            }
        }
    }
}

/// Polls an operation until it needs its next step. Returns the result once the operation is done.
async fn advance<T>(mut operation: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    poll_fn(|context| match operation.as_mut().poll(context) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Carries out the pending step: a write of up to 16 blocks, which may follow reads; if these take [`READS_US_MAX`], it is left
/// to the next step. Returns the result if the operation has ended.
#[expect(
    clippy::await_holding_refcell_ref,
    reason = "the operation is not polled during a step, and nothing else borrows the block"
)]
async fn serve<M, C, D, E, T, const N: usize>(
    shell: &mut Shell<'_, M, C, D, E, N>,
    mut operation: Pin<&mut impl Future<Output = T>>,
    steps: &Steps,
) -> Result<Option<T>, M::Error>
where
    M: BlockDevice,
    C: Clock,
    D: DelayNs,
    E: FnMut(Event),
{
    shell.end_write().await?;
    while let Some(Step::Read { start }) = steps.pending() {
        shell
            .medium
            .read(start, from_mut(&mut *steps.block()))
            .await?;
        steps.done();
        if shell.us_of_step() >= READS_US_MAX {
            return Ok(None);
        }
        if let Some(result) = advance(operation.as_mut()).await {
            return Ok(Some(result));
        }
    }
    if let Some(Step::Write { start, count, .. }) = steps.pending() {
        shell.note_write_to(start, count);
        let begun = shell.medium.begin(start, count).await;
        begun.map_err(|error| error.cause)?;
        while let Some(Step::Write { index, count, .. }) = steps.pending() {
            let pushed = shell.medium.push(&steps.block()).await;
            pushed.map_err(|error| error.cause)?;
            if index + 1 == count {
                break;
            }
            steps.done();
            // Polling makes the operation supply the next block; it cannot finish before it has supplied all.
            let _ = advance(operation.as_mut()).await;
        }
        shell.medium.end().await.map_err(|error| error.cause)?;
        steps.done();
    }
    Ok(None)
}

/// Assigns each stream its track: binary streams with the same prefix share one.
fn tracks_of<const N: usize>(streams: [StreamConfig; N]) -> [u8; N] {
    let mut tracks = [0; N];
    let mut count = 0;
    for at in 0..N {
        let is_shared = |other: &usize| {
            let are_binary = matches!(streams[at].format, Format::Binary(_))
                && matches!(streams[*other].format, Format::Binary(_));
            are_binary && streams[at].prefix == streams[*other].prefix
        };
        tracks[at] = match (0..at).find(is_shared) {
            Some(other) => tracks[other],
            None => {
                count += 1;
                count - 1
            }
        };
    }
    tracks
}

#[cfg(test)]
mod tests;
