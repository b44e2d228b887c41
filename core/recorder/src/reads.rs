//! Reads of other tasks: they request blocks here, and the recorder reads them when its rings can absorb that.
//!
//! ```text
//!   reader ── lend ──> Waiting ──> UnderWay ──> Done ──> Lent ── drop ──> Free
//!                         │           │ reader dropped
//!                         │           └───────────> Orphaned ──> Free
//!                         └── no card, closed, changed ──> Failed ──> Free
//! ```
//!
//! The desk owns the memory, so a read that has begun completes even if its reader was dropped. Blocks are lent,
//! not copied: a server sends them to the network from there while the next read fills another buffer.

use crate::buffers::{Buffer, Buffers};
use crate::changes::{Changes, WriteBuffer};
use crate::gap::Gap;
use crate::guest::{FileSystem, Table, Unfinished};
use crate::volume::{FileId, RESERVED_MAX};
use crate::waker_queue::WakerQueue;
use crate::watched::{Figures, Watched};
use cardiograph_card::{BLOCK_BYTES, Block};
use core::cell::RefCell;
use core::fmt;
use core::future::poll_fn;
use core::ops::Deref;
use core::task::{Context, Poll, Waker};

/// Maximum number of reads that wait or are under way.
const REQUESTS_MAX: usize = 8;
/// A reader counts as active for this long after its last read, in us: between two reads it sends data.
const ACTIVE_US: u64 = 1_000_000;
/// Time in us after which waiting reads fail if the recorder has carried out none: no card is there, or the rings cannot
/// absorb its stalls.
const WAIT_US_MAX: u64 = 10_000_000;

/// A queue for reads during a recording, shared with tasks on the recorder's own thread. The recorder carries out one
/// read at a time.
pub struct ReadDesk<'a> {
    inner: RefCell<Inner<'a>>,
    pub(crate) changes: Changes<'a>,
    pub(crate) watched: RefCell<Watched>,
}

struct Inner<'a> {
    buffers: Buffers<'a>,
    slots: [Slot<'a>; REQUESTS_MAX],
    /// Number of requests so far; orders the requests of a class.
    tickets: u32,
    /// True if no more reads are accepted.
    is_closed: bool,
    /// Number of changes so far that may have freed blocks: mounts, and removals of files.
    generation: u32,
    /// The generation at the last mount.
    mounted: u32,
    /// File system of the mounted card.
    system: Option<FileSystem>,
    /// Number of free blocks, if it is known.
    free_blocks: Option<u32>,
    /// Recordings in progress.
    unfinished: Table,
    /// Wakers of tasks that wait for a free request slot.
    queue: WakerQueue,
    /// Waker of the recorder, while it sleeps.
    recorder: Option<Waker>,
    /// Time until which readers count as active, in us.
    active_until_us: u64,
    /// True if the next request has already been postponed and counted.
    is_postponed: bool,
    /// Time in us since which the recorder has carried out no read although one waited.
    waiting_since_us: Option<u64>,
    tally: ReadTally,
}

struct Slot<'a> {
    stage: Stage,
    /// The buffer with the blocks that were read.
    buffer: Option<Buffer<'a>>,
    waker: Option<Waker>,
}

impl Slot<'_> {
    const FREE: Self = Slot {
        stage: Stage::Free,
        buffer: None,
        waker: None,
    };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Free,
    Waiting(ReadRequest),
    UnderWay,
    /// The reader of the read under way was dropped.
    Orphaned,
    /// This many blocks were read.
    Done(usize),
    Failed(ReadError),
}

/// Priority of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadClass {
    /// Directories and live data: served first, and one buffer is reserved for this class if there are several buffers.
    Short,
    /// Contents of files.
    Bulk,
}

/// Consecutive blocks of the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadRequest {
    pub(crate) start: u32,
    pub(crate) count: u32,
    class: ReadClass,
    ticket: u32,
    /// Generation in which the reader looked up the blocks; 0 for any.
    generation: u32,
}

/// A read that the recorder carries out now.
pub(crate) struct ReadJob<'a> {
    slot: usize,
    buffer: Buffer<'a>,
    pub(crate) start: u32,
    count: usize,
    class: ReadClass,
}

impl ReadJob<'_> {
    /// Returns the memory for the blocks.
    pub(crate) fn blocks(&mut self) -> &mut [Block] {
        &mut self.buffer.blocks[..self.count]
    }
}

