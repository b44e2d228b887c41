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
use crate::limits::{Limits, RING_BYTES_MIN};
use crate::plan::{Action, Job, Outcome, Phase, Room};
use crate::reads::ReadDesk;
use crate::ring::Consumer;
use crate::shell::{Shell, ShellParts};
use crate::steps::{Port, Step, Steps};
use crate::stream::{Stream, StreamConfig, StreamSummary};
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
            return match result {
                Ok(done) => JobEnd::Done(done),
                Err(error) => JobEnd::Refused(error),
            };
        }
        let action = shell.next();
        if action == Action::Step {
            let begun_us = shell.now_us();
            match serve(shell, operation.as_mut(), steps).await {
                Ok(()) => (),
                Err(error) => return JobEnd::CardFailed(error),
            }
            shell.observe_step(begun_us);
            shell.apply(action, Outcome::Done);
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

/// Carries out the pending step: a read of one block, or a write of up to 16 blocks.
#[expect(
    clippy::await_holding_refcell_ref,
    reason = "the operation is not polled during a step, and nothing else borrows the block"
)]
async fn serve<M, C, D, E, T, const N: usize>(
    shell: &mut Shell<'_, M, C, D, E, N>,
    mut operation: Pin<&mut impl Future<Output = T>>,
    steps: &Steps,
) -> Result<(), M::Error>
where
    M: BlockDevice,
    C: Clock,
    D: DelayNs,
    E: FnMut(Event),
{
    shell.end_write().await?;
    match steps.pending() {
        Some(Step::Read { start }) => {
            let mut block = steps.block();
            shell.medium.read(start, from_mut(&mut *block)).await?;
        }
        Some(Step::Write { start, count, .. }) => {
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
                // Polling makes the operation supply the next block; it cannot finish before it has supplied
                // all.
                let _ = advance(operation.as_mut()).await;
            }
            shell.medium.end().await.map_err(|error| error.cause)?;
        }
        None => (),
    }
    steps.done();
    Ok(())
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
mod tests {
    use super::*;
    use crate::ring::{Producer, Ring};
    use crate::volume::tests::Plain;
    use crate::{FileId, MAGOD2, ReadClass, ReadError, Window};
    use cardiograph_card::{Block, WriteError};
    use core::cell::{Cell, RefCell};
    use core::sync::atomic::AtomicU8;
    use core::task::{Context, Waker};
    use std::boxed::Box;
    use std::string::String;
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn only_binary_streams_with_the_same_prefix_share_a_track() {
        const BINARY: Format = Format::Binary(&[MAGOD2]);
        const CSV: Format = Format::Csv(&[MAGOD2]);
        let tracks = |streams: [(&[u8; 3], Format); 3]| {
            tracks_of(streams.map(|(prefix, format)| StreamConfig {
                prefix: *prefix,
                format,
                window: Window::Sample,
            }))
        };
        let of = |formats: [Format; 3]| {
            let [a, b, c] = formats;
            [
                tracks([(b"LOG", a), (b"LOG", b), (b"LOG", c)]),
                tracks([(b"LOG", a), (b"IMU", b), (b"LOG", c)]),
                tracks([(b"LOG", a), (b"IMU", b), (b"IMU", c)]),
                tracks([(b"LOG", a), (b"IMU", b), (b"GPS", c)]),
            ]
        };
        let apart = [0, 1, 2];
        assert_eq!(of([BINARY; 3]), [[0, 0, 0], [0, 1, 0], [0, 1, 1], apart]);
        assert_eq!(
            of([BINARY, CSV, BINARY]),
            [[0, 1, 0], [0, 1, 0], apart, apart]
        );
        assert_eq!(of([CSV; 3]), [apart; 4]);
        assert_eq!(of([CSV, BINARY, CSV]), [apart; 4]);
    }

    /// A card that may be missing, and takes all blocks.
    struct Sink {
        is_there: bool,
    }

    impl BlockDevice for Sink {
        type Error = ();

        async fn acquire(&mut self) -> Result<(), ()> {
            self.is_there.then_some(()).ok_or(())
        }

        fn blocks(&self) -> u32 {
            0
        }

        async fn read(&mut self, _: u32, _: &mut [Block]) -> Result<(), ()> {
            Err(())
        }

