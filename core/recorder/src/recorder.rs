//! The recorder: brings card, file system and streams together, from the first mount to the last close.
//!
//! ```text
//!             acquire, mount, recover, reserve all files that may be ahead
//!   run ──────────────────────────────────────────────────────────────> ready
//!                                                                         │
//!        ┌────────────────────────────────────────────────────────────────┤
//!        v                                                                │
//!      samples ── nothing to write ──> reads ──> files: close, reserve ──>┤
//!        │                                                                │
//!        ├── stop: checkpoint, close all files, done                      │
//!        │                                                                │
//!        └── the card fails ──> gaps ──> acquire, mount, recover, reserve ┘
//!                                  ^─── again every 100 ms
//! ```

use crate::Clock;
use crate::control::Control;
use crate::event::Event;
use crate::gap::Cause;
use crate::limits::{
    ENDING_ATTEMPTS, FILE_BLOCKS_MIN, LINE_BYTES_MAX, RETRY_US, RING_BYTES_MIN, URGENT_REMOVAL_US,
    URGENT_US,
};
use crate::owner::{Owner, OwnerParts};
use crate::reads::ReadDesk;
use crate::recover::recover;
use crate::ring::Source;
use crate::stream::{Stream, StreamConfig, StreamSummary};
use crate::volume::{ErrorKind, FileRecord, RESERVED_MAX, Request, Volume};
use cardiograph_card::{BLOCK_BYTES, Medium};
use core::fmt;
use embedded_hal_async::delay::DelayNs;

/// When a new file is begun, and what is done when there is no room for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Length of a file, in bytes; at least 64 KiB, at most what FAT allows.
    pub file_bytes: u32,
    /// A new file is begun after so many us, if at all. [`Control::roll`] begins one at any time.
    pub file_us: Option<u64>,
    /// What is done when the card is full.
    pub when_full: WhenFull,
}

/// 64 MiB, and nothing is removed.
impl Default for Config {
    fn default() -> Self {
        Config {
            file_bytes: 64 << 20,
            file_us: None,
            when_full: WhenFull::Stop,
        }
    }
}

/// What is done when the card is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// No more is recorded; what comes is counted as lost.
    Stop,
    /// The oldest recording is removed. Files of others never are.
    RemoveOldest,
}

/// Why a recording did not begin.
#[derive(Debug)]
pub enum StartError<CardError, VolumeError> {
    /// The card.
    Card(CardError),
    /// Its file system.
    Volume(VolumeError),
    /// A ring has less than 1024 bytes, two blocks.
    RingTooSmall,
    /// More streams than [`STREAMS_MAX`](crate::STREAMS_MAX), or none.
    Streams,
    /// Files are to be shorter than 64 KiB.
    FileTooSmall,
    /// A header with its end is longer than [`LINE_BYTES_MAX`](crate::LINE_BYTES_MAX), or lines may be.
    LineTooLong,
}

impl<C: fmt::Display, V: fmt::Display> fmt::Display for StartError<C, V> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            StartError::Card(error) => error.fmt(f),
            StartError::Volume(error) => error.fmt(f),
            StartError::RingTooSmall => {
                f.write_str("the ring is too small; give it at least 1024 bytes, two blocks")
            }
            StartError::Streams => f.write_str("one to four streams share a card"),
            StartError::FileTooSmall => f.write_str("files have at least 64 KiB"),
            StartError::LineTooLong => write!(
                f,
                "lines and headers have at most {LINE_BYTES_MAX} bytes with their ends; shorten them"
            ),
        }
    }
}

impl<C: fmt::Debug + fmt::Display, V: fmt::Debug + fmt::Display> core::error::Error
    for StartError<C, V>
{
}

/// Records `N` streams on one card.
pub struct Recorder<'a, M, V, C, D, E, const N: usize> {
    owner: Owner<'a, M, C, D, E, N>,
    volume: V,
    config: Config,
    control: &'a Control,
    reads: Option<&'a ReadDesk<'a>>,
    /// The stream whose files are seen to first.
    files_turn: usize,
    /// How often a card that has failed is tried yet, once the recording is to end.
    ending_attempts: u32,
}