/// Cost of the reads so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct ReadTally {
    /// Completed reads.
    pub reads: u32,
    /// Blocks read.
    pub blocks: u64,
    /// Total time that reads kept the card from writing samples, in us.
    pub card_us: u64,
    /// Longest of those times, in us.
    pub card_us_max: u32,
    /// Reads that were postponed because a ring could not absorb them at once.
    pub put_off: u32,
}

/// Reason why a read failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ReadError {
    /// There is no card, or it is not mounted yet.
    NoCard,
    /// The card could not read the blocks.
    CardFailed,
    /// Another card was inserted, or the card was mounted again, since the reader looked up the blocks.
    OtherCard,
    /// Files were removed since the reader looked up the blocks: it has to look them up again.
    Changed,
    /// The recorder has carried out no read for 10 s: it needs the card, or the card is gone.
    Busy,
    /// The recorder has ended.
    Closed,
    /// The desk has no memory.
    NoMemory,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            ReadError::NoCard => "no card is mounted",
            ReadError::CardFailed => "the card could not read the blocks",
            ReadError::OtherCard => "the card was exchanged or mounted again",
            ReadError::Changed => "files were removed since the blocks were looked up",
            ReadError::Busy => "the recorder needs the card; try again later",
            ReadError::Closed => "the recorder has ended",
            ReadError::NoMemory => "the read desk has no buffer",
        })
    }
}

impl core::error::Error for ReadError {}

impl<'a> ReadDesk<'a> {
    /// Creates a desk with one buffer. Each read may interrupt the recorder, so a few large reads cost less than
    /// many small ones: use 16 blocks or more.
    pub fn new(blocks: &'a mut [Block]) -> Self {
        ReadDesk::with_buffers(blocks, 1)
    }

    /// Creates a desk that splits its memory into up to [`READ_BUFFERS_MAX`](crate::READ_BUFFERS_MAX) buffers of equal
    /// size. With two or more, a reader keeps a buffer while the next read is under way; one buffer is reserved for
    /// reads of [`ReadClass::Short`].
    pub fn with_buffers(blocks: &'a mut [Block], buffers: usize) -> Self {
        ReadDesk {
            inner: RefCell::new(Inner {
                buffers: Buffers::new(blocks, buffers),
                slots: [const { Slot::FREE }; REQUESTS_MAX],
                tickets: 0,
                is_closed: false,
                generation: 0,
                mounted: 0,
                system: None,
                free_blocks: None,
                unfinished: [None; RESERVED_MAX],
                queue: WakerQueue::new(),
                recorder: None,
                active_until_us: 0,
                is_postponed: false,
                waiting_since_us: None,
                tally: ReadTally::default(),
            }),
            changes: Changes::new(),
            watched: RefCell::new(Watched::new()),
        }
    }

    /// Reads up to `count` blocks and lends them: at least one, at most as many as a buffer holds. Waits until the rings can
    /// absorb the read; gives up after 10 s in which the recorder carries out no read. Blocks of an earlier read of
    /// [`ReadClass::Short`] that a free buffer still holds are lent at once.
    ///
    /// `generation` is the [`generation`](ReadDesk::generation) in which the reader looked up the blocks, or 0 for any.
    ///
    /// # Errors
    /// [`ReadError`] if there is no card, it cannot read the blocks, it may have changed since that generation, the
    /// recorder needs it or has ended, or the desk has no memory.
    pub async fn lend(
        &self,
        start: u32,
        count: u32,
        class: ReadClass,
        generation: u32,
    ) -> Result<Lent<'_, 'a>, ReadError> {
        if class == ReadClass::Short
            && let Some(lent) = self.lend_held(start, count, generation)
        {
            return Ok(lent);
        }
        let slot = self.place_request(start, count, class, generation).await?;
        let _leave = Leave { desk: self, slot };
        let (buffer, count) = self.done(slot).await?;
        Ok(Lent {
            desk: self,
            buffer: Some(buffer),
            first: 0,
            count,
        })
    }

    /// Lends blocks that a free buffer still holds.
    fn lend_held(&self, start: u32, count: u32, generation: u32) -> Option<Lent<'_, 'a>> {
        let mut inner = self.inner.borrow_mut();
        if inner.is_closed || inner.error_of(generation).is_some() {
            return None;
        }
        let (buffer, first, held) = inner.buffers.take_holding(start)?;
        Some(Lent {
            desk: self,
            buffer: Some(buffer),
            first,
            count: held.min(count as usize).max(1),
        })
    }