        async fn write(&mut self, _: u32, _: &[Block]) -> Result<(), WriteError<()>> {
            unreachable!("a recorder pushes blocks")
        }

        async fn begin(&mut self, _: u32, _: u32) -> Result<(), WriteError<()>> {
            Ok(())
        }

        async fn push(&mut self, _: &Block) -> Result<(), WriteError<()>> {
            Ok(())
        }

        async fn end(&mut self) -> Result<(), WriteError<()>> {
            Ok(())
        }
    }

    /// A delay in which others run once.
    struct Pause;

    impl DelayNs for Pause {
        async fn delay_ns(&mut self, _: u32) {
            let mut is_over = false;
            poll_fn(|_| match core::mem::replace(&mut is_over, true) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
            .await;
        }
    }

    type Tested<'a, const N: usize> = Recorder<
        'a,
        Sink,
        Plain,
        ErrorKind,
        &'a dyn Fn() -> u64,
        Pause,
        Box<dyn FnMut(Event) + 'a>,
        N,
    >;

    struct Outside<'a> {
        control: &'a Control,
        desk: &'a ReadDesk<'a>,
        producers: Vec<Producer<'a>>,
        events: &'a RefCell<Vec<Event>>,
    }

    /// Calls `test` with a recorder of these streams. Each reading of its clock takes 1 ms.
    fn with<const N: usize>(
        ring_bytes: usize,
        config: Config,
        (is_there, volume): (bool, Plain),
        streams: [(&[u8; 3], Format); N],
        test: impl FnOnce(&mut Tested<N>, &mut Outside),
    ) {
        let (control, now_us, events) = (Control::new(), Cell::new(0_u64), RefCell::new(vec![]));
        let mut blocks = [[0; BLOCK_BYTES]; 2];
        let desk = ReadDesk::new(&mut blocks);
        let mut rings: [_; N] = core::array::from_fn(|_| {
            let cells: Vec<AtomicU8> = (0..ring_bytes).map(|_| AtomicU8::new(0)).collect();
            Ring::over(cells)
        });
        let mut producers = vec![];
        let streams = rings.each_mut().map(|ring| {
            let (prefix, format) = streams[producers.len()];
            let (producer, consumer) = ring.split(format);
            producers.push(producer);
            let config = StreamConfig {
                prefix: *prefix,
                format,
                window: Window::default(),
            };
            (config, consumer)
        });
        let clock = || {
            now_us.set(now_us.get() + 1_000);
            now_us.get()
        };
        let parts = Parts {
            medium: Sink { is_there },
            volume,
            clock: &clock as &dyn Fn() -> u64,
            delay: Pause,
            events: Box::new(|event| events.borrow_mut().push(event)) as Box<dyn FnMut(Event)>,
            control: &control,
            reads: Some(&desk),
        };
        let mut outside = Outside {
            control: &control,
            desk: &desk,
            producers,
            events: &events,
        };
        test(&mut Recorder::new(parts, config, streams), &mut outside);
    }

    const LINES: Format = Format::Lines {
        header: "",
        line_bytes_max: 80,
    };
    const STREAM: [(&[u8; 3], Format); 1] = [(b"LOG", LINES)];

    /// Returns the result of the check of a recorder, as text.
    fn checked<const N: usize>(
        ring_bytes: usize,
        file_bytes: u32,
        streams: [(&[u8; 3], Format); N],
    ) -> String {
        let config = Config {
            file_bytes,
            ..Config::default()
        };
        let (mut result, card) = (String::new(), (false, Plain::default()));
        with(ring_bytes, config, card, streams, |recorder, _| {
            result = std::format!("{:?}", recorder.check());
        });
        result
    }