impl<'a, M, V, C, D, E, const N: usize> Recorder<'a, M, V, C, D, E, N>
where
    M: Medium,
    V: Volume<Owner<'a, M, C, D, E, N>>,
    C: Clock,
    D: DelayNs,
    E: FnMut(Event),
{
    /// A recorder on this card. Nothing happens before [`run`](Recorder::run).
    pub fn new(
        parts: Parts<'a, M, V, C, D, E>,
        config: Config,
        streams: [(StreamConfig, Source<'a>); N],
    ) -> Self {
        let streams = streams.map(|(config, source)| Stream::new(config, source));
        Recorder {
            volume: parts.volume,
            config,
            control: parts.control,
            reads: parts.reads,
            files_turn: 0,
            ending_attempts: ENDING_ATTEMPTS,
            owner: Owner::new(
                OwnerParts {
                    medium: parts.medium,
                    clock: parts.clock,
                    delay: parts.delay,
                    events: parts.events,
                    control: parts.control,
                    file_us: config.file_us,
                    urgent_us: match config.when_full {
                        WhenFull::Stop => URGENT_US,
                        WhenFull::RemoveOldest => URGENT_REMOVAL_US,
                    },
                },
                streams,
            ),
        }
    }

    /// Records until [`Control::stop`], or until all samplers are closed and all is written.
    ///
    /// # Errors
    /// [`StartError`] if there is no card that can be recorded on. Later the card may fail and come back:
    /// that is in the events and gaps.
    pub async fn run(&mut self) -> Result<[StreamSummary; N], StartError<M::Error, V::Error>> {
        self.check()?;
        self.mount().await?;
        self.open_files().await.map_err(StartError::Volume)?;
        self.prepare_files().await.map_err(StartError::Volume)?;
        self.control.set_ready();
        loop {
            let done = match self.owner.is_ending() {
                true => self.finish().await.map(|()| true),
                false => self.turn().await.map(|()| false),
            };
            match done {
                Ok(true) => {
                    // What was pushed before it is in files that are closed.
                    self.control.set_flushed(self.control.flush_asked());
                    break;
                }
                Ok(false) => (),
                Err(_) => {
                    if let Err(cause) = self.come_back().await {
                        self.lose_rest(|_| Some(cause));
                        break;
                    }
                }
            }
        }
        self.lose_rest(|stream| stream.is_given_up.then_some(Cause::CardFull));
        if let Some(reads) = self.reads {
            reads.close();
        }
        Ok(self.summaries())
    }

    fn check(&self) -> Result<(), StartError<M::Error, V::Error>> {
        let streams = &self.owner.streams;
        if N == 0 || N > crate::STREAMS_MAX {
            return Err(StartError::Streams);
        }
        if streams
            .iter()
            .any(|stream| stream.source.capacity_bytes() < RING_BYTES_MIN)
        {
            return Err(StartError::RingTooSmall);
        }
        if self.config.file_bytes / (BLOCK_BYTES as u32) < FILE_BLOCKS_MIN {
            return Err(StartError::FileTooSmall);
        }
        if streams.iter().any(|stream| !stream.config.format.fits()) {
            return Err(StartError::LineTooLong);
        }
        Ok(())
    }

    /// Acquires the card, and brings its file system and what was cut off in order.
    async fn mount(&mut self) -> Result<(), StartError<M::Error, V::Error>> {
        self.owner.forget_card();
        self.owner
            .medium
            .acquire()
            .await
            .map_err(StartError::Card)?;
        recover(&mut self.volume, &mut self.owner, |owner, event| {
            (owner.events)(event);
        })
        .await
    }

    /// Opens a file for each stream.
    async fn open_files(&mut self) -> Result<(), V::Error> {
        for at in 0..N {
            self.reserve(at).await?;
            let stream = &mut self.owner.streams[at];
            let (prefix, extension) = (stream.config.prefix, stream.config.format.extension());
            stream.next_number = self.volume.next_number(prefix, extension);
            if let Some(file) = self.owner.begin_next(at)
                && let Some(id) = file.id
            {
                let named = self.volume.name(&mut self.owner, file.slot, id, "");
                named.await?;
            }
        }
        Ok(())
    }

    /// Prepares files as long as no samples come: later it may have to wait.
    async fn prepare_files(&mut self) -> Result<(), V::Error> {
        for at in 0..N {
            while !self.has_all_files(at) && !self.owner.streams[at].is_card_full {
                self.reserve(at).await?;
            }
        }
        Ok(())
    }

    /// Whether a stream has its share of the files that may be unfinished at once.
    fn has_all_files(&self, at: usize) -> bool {
        self.owner.streams[at].files_beside() >= RESERVED_MAX / N - 1
    }

    /// Prepares the next file of a stream, if there is room for one.
    async fn reserve(&mut self, at: usize) -> Result<(), V::Error> {
        let stream = &self.owner.streams[at];
        let request = Request {
            prefix: stream.config.prefix,
            extension: stream.config.format.extension(),
            blocks: self.config.file_bytes / BLOCK_BYTES as u32,
            blocks_min: FILE_BLOCKS_MIN,
            note: stream.config.format.note(),
        };
        loop {
            let reserved = self.volume.reserve(&mut self.owner, request).await;
            let error = match reserved {
                Ok(file) => {
                    if file.extent.blocks < request.blocks {
                        (self.owner.events)(Event::Short {
                            stream: at as u8,
                            bytes_max: u64::from(file.extent.blocks) * BLOCK_BYTES as u64,
                        });
                    }
                    self.owner.streams[at].is_full_told = false;
                    let is_noted = self.owner.streams[at].ahead.push_back(file).is_ok();
                    debug_assert!(is_noted);
                    return Ok(());
                }
                Err(error) => error,
            };
            if !is_full(V::error_kind(&error)) {
                return Err(error);
            }
            // Nothing is removed for a file that is not needed yet.
            let is_needed = self.owner.streams[at].ahead.is_empty();
            if !is_needed || !self.make_room().await? {
                self.owner.streams[at].is_card_full = true;
                let mut streams = self.owner.streams.iter();
                let may_be_freed = streams.any(|stream| !stream.closing.is_empty());
                if is_needed && !may_be_freed {
                    let stream = &mut self.owner.streams[at];
                    stream.is_given_up = true;
                    if !core::mem::replace(&mut stream.is_full_told, true) {
                        (self.owner.events)(Event::Full { stream: at as u8 });
                    }
                }
                // Without a first file there is nothing to record to.
                return match self.owner.streams[at].file {
                    Some(_) => Ok(()),
                    None => Err(error),
                };
            }
        }
    }

    /// Removes the oldest recording if that is wanted; whether there was one.
    async fn make_room(&mut self) -> Result<bool, V::Error> {
        if self.config.when_full == WhenFull::Stop {
            return Ok(false);
        }
        let removed = self.volume.remove_oldest(&mut self.owner).await?;
        if let Some(id) = removed {
            let name = id.short_name();
            (self.owner.events)(Event::Removed { name });
        }
        Ok(removed.is_some())
    }

    /// Samples first, then requests, reads and files, then sleep.
    async fn turn(&mut self) -> Result<(), Failed> {
        self.owner.set_cause(Cause::Busy);
        if self.owner.is_between() && self.serve().await? {
            return Ok(());
        }
        // A stream without a file does not wait until the others have nothing to write.
        let is_stuck = |stream: &Stream| stream.is_blocked() && !stream.is_given_up;
        if self.owner.streams.iter().any(is_stuck) && self.keep_files().await? {
            return Ok(());
        }
        if self.owner.work().await.map_err(|_| Failed)? {
            return Ok(());
        }
        self.control.set_flush_us_max(self.owner.flush_us_max());
        if self.serve().await? {
            return Ok(());
        }
        if self.keep_files().await? {
            return Ok(());
        }
        self.owner.rest().await;
        Ok(())
    }

    /// Does a read that somebody asked for; whether there was one that the rings bear.
    async fn serve(&mut self) -> Result<bool, Failed> {
        match self.reads {
            Some(reads) => self.owner.serve(reads).await.map_err(|_| Failed),
            None => Ok(false),
        }
    }

    /// Closes a file that is complete, or prepares one more, if the rings bear it or it is urgent; whether
    /// there was anything to do.
    async fn keep_files(&mut self) -> Result<bool, Failed> {
        let is_bearable = self.owner.bears_file_system();
        for step in 0..N {
            // In turn: one that always needs files does not keep them from the others.
            let at = (self.files_turn + step) % N;
            let is_urgent = self.owner.is_urgent(at);
            let is_full = self.has_all_files(at);
            let stream = &self.owner.streams[at];
            // Closing frees what a file has not used, and a place for the next.
            let is_first = is_full || stream.ahead.is_empty();
            if !stream.closing.is_empty() && (is_bearable || is_urgent && is_first) {
                self.files_turn = at + 1;
                return self.close_one(at).await.map(|()| true);
            }
            let may_try = !stream.is_card_full || (is_urgent && stream.ahead.is_empty());
            if !is_full && may_try && !stream.is_given_up && (is_bearable || is_urgent) {
                self.files_turn = at + 1;
                self.reserve(at).await.map_err(|_| Failed)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn close_one(&mut self, at: usize) -> Result<(), Failed> {
        let Some(closing) = self.owner.streams[at].closing.front().copied() else {
            return Ok(());
        };
        let closed = match closing.bytes {
            0 => self.volume.discard(&mut self.owner, closing.slot).await,
            bytes => {
                let record = FileRecord::of_length(closing.id, bytes);
                self.volume
                    .close(&mut self.owner, closing.slot, &record)
                    .await
            }
        };
        closed.map_err(|_| Failed)?;
        let stream = &mut self.owner.streams[at];
        stream.closing.pop_front();
        stream.summary.bytes += closing.bytes;
        (self.owner.events)(Event::Closed {
            stream: at as u8,
            name: closing.id.short_name(),
            bytes: closing.bytes,
        });
        Ok(())
    }

    /// Writes what waits, and closes all files. What is pushed from now on is not written any more.
    async fn finish(&mut self) -> Result<(), Failed> {
        self.owner.begin_finish();
        while self.owner.is_forced() {
            if self.owner.work().await.map_err(|_| Failed)? {
                continue;
            }
            // A file that is full gets its successor here too.
            let is_waiting = |at: &usize| {
                let stream = &self.owner.streams[*at];
                stream.target.is_some_and(|target| target.is_forced) && stream.is_blocked()
            };
            let Some(at) = (0..N).find(is_waiting) else {
                break;
            };
            if self.owner.streams[at].is_given_up {
                self.owner.streams[at].target = None;
                continue;
            }
            if !self.owner.streams[at].closing.is_empty() {
                self.close_one(at).await?;
            }
            self.reserve(at).await.map_err(|_| Failed)?;
        }
        self.close_all().await
    }

    async fn close_all(&mut self) -> Result<(), Failed> {
        for at in 0..N {
            while self.owner.streams[at].closing.is_full() {
                self.close_one(at).await?;
            }
        }
        // All at once, before anything is waited for: a stream without a file writes nothing.
        for stream in &mut self.owner.streams {
            if let Some(file) = stream.file.take() {
                let closing = stream.closing_of(file);
                let is_noted = stream.closing.push_back(closing).is_ok();
                debug_assert!(is_noted);
            }
        }
        for at in 0..N {
            while !self.owner.streams[at].closing.is_empty() {
                self.close_one(at).await?;
            }
            while let Some(file) = self.owner.streams[at].ahead.pop_front() {
                let discarded = self.volume.discard(&mut self.owner, file.slot).await;
                discarded.map_err(|_| Failed)?;
            }
        }
        Ok(())
    }

    /// The card failed: notes what is lost, and tries until it works again. If the recording is to end
    /// before, why it does not.
    async fn come_back(&mut self) -> Result<(), Cause> {
        (self.owner.events)(Event::CardLost);
        let mut cause = Cause::CardFailed;
        self.owner.forget_flush();
        loop {
            let acquired = self.owner.medium.acquire().await.is_ok();
            if !acquired {
                cause = Cause::NoCard;
            }
            self.owner.set_cause(cause);
            // The attempt before may have written samples before it failed.
            self.note_losses(cause);
            if acquired && self.mount().await.is_ok() {
                match self.open_files().await {
                    Ok(()) => {
                        (self.owner.events)(Event::CardBack);
                        // A card that comes back only to fail at the end is not tried for ever.
                        self.ending_attempts -= u32::from(self.owner.is_ending());
                        return match self.ending_attempts {
                            0 => Err(cause),
                            _ => Ok(()),
                        };
                    }
                    Err(error) if is_full(V::error_kind(&error)) => cause = Cause::CardFull,
                    Err(_) => (),
                }
            }
            self.note_losses(cause);
            if let Some(reads) = self.reads {
                reads.refuse();
            }
            if self.owner.is_ending() {
                self.ending_attempts -= 1;
            }
            if self.ending_attempts == 0 {
                return Err(cause);
            }
            self.owner.delay.delay_us(RETRY_US).await;
        }
    }

    fn note_losses(&mut self, cause: Cause) {
        let now_us = self.owner.now_us();
        for at in 0..N {
            if let Some(gap) = self.owner.streams[at].lose_card(now_us, cause) {
                (self.owner.events)(Event::Lost {
                    stream: at as u8,
                    gap,
                });
            }
        }
    }

    /// What could not be written in the end is lost.
    fn lose_rest(&mut self, cause: impl Fn(&Stream) -> Option<Cause>) {
        let now_us = self.owner.now_us();
        for at in 0..N {
            let stream = &mut self.owner.streams[at];
            let Some(cause) = cause(stream) else {
                continue;
            };
            if let Some(gap) = stream.lose_rest(now_us, cause) {
                (self.owner.events)(Event::Lost {
                    stream: at as u8,
                    gap,
                });
            }
        }
    }

    fn summaries(&self) -> [StreamSummary; N] {
        core::array::from_fn(|at| StreamSummary {
            ring_peak_bytes: self.owner.streams[at].source.peak_bytes(),
            ..self.owner.streams[at].summary
        })
    }
}

/// What a recorder is made of.
pub struct Parts<'a, M, V, C, D, E> {
    /// The card.
    pub medium: M,
    /// Its file system.
    pub volume: V,
    /// What time it is.
    pub clock: C,
    /// Sleeps; should resolve microseconds.
    pub delay: D,
    /// Is told what happens.
    pub events: E,
    /// What others ask for.
    pub control: &'a Control,
    /// Reads beside the recording, if there are to be any.
    pub reads: Option<&'a ReadDesk<'a>>,
}

/// Returns true if there is no room for another file.
fn is_full(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NoRoom | ErrorKind::DirectoryFull)
}

/// The card or its file system failed: which of both does not matter, all is tried again.
struct Failed;