    /// Notes that the recorder writes these blocks.
    pub(crate) fn note_write(&self, start: u32, count: u32) {
        self.inner.borrow_mut().buffers.forget(start, count);
    }

    /// Returns the state of the recording.
    pub fn figures(&self) -> Figures {
        self.watched.borrow().figures
    }

    /// Returns the gap with this number, counted from 0, with its number and its stream. If it is no longer known,
    /// returns the oldest known one; `None` after the last one.
    pub fn gap(&self, number: u64) -> Option<(u64, u8, Gap)> {
        self.watched.borrow().gap(number)
    }

    /// Returns a known gap that contains the sample with this number.
    pub fn gap_of(&self, stream: u8, number: u64) -> Option<Gap> {
        self.watched.borrow().gap_of(stream, number)
    }

    /// Returns the recording that contains the sample with this number, or will contain it, and the number of its first
    /// sample. If no such file is known, returns the oldest known one, whose first sample is later.
    pub fn file_of(&self, stream: u8, number: u64) -> Option<(FileId, u64)> {
        self.watched.borrow().file_of(stream, number)
    }

    /// Reads blocks of the card into `out`, in pieces as large as a buffer.
    ///
    /// # Errors
    /// Those of [`lend`](ReadDesk::lend).
    pub async fn read(&self, start: u32, out: &mut [Block]) -> Result<(), ReadError> {
        let (mut start, mut out) = (start, out);
        while !out.is_empty() {
            let count = u32::try_from(out.len()).unwrap_or(u32::MAX);
            let lent = self.lend(start, count, ReadClass::Bulk, 0).await?;
            let (piece, rest) = out.split_at_mut(lent.len());
            piece.copy_from_slice(&lent);
            start += piece.len() as u32;
            out = rest;
        }
        Ok(())
    }

    /// Returns a number that changes whenever blocks that a reader has located may have been freed: when a card is
    /// mounted, and when files are removed. It is 0 before the first mount.
    pub fn generation(&self) -> u32 {
        self.inner.borrow().generation
    }

    /// Returns true if a card was mounted after this generation.
    pub(crate) fn is_other_card(&self, generation: u32) -> bool {
        let inner = self.inner.borrow();
        inner.error_of(generation) == Some(ReadError::OtherCard)
    }

    /// Returns the file system of the mounted card.
    pub(crate) fn file_system(&self) -> Option<FileSystem> {
        self.inner.borrow().system
    }

    /// Returns the size of the mounted file system and its free space, if that is known, both in bytes. Space that
    /// is prepared for recordings is not free.
    pub fn space_bytes(&self) -> Option<(u64, Option<u64>)> {
        let inner = self.inner.borrow();
        let bytes = |blocks: u32| u64::from(blocks) * BLOCK_BYTES as u64;
        let total = bytes(inner.system?.0.data_blocks());
        Some((total, inner.free_blocks.map(bytes)))
    }

    /// Publishes the number of free blocks.
    pub(crate) fn set_free_blocks(&self, blocks: Option<u32>) {
        self.inner.borrow_mut().free_blocks = blocks;
    }

    /// Returns the first recording in progress that satisfies a condition.
    pub fn unfinished(&self, is_wanted: impl Fn(&Unfinished) -> bool) -> Option<Unfinished> {
        self.next_unfinished(0, is_wanted).map(|(_, file)| file)
    }

    /// Returns the first recording in progress at or after `slot` that satisfies the condition, and its slot.
    pub(crate) fn next_unfinished(
        &self,
        slot: u8,
        is_wanted: impl Fn(&Unfinished) -> bool,
    ) -> Option<(u8, Unfinished)> {
        let inner = self.inner.borrow();
        let files = (0..).zip(&inner.unfinished).skip(slot.into());
        let mut known = files.filter_map(|(slot, file)| Some((slot, (*file)?)));
        known.find(|(_, file)| is_wanted(file))
    }

    /// Publishes the recording in progress in a slot; `None` if the slot no longer has one.
    pub(crate) fn publish(&self, slot: u8, file: Option<Unfinished>) {
        let mut inner = self.inner.borrow_mut();
        if let Some(place) = inner.unfinished.get_mut(usize::from(slot)) {
            *place = file;
        }
    }