    #[test]
    fn a_recorder_within_its_limits_may_begin() {
        assert_eq!(checked(1_024, 65_536, STREAM), "Ok(())");
        assert_eq!(checked(1_023, 65_536, STREAM), "Err(RingTooSmall)");
        assert_eq!(checked(1_024, 65_535, STREAM), "Err(FileTooSmall)");
        assert_eq!(checked(1_024, 511, STREAM), "Err(FileTooSmall)");
        let long = Format::Lines {
            header: "",
            line_bytes_max: 406,
        };
        assert_eq!(checked(1_024, 65_536, [(b"LOG", long)]), "Err(LineTooLong)");
        assert_eq!(checked(1_024, 65_536, []), "Err(Streams)");
        let four = [b"AAA", b"BBB", b"CCC", b"DDD"].map(|prefix| (prefix, LINES));
        assert_eq!(checked(1_024, 65_536, four), "Ok(())");
        let five = [b"AAA", b"BBB", b"CCC", b"DDD", b"EEE"].map(|prefix| (prefix, LINES));
        assert_eq!(checked(1_024, 65_536, five), "Err(Streams)");
        let same = [b"AAA", b"BBB", b"AAA"].map(|prefix| (prefix, LINES));
        assert_eq!(checked(1_024, 65_536, same), "Err(SamePrefix)");
        let shared = [b"AAA"; 2].map(|prefix| (prefix, Format::Binary(&[MAGOD2])));
        assert_eq!(checked(1_024, 65_536, shared), "Ok(())");
    }

    const POLLS_MAX: u32 = 2_000;
    /// Poll after which a test stops a recording.
    const STOP: u32 = 1_800;