    /// Waits for a free buffer for data to be written. It counts as one of [`ReadClass::Bulk`].
    ///
    /// # Errors
    /// [`ReadError::NoMemory`] if the desk has fewer than two buffers, [`ReadError::Closed`].
    pub async fn write_buffer(&self) -> Result<WriteBuffer<'_, 'a>, ReadError> {
        let buffer = poll_fn(|context| {
            let mut inner = self.inner.borrow_mut();
            if inner.is_closed {
                return Poll::Ready(Err(ReadError::Closed));
            }
            if inner.buffers.count() < 2 {
                return Poll::Ready(Err(ReadError::NoMemory));
            }
            if inner.buffers.free() < 2 {
                return inner.queue_up(context);
            }
            Poll::Ready(inner.buffers.take().ok_or(ReadError::NoMemory))
        });
        Ok(WriteBuffer::new(self, buffer.await?))
    }

    /// Returns the length of a buffer, in bytes.
    pub fn buffer_bytes(&self) -> usize {
        self.inner.borrow().buffers.blocks() * BLOCK_BYTES
    }

    /// Returns a buffer to the pool.
    pub(crate) fn give_back(&self, buffer: Buffer<'a>) {
        self.inner.borrow_mut().buffers.give_back(buffer);
        self.wake_waiting();
    }

    /// Wakes all tasks that may wait for a buffer.
    fn wake_waiting(&self) {
        let mut inner = self.inner.borrow_mut();
        let (recorder, queue) = (inner.recorder.take(), inner.take_queue());
        drop(inner);
        recorder.into_iter().chain(queue).for_each(Waker::wake);
    }

    /// Wakes the recorder, which then polls for requests.
    pub(crate) fn wake_recorder(&self) {
        let recorder = self.inner.borrow_mut().recorder.take();
        recorder.into_iter().for_each(Waker::wake);
    }

    /// Returns the cost of the reads so far.
    pub fn tally(&self) -> ReadTally {
        self.inner.borrow().tally
    }

    /// Places a request once a slot is free; returns the slot.
    async fn place_request(
        &self,
        start: u32,
        count: u32,
        class: ReadClass,
        generation: u32,
    ) -> Result<usize, ReadError> {
        poll_fn(|context| {
            let mut inner = self.inner.borrow_mut();
            if inner.is_closed {
                return Poll::Ready(Err(ReadError::Closed));
            }
            if inner.buffers.count() == 0 {
                return Poll::Ready(Err(ReadError::NoMemory));
            }
            if let Some(error) = inner.error_of(generation) {
                return Poll::Ready(Err(error));
            }
            let mut slots = inner.slots.iter();
            let Some(slot) = slots.position(|slot| slot.stage == Stage::Free) else {
                return inner.queue_up(context);
            };
            inner.tickets = inner.tickets.wrapping_add(1);
            inner.slots[slot].stage = Stage::Waiting(ReadRequest {
                start,
                count: count.max(1),
                class,
                ticket: inner.tickets,
                generation,
            });
            let recorder = inner.recorder.take();
            drop(inner);
            recorder.into_iter().for_each(Waker::wake);
            Poll::Ready(Ok(slot))
        })
        .await
    }

    /// Waits for the result of a request: the buffer, and the number of blocks read.
    async fn done(&self, slot: usize) -> Result<(Buffer<'a>, usize), ReadError> {
        poll_fn(|context| {
            let slot = &mut self.inner.borrow_mut().slots[slot];
            match (slot.stage, slot.buffer.take()) {
                (Stage::Done(count), Some(buffer)) => Poll::Ready(Ok((buffer, count))),
                (Stage::Failed(error), _) => Poll::Ready(Err(error)),
                _ => {
                    slot.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Returns true if a request waits for the recorder, and a buffer is free for it.
    pub(crate) fn is_pending(&self) -> bool {
        self.inner.borrow().next().is_some()
    }

    /// Returns true if a request waits, as [`is_pending`](Self::is_pending) does. Fails all requests if they have waited for
    /// too long.
    // Inlined, it would not fit into the flash of firmware/lm3s6965.
    #[inline(never)]
    pub(crate) fn poll_pending(&self, now_us: u64) -> bool {
        let mut inner = self.inner.borrow_mut();
        if inner.next().is_none() {
            inner.waiting_since_us = None;
            return false;
        }
        let since_us = *inner.waiting_since_us.get_or_insert(now_us);
        if now_us.saturating_sub(since_us) < WAIT_US_MAX {
            return true;
        }
        inner.waiting_since_us = None;
        drop(inner);
        self.fail_all(ReadError::Busy);
        false
    }

    /// Returns true if a request is pending or was carried out recently.
    pub(crate) fn is_active(&self, now_us: u64) -> bool {
        now_us < self.inner.borrow().active_until_us || self.is_pending()
    }

    pub(crate) fn postpone(&self) {
        let mut inner = self.inner.borrow_mut();
        inner.tally.put_off += u32::from(!inner.is_postponed);
        inner.is_postponed = true;
    }

    /// Takes the next request, which the recorder carries out now.
    pub(crate) fn begin(&self) -> Option<ReadJob<'a>> {
        let mut inner = self.inner.borrow_mut();
        let (slot, request) = inner.next()?;
        let buffer = inner.buffers.take()?;
        inner.slots[slot].stage = Stage::UnderWay;
        (inner.is_postponed, inner.waiting_since_us) = (false, None);
        let count = (request.count as usize).min(buffer.blocks.len());
        Some(ReadJob {
            slot,
            buffer,
            start: request.start,
            count,
            class: request.class,
        })
    }

    /// Hands the result to the reader.
    pub(crate) fn end(
        &self,
        job: ReadJob<'a>,
        result: Result<(), ReadError>,
        card_us: u32,
        now_us: u64,
    ) {
        let mut inner = self.inner.borrow_mut();
        inner.active_until_us = now_us.saturating_add(ACTIVE_US);
        let tally = &mut inner.tally;
        tally.reads = tally.reads.saturating_add(1);
        tally.blocks += result.map_or(0, |()| job.count as u64);
        tally.card_us += u64::from(card_us);
        tally.card_us_max = tally.card_us_max.max(card_us);
        if job.class == ReadClass::Short && result.is_ok() {
            inner.buffers.hold(&job.buffer, job.start, job.count);
        }
        let slot = &mut inner.slots[job.slot];
        let waker = slot.waker.take();
        match (slot.stage, result) {
            (Stage::Orphaned, _) => {
                slot.stage = Stage::Free;
                inner.buffers.give_back(job.buffer);
            }
            (_, Ok(())) => {
                slot.stage = Stage::Done(job.count);
                slot.buffer = Some(job.buffer);
            }
            (_, Err(error)) => {
                slot.stage = Stage::Failed(error);
                inner.buffers.give_back(job.buffer);
            }
        }
        let queue = inner.take_queue();
        drop(inner);
        waker.into_iter().chain(queue).for_each(Waker::wake);
    }

    /// Notes that a card was mounted: requests for any earlier one fail.
    pub(crate) fn set_mounted(&self, system: Option<FileSystem>) {
        {
            let mut inner = self.inner.borrow_mut();
            inner.system = system;
            inner.mounted = inner.generation.wrapping_add(1).max(1);
        }
        self.note_change();
    }

    /// Notes that blocks of files may be freed from now on: requests for blocks located before fail.
    pub(crate) fn note_change(&self) {
        let mut inner = self.inner.borrow_mut();
        inner.generation = inner.generation.wrapping_add(1).max(1);
        inner.buffers.forget_all();
        drop(inner);
        self.fail(|inner, request| inner.error_of(request.generation));
    }

    /// Fails all pending requests, because there is no card.
    pub(crate) fn refuse(&self) {
        let mut inner = self.inner.borrow_mut();
        inner.system = None;
        inner.unfinished = [None; RESERVED_MAX];
        inner.buffers.forget_all();
        drop(inner);
        self.fail_all(ReadError::NoCard);
        self.changes.refuse(ReadError::NoCard);
        self.reclaim();
    }

    /// Accepts requests again after [`close`](ReadDesk::close), because the recorder runs again.
    pub(crate) fn reopen(&self) {
        self.inner.borrow_mut().is_closed = false;
        self.changes.refuse(ReadError::NoCard);
    }

    /// Ends all reads, because the recorder has ended.
    pub(crate) fn close(&self) {
        self.inner.borrow_mut().is_closed = true;
        self.fail_all(ReadError::Closed);
        self.changes.refuse(ReadError::Closed);
        self.reclaim();
        let queue = self.inner.borrow_mut().take_queue();
        queue.for_each(Waker::wake);
    }

    /// Fails all waiting requests.
    fn fail_all(&self, error: ReadError) {
        self.fail(|_, _| Some(error));
    }

    /// Fails the waiting requests for which `error` returns an error.
    fn fail(&self, error: impl Fn(&Inner, &ReadRequest) -> Option<ReadError>) {
        let mut inner = self.inner.borrow_mut();
        let mut wakers = [const { None }; REQUESTS_MAX];
        for (at, waker) in wakers.iter_mut().enumerate() {
            if let Stage::Waiting(request) = inner.slots[at].stage
                && let Some(error) = error(&inner, &request)
            {
                inner.slots[at].stage = Stage::Failed(error);
                *waker = inner.slots[at].waker.take();
            }
        }
        drop(inner);
        wakers.into_iter().flatten().for_each(Waker::wake);
    }

    /// Registers the sleeping recorder, which a new request wakes. `known` states whether the recorder already knows of
    /// a pending read and of a pending change. Returns `Ready` if a request that it does not know of is pending.
    pub(crate) fn poll_request(&self, context: &Context, known: (bool, bool)) -> Poll<()> {
        let mut inner = self.inner.borrow_mut();
        let is_read_new = !known.0 && inner.next().is_some();
        let is_change_new = !known.1 && self.changes.is_pending();
        if is_read_new || is_change_new {
            return Poll::Ready(());
        }
        inner.recorder = Some(context.waker().clone());
        Poll::Pending
    }
}

impl<'a> Inner<'a> {
    /// Returns the reason why blocks that were looked up in this generation may no longer be read.
    fn error_of(&self, generation: u32) -> Option<ReadError> {
        match generation {
            0 => None,
            _ if generation == self.generation => None,
            _ if (generation.wrapping_sub(self.mounted) as i32) < 0 => Some(ReadError::OtherCard),
            _ => Some(ReadError::Changed),
        }
    }

    /// Returns the request to be carried out next, if there is a buffer for it.
    fn next(&self) -> Option<(usize, ReadRequest)> {
        let free = self.buffers.free();
        let requests = (0..).zip(&self.slots).filter_map(|(at, slot)| {
            let Stage::Waiting(request) = slot.stage else {
                return None;
            };
            let reserved =
                usize::from(self.buffers.count() > 1 && request.class == ReadClass::Bulk);
            (free > reserved).then_some((at, request))
        });
        requests.min_by_key(|(_, request)| (request.class, request.ticket))
    }

    /// Queues a task that waits for a free slot.
    fn queue_up<T>(&mut self, context: &Context) -> Poll<T> {
        self.queue.push(context);
        Poll::Pending
    }

    fn take_queue(&mut self) -> impl Iterator<Item = Waker> + use<> {
        self.queue.take()
    }
}

/// Blocks lent by a desk. Dropping them returns the buffer.
pub struct Lent<'d, 'a> {
    desk: &'d ReadDesk<'a>,
    buffer: Option<Buffer<'a>>,
    /// Position of the first block in the buffer.
    first: usize,
    count: usize,
}

impl Lent<'_, '_> {
    /// Returns the blocks as bytes.
    pub fn bytes(&self) -> &[u8] {
        self.as_flattened()
    }
}

impl Deref for Lent<'_, '_> {
    type Target = [Block];

    fn deref(&self) -> &[Block] {
        let blocks = self.buffer.as_ref().map(|buffer| &*buffer.blocks);
        let lent = blocks.and_then(|blocks| blocks.get(self.first..self.first + self.count));
        lent.unwrap_or_default()
    }
}

impl fmt::Debug for Lent<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Lent({} B)", self.count * BLOCK_BYTES)
    }
}

impl Drop for Lent<'_, '_> {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.desk.give_back(buffer);
        }
    }
}

/// Frees the slot of a request when its read ends or is dropped.
struct Leave<'d, 'a> {
    desk: &'d ReadDesk<'a>,
    slot: usize,
}

impl Drop for Leave<'_, '_> {
    fn drop(&mut self) {
        let mut inner = self.desk.inner.borrow_mut();
        let slot = &mut inner.slots[self.slot];
        slot.stage = match slot.stage {
            Stage::UnderWay | Stage::Orphaned => Stage::Orphaned,
            _ => Stage::Free,
        };
        slot.waker = None;
        if let Some(buffer) = slot.buffer.take() {
            inner.buffers.give_back(buffer);
        }
        let queue = inner.take_queue();
        drop(inner);
        queue.for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests;