    /// Polls a future until it is done, and calls `meanwhile` after each poll.
    fn run<T>(future: impl Future<Output = T>, mut meanwhile: impl FnMut()) -> Option<T> {
        let mut future = pin!(future);
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..POLLS_MAX {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return Some(output);
            }
            meanwhile();
        }
        None
    }

    /// Returns a card that is missing, and one that cannot be read.
    fn failing_cards() -> [(bool, Plain); 2] {
        let unreadable = Plain {
            reads: true,
            ..Plain::default()
        };
        [(false, Plain::default()), (true, unreadable)]
    }

    /// Returns the result of a run as text, and the events; `None` if the run does not end. Readers see this many mounts and
    /// changes.
    fn ran(config: Config, card: (bool, Plain), changes: u32) -> (Option<String>, Vec<Event>) {
        let mut output = (None, vec![]);
        with(1_024, config, card, STREAM, |recorder, outside| {
            let control = outside.control;
            let ended = run(recorder.run(), || {
                if control.is_ready() {
                    control.stop();
                }
            });
            let text = |summaries: [StreamSummary; 1]| summaries[0].files;
            output.0 = ended.map(|ended| std::format!("{:?}", ended.map(text)));
            output.1 = outside.events.borrow().clone();
            // Without a recorder, no task waits.
            let lend = run(outside.desk.lend(1, 1, ReadClass::Bulk, 0), || ());
            let error = lend.map(|lend| lend.map(|_| ()));
            assert_eq!(error.is_some(), output.0.is_some());
            assert_eq!(outside.desk.generation(), changes);
        });
        output
    }

    /// Before sampling begins, any failure ends the run. With `waits_for_room`, a full card is none.
    #[test]
    fn a_run_ends_with_the_failure_of_its_beginning() {
        use ErrorKind::{NoRoom, Volume};
        for card in failing_cards() {
            let no_card = ran(Config::default(), card, 0).0;
            assert_eq!(no_card.as_deref(), Some("Err(Card(()))"));
        }
        for (mount, reserved, waiting, ending) in [
            (
                Some(Volume),
                Ok(128),
                Some("Err(Volume(Volume))"),
                "Err(Volume(Volume))",
            ),
            (
                Some(NoRoom),
                Ok(128),
                Some("Err(Volume(NoRoom))"),
                "Err(Volume(NoRoom))",
            ),
            (
                None,
                Err(Volume),
                Some("Err(Volume(Volume))"),
                "Err(Volume(Volume))",
            ),
            (None, Err(NoRoom), None, "Err(Volume(NoRoom))"),
            (None, Ok(128), Some("Ok(0)"), "Ok(0)"),
        ] {
            for waits_for_room in [true, false] {
                let config = Config {
                    waits_for_room,
                    ..Config::default()
                };
                let volume = Plain {
                    mount,
                    reserved: vec![reserved],
                    next_number: 9,
                    ..Plain::default()
                };
                let changes = u32::from(mount.is_none());
                let (ended, events) = ran(config, (true, volume), changes);
                let expected = if waits_for_room {
                    waiting
                } else {
                    Some(ending)
                };
                assert_eq!(ended.as_deref(), expected, "{mount:?} {reserved:?}");
                let full = events.iter().filter(|it| matches!(it, Event::Full { .. }));
                let is_waiting = expected.is_none();
                assert_eq!(full.count() == 1, is_waiting, "{events:?}");
                let number = events.iter().find_map(|event| match event {
                    Event::Opened { id, .. } => Some(id.number),
                    _ => None,
                });
                let is_open = mount.is_none() && reserved.is_ok();
                assert_eq!(number, is_open.then_some(9));
            }
        }
    }

    #[test]
    fn the_oldest_recording_is_removed_to_make_room_for_the_first_file() {
        let id = |number| FileId {
            prefix: *b"LOG",
            extension: *b"CSV",
            number,
        };
        for (old, expected) in [
            (vec![id(3)], Some("Ok(0)")),
            (vec![], Some("Err(Volume(NoRoom))")),
        ] {
            let config = Config {
                when_full: WhenFull::RemoveOldest,
                ..Config::default()
            };
            let volume = Plain {
                reserved: vec![Ok(128), Err(ErrorKind::NoRoom)],
                old: old.clone(),
                ..Plain::default()
            };
            // The mount, and the beginning and the end of a removal.
            let changes = 2 + old.len() as u32;
            let (ended, events) = ran(config, (true, volume), changes);
            assert_eq!(ended.as_deref(), expected);
            let removed = events.iter().filter_map(|event| match event {
                Event::Removed { id } => Some(*id),
                _ => None,
            });
            assert!(removed.eq(old));
        }
    }

    #[test]
    fn a_run_whose_rings_are_too_small_does_not_begin() {
        let card = (true, Plain::default());
        with(
            1_023,
            Config::default(),
            card,
            STREAM,
            |recorder, outside| {
                let ended = run(recorder.run(), || ());
                assert!(matches!(ended, Some(Err(StartError::RingTooSmall))));
                assert!(outside.events.borrow().is_empty());
            },
        );
    }

    /// Setup: after the first file, there is no room for another one.
    #[test]
    fn a_card_that_becomes_full_does_not_end_the_recording() {
        let volume = Plain {
            reserved: vec![Ok(128)],
            ..Plain::default()
        };
        let config = Config::default();
        with(
            1_024,
            config,
            (true, volume),
            STREAM,
            |recorder, outside| {
                let (control, events) = (outside.control, outside.events);
                let producer = &mut outside.producers[0];
                let (mut polls, line) = (0, std::format!("{:79}\n", "sample"));
                let ended = run(recorder.run(), || {
                    if control.is_ready() {
                        // Some samples find no room.
                        for _ in 0..4 {
                            let _ = producer.push(line.as_bytes(), 0);
                        }
                    }
                    polls += 1;
                    if polls == STOP {
                        control.stop();
                    }
                });
                assert_eq!(polls, STOP, "only the stop ends it");
                let [summary] = ended.unwrap().unwrap();
                assert!(summary.lost > 0 && summary.files == 1);
                let events = events.borrow();
                assert!(events.iter().any(|it| matches!(it, Event::Full { .. })));
            },
        );
    }

    /// The card may come back, so that only the caller ends the serving of other tasks.
    #[test]
    fn other_tasks_are_served_until_the_caller_ends_it() {
        let unusable = Plain {
            mount: Some(ErrorKind::Volume),
            ..Plain::default()
        };
        for card in failing_cards().into_iter().chain([(true, unusable)]) {
            with(
                1_024,
                Config::default(),
                card,
                STREAM,
                |recorder, outside| {
                    let asked = Cell::new(0);
                    let is_over = || {
                        asked.set(asked.get() + 1);
                        asked.get() >= 500
                    };
                    assert!(matches!(run(recorder.serve(is_over), || ()), Some(Ok(()))));
                    assert_eq!(asked.get(), 500);
                    let lend = run(outside.desk.lend(1, 1, ReadClass::Bulk, 0), || ());
                    let error = lend.map(|lend| lend.map(|_| ()));
                    assert_eq!(error, Some(Err(ReadError::Closed)));
                },
            );
        }
    }
}
