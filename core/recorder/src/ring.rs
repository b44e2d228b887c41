//! The ring buffer between an interrupt and the recorder.
//!
//! ```text
//!   interrupt ── Producer ──> [ ..... samples ..... ] ──> Consumer ── recorder
//!                   │     head >                 > tail      ^
//!                   ├──> boundaries: gaps and sessions ──────┤
//!                   └<── orders: stop, start a session ──────┘
//! ```
//!
//! Only one side writes each counter and the other only reads it, so plain loads and stores are enough, which
//! every core has. The consumer sees either a complete sample or nothing of it. The ring stores nothing next
//! to the sample bytes, so all of the memory holds samples.
//!
//! A sample that finds no room is counted in a gap. Gaps and sessions are boundaries: they have slots of
//! their own that store their position in the ring. The consumer also sees a gap that is still growing, so a
//! gap is reported even if no sample follows it. When all slots are used, the producer accepts no sample that
//! would need another slot; the gap grows instead.
//!
//! # Order of loads and stores
//!
//! The producer stores a boundary first, then the count of lost samples or a head beyond the boundary, each with
//! release semantics. The consumer loads them in reverse order with acquire semantics: the count of lost samples before
//! it calls [`Consumer::next`], and there the head before the boundaries. So no sample that it sees lies beyond a
//! boundary that it does not see, and the gaps taken until the ring is empty hold at least as many samples as the count
//! read before. There is one exception: the consumer sees a gap that a push on another core is changing at this moment
//! only after that push has completed.
//!
//! # End
//!
//! After [`Consumer::stop`] the producer refuses samples without counting them, but a push in progress may
//! still complete. If the producer runs in an interrupt of the same core, no push is in progress. For a
//! producer on another core or thread: stop, drain until [`Next::Empty`], wait for [`Consumer::is_closed`]
//! (the producer has seen the stop) or for longer than a push takes, and drain until [`Next::Empty`] once
//! more. Then the samples and gaps taken are all that the producer counted.

use crate::boundary::{BOUNDARIES_MAX, Boundaries, Boundary, Origin, SPLIT_MAX};
use crate::format::Format;
use crate::gap::{Cause, Gap};
use crate::limits::{LINE_BYTES_MAX, SAMPLE_BYTES_MAX, SCHEMAS_MAX};
#[cfg(feature = "serving")]
use crate::newest::Newest;
use crate::session::{Session, SessionError, Sessions};
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

#[cfg(test)]
mod tests;

/// Maximum ring size in bytes: differences between 32-bit positions have to stay below 2^31.
pub const RING_BYTES_MAX: usize = (1 << 31) - 1;

const _: () = assert!(SAMPLE_BYTES_MAX <= LINE_BYTES_MAX);

/// Orders of the consumer to the producer: the lowest bit is stop.
const STOP: u32 = 1;
/// The next bits are the schema of the last requested session.
const SCHEMA_SHIFT: u32 = 1;
const SCHEMA_MASK: u32 = SCHEMAS_MAX as u32 - 1;
/// The remaining bits count the requests.
const REQUEST_SHIFT: u32 = 4;
const REQUEST_MASK: u32 = u32::MAX >> REQUEST_SHIFT;
const _: () = assert!(SCHEMAS_MAX.is_power_of_two());
const _: () = assert!(SCHEMA_MASK << SCHEMA_SHIFT < 1 << REQUEST_SHIFT);

/// Memory for samples. `Bytes` is its storage: an array for a static ring, a borrowed slice, or a box on a
/// host.
pub struct Ring<Bytes> {
    bytes: Bytes,
    shared: Shared,
}

struct Shared {
    /// Bytes ever pushed, modulo 2^32.
    head: AtomicU32,
    /// Bytes ever taken, modulo 2^32.
    tail: AtomicU32,
    /// Highest level so far.
    peak: AtomicU32,
    /// Samples lost so far, modulo 2^32.
    lost: AtomicU32,
    /// Cause of losses while the ring is full, as a number of [`Cause`].
    cause: AtomicU8,
    is_closed: AtomicBool,
    /// Orders of the consumer to the producer.
    orders: AtomicU32,
    boundaries: Boundaries,
    sessions: Sessions,
    /// Number of schemas that a session may choose from.
    schemas: u8,
}

/// Initial values of the counters.
#[derive(Clone, Copy, Debug, Default)]
struct Start {
    /// Initial byte and boundary counters.
    counter: u32,
    /// Initial sample index.
    index: u64,
}

impl Shared {
    const fn new() -> Shared {
        Shared::starting_at(Start {
            counter: 0,
            index: 0,
        })
    }

    const fn starting_at(start: Start) -> Shared {
        Shared {
            head: AtomicU32::new(start.counter),
            tail: AtomicU32::new(start.counter),
            peak: AtomicU32::new(0),
            lost: AtomicU32::new(0),
            cause: AtomicU8::new(0),
            is_closed: AtomicBool::new(false),
            orders: AtomicU32::new(0),
            boundaries: Boundaries::starting_at(start.counter, start.index),
            sessions: Sessions::new(),
            // Set by `split`. A ring of zeros only takes no space in the flash of a board.
            schemas: 0,
        }
    }
}

impl<const BYTES: usize> Ring<[AtomicU8; BYTES]> {
    /// Creates an empty ring with its own memory.
    pub const fn new() -> Self {
        const { assert!(BYTES > 0 && BYTES <= RING_BYTES_MAX) };
        Ring {
            bytes: [const { AtomicU8::new(0) }; BYTES],
            shared: Shared::new(),
        }
    }
}

impl<const BYTES: usize> Default for Ring<[AtomicU8; BYTES]> {
    fn default() -> Self {
        Ring::new()
    }
}

impl<Bytes: AsRef<[AtomicU8]>> Ring<Bytes> {
    /// Creates an empty ring in the given memory. Bytes beyond [`RING_BYTES_MAX`] are not used.
    pub fn over(bytes: Bytes) -> Self {
        let shared = Shared::new();
        Ring { bytes, shared }
    }

    /// Empties the ring and returns its two ends, for samples of this format.
    pub fn split(&mut self, format: Format) -> (Producer<'_>, Consumer<'_>) {
        self.split_at(format, Start::default())
    }

    fn split_at(&mut self, format: Format, start: Start) -> (Producer<'_>, Consumer<'_>) {
        self.shared = Shared::starting_at(start);
        // A format of lines has only one kind of session.
        self.shared.schemas = format.schemas().len().clamp(1, SCHEMAS_MAX) as u8;
        let (bytes, shared) = (self.bytes.as_ref(), &self.shared);
        let bytes = &bytes[..bytes.len().min(RING_BYTES_MAX)];
        let producer = Producer {
            bytes,
            shared,
            format,
            shape: Shape::of(&format, 0),
            #[cfg(feature = "serving")]
            shown: None,
            at: 0,
            head: start.counter,
            index: start.index,
            gap: None,
            orders: 0,
            sessions: 0,
        };
        let consumer = Consumer {
            bytes,
            shared,
            at: 0,
            tail: start.counter,
            lost_taken: 0,
        };
        (producer, consumer)
    }
}

/// The producer's end of the ring, owned by an interrupt.
pub struct Producer<'a> {
    bytes: &'a [AtomicU8],
    shared: &'a Shared,
    format: Format,
    shape: Shape,
    /// Memory for the newest samples, and the index of their schema in the format.
    #[cfg(feature = "serving")]
    shown: Option<(Newest<'a>, u8)>,
    /// Offset of the next byte in the memory.
    at: usize,
    head: u32,
    index: u64,
    gap: Option<OpenGap>,
    /// Orders carried out.
    orders: u32,
    /// Sessions begun by the producer, modulo 2^32.
    sessions: u32,
}

/// The producer's half of the open gap; the rest is in its slot. The gap ends with the last lost sample.
struct OpenGap {
    count: u64,
    cause: Cause,
}

impl OpenGap {
    /// Returns true if the open gap may include the sample with this index. The gap is split if its cause
    /// changes or the consumer has taken part of it, as long as enough slots remain for samples that follow
    /// gaps.
    fn may_grow(&self, boundaries: &Boundaries, index: u64, cause: Cause) -> bool {
        let is_same = self.cause == cause && !boundaries.is_taken_from(index, self.count);
        is_same || boundaries.waiting() >= SPLIT_MAX
    }
}

/// Required form of the samples.
#[derive(Clone, Copy)]
enum Shape {
    /// Exactly n bytes.
    Fixed(usize),
    /// A line of up to n bytes, newline included.
    Line(usize),
    /// No more samples are accepted.
    Closed,
}

impl Shape {
    fn of(format: &Format, schema: u8) -> Shape {
        match format {
            Format::Lines { line_bytes_max, .. } => {
                Shape::Line(usize::from(*line_bytes_max).min(LINE_BYTES_MAX))
            }
            // No sample has this length.
            Format::Csv(schemas) | Format::Binary(schemas) => schemas
                .get(usize::from(schema))
                .map_or(Shape::Fixed(usize::MAX), |schema| {
                    Shape::Fixed(schema.sample_bytes())
                }),
        }
    }

    #[inline]
    fn fits(self, sample: &[u8]) -> bool {
        match self {
            Shape::Fixed(bytes) => sample.len() == bytes,
            Shape::Line(bytes_max) => sample.len() <= bytes_max && sample.last() == Some(&b'\n'),
            Shape::Closed => false,
        }
    }
}

/// Reason why a sample was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum PushError {
    /// The sample is lost and counted; the recording will report it in a gap.
    Lost(Cause),
    /// The recording has ended. The sample is not counted.
    Stopped,
}

impl fmt::Display for PushError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            PushError::Lost(cause) => write!(f, "the sample is lost ({cause})"),
            PushError::Stopped => f.write_str("the recording has ended"),
        }
    }
}

impl core::error::Error for PushError {}

impl<'a> Producer<'a> {
    /// Also copies every accepted sample to this memory, for tasks that show the newest ones. Call it before the first
    /// sample.
    #[cfg(feature = "serving")]
    pub fn show(&mut self, newest: Newest<'a>) {
        self.shown = Some((newest, 0));
    }

    /// Pushes a sample; wait-free. `now_us` is used only if the sample is lost.
    ///
    /// A sample of a schema has exactly the schema's length. A sample of text is one line of up to the
    /// format's `line_bytes_max` bytes that ends with its only LF. Bytes before the last are checked only if
    /// there is room for the line.
    ///
    /// # Errors
    /// [`PushError::Lost`] if the ring has no room for the whole sample, or the sample has the wrong form;
    /// [`PushError::Stopped`] after [`Producer::close`] or [`Consumer::stop`].
    #[inline]
    pub fn push(&mut self, sample: &[u8], now_us: u64) -> Result<(), PushError> {
        if self.shared.orders.load(Ordering::Relaxed) != self.orders {
            self.carry_out_orders()?;
        }
        if !self.shape.fits(sample) {
            return self.refuse(now_us);
        }
        let tail = self.shared.tail.load(Ordering::Acquire);
        let level = self.head.wrapping_sub(tail) as usize;
        if sample.len() > self.bytes.len() - level || self.waits_for_slot() {
            return self.overflow(now_us);
        }
        if !self.copy(sample) {
            return self.refuse(now_us);
        }
        // Not `take`, which would store `None` at every push.
        if self.gap.is_some() {
            self.gap = None;
            self.shared.boundaries.publish();
        }
        self.at += sample.len();
        if self.at >= self.bytes.len() {
            self.at -= self.bytes.len();
        }
        #[cfg(feature = "serving")]
        if let Some((newest, schema)) = &self.shown {
            newest.push(self.index, *schema, sample);
        }
        self.index += 1;
        self.head = self.head.wrapping_add(sample.len() as u32);
        let level = (level + sample.len()) as u32;
        if level > self.shared.peak.load(Ordering::Relaxed) {
            self.shared.peak.store(level, Ordering::Relaxed);
        }
        self.shared.head.store(self.head, Ordering::Release);
        Ok(())
    }

    /// Copies a sample to the memory from the head on; returns false if it is text with a newline before its end.
    #[inline]
    fn copy(&self, sample: &[u8]) -> bool {
        if let Shape::Line(_) = self.shape {
            return self.copy_line(sample);
        }
        let room = &self.bytes[self.at..];
        let (before, after) = sample.split_at(sample.len().min(room.len()));
        store(room, before);
        store(self.bytes, after);
        true
    }

    #[inline]
    fn copy_line(&self, line: &[u8]) -> bool {
        let room = &self.bytes[self.at..];
        if line.len() <= room.len() {
            return store_line(room, line);
        }
        let (before, after) = line.split_at(room.len());
        store_line(room, before) && !before.ends_with(b"\n") && store_line(self.bytes, after)
    }

    /// Handles a sample of the wrong form, or one after the end.
    #[cold]
    fn refuse(&mut self, now_us: u64) -> Result<(), PushError> {
        match self.shape {
            Shape::Closed => Err(PushError::Stopped),
            Shape::Fixed(_) | Shape::Line(_) => self.lose(Cause::BadSample, now_us),
        }
    }

    /// Handles a sample of the right form that found no room, or no slot for the gap before it.
    #[cold]
    fn overflow(&mut self, now_us: u64) -> Result<(), PushError> {
        let cause = Cause::of(self.shared.cause.load(Ordering::Relaxed));
        self.lose(cause, now_us)
    }

    #[inline(always)]
    fn lose(&mut self, cause: Cause, now_us: u64) -> Result<(), PushError> {
        let boundaries = &self.shared.boundaries;
        match &mut self.gap {
            Some(gap) if gap.may_grow(boundaries, self.index, cause) => {
                gap.count += 1;
                boundaries.grow(gap.count, now_us);
            }
            gap => {
                if gap.is_some() {
                    boundaries.publish();
                }
                *gap = Some(OpenGap { count: 1, cause });
                boundaries.open(self.head, self.index, now_us, cause);
            }
        }
        self.index += 1;
        let lost = self.shared.lost.load(Ordering::Relaxed).wrapping_add(1);
        self.shared.lost.store(lost, Ordering::Release);
        Err(PushError::Lost(cause))
    }

    /// Returns true if there is a free slot for ending the open gap.
    #[inline]
    fn has_slot(&self) -> bool {
        self.shared.boundaries.waiting() < BOUNDARIES_MAX
    }

    /// Carries out the consumer's orders. A requested session that finds no slot waits for the next push.
    #[cold]
    fn carry_out_orders(&mut self) -> Result<(), PushError> {
        let orders = self.shared.orders.load(Ordering::Relaxed);
        if orders & STOP != 0 || matches!(self.shape, Shape::Closed) {
            self.close();
            return Err(PushError::Stopped);
        }
        let schema = (orders >> SCHEMA_SHIFT & SCHEMA_MASK) as u8;
        if orders != self.orders && self.start_session(schema, Origin::Consumer) {
            self.orders = orders;
        }
        Ok(())
    }

    /// Starts a session between the previous sample and the next; returns false if there is no slot.
    fn start_session(&mut self, schema: u8, origin: Origin) -> bool {
        let boundaries = &self.shared.boundaries;
        let slots = 1 + u32::from(self.gap.is_some());
        if boundaries.waiting() + slots > BOUNDARIES_MAX {
            return false;
        }
        if self.gap.take().is_some() {
            boundaries.publish();
        }
        boundaries.publish_session(self.head, origin);
        self.shape = Shape::of(&self.format, schema);
        #[cfg(feature = "serving")]
        if let Some((_, place)) = &mut self.shown {
            *place = schema;
        }
        true
    }

    /// Starts a session: samples pushed from now on belong to it, have its schema, and go to new files.
    ///
    /// # Errors
    /// [`SessionError::QueueFull`] if too many gaps and sessions are queued, [`SessionError::Schema`] if the
    /// session was made for another format, [`SessionError::Stopped`] after the end.
    pub fn begin_session(&mut self, session: &Session) -> Result<(), SessionError> {
        self.carry_out_orders().map_err(|_| SessionError::Stopped)?;
        if session.schema() >= self.shared.schemas {
            return Err(SessionError::Schema);
        }
        if !self.shared.sessions.has_room(self.sessions) {
            return Err(SessionError::QueueFull);
        }
        self.shared.sessions.put(self.sessions, session);
        if !self.start_session(session.schema(), Origin::Producer) {
            return Err(SessionError::QueueFull);
        }
        self.sessions = self.sessions.wrapping_add(1);
        Ok(())
    }

    /// Returns the number of samples pushed so far, lost ones included.
    pub fn pushed(&self) -> u64 {
        self.index
    }

    /// Returns the number of buffered bytes.
    pub fn level_bytes(&self) -> usize {
        self.head
            .wrapping_sub(self.shared.tail.load(Ordering::Relaxed)) as usize
    }

    /// Returns true if a sample would be lost for want of a slot that ends the open gap. Samples that can wait, such as
    /// those of a pipe, need not be pushed then.
    pub fn waits_for_slot(&self) -> bool {
        self.gap.is_some() && !self.has_slot()
    }

    /// Announces that no more samples will come, so that the recorder may finish.
    pub fn close(&mut self) {
        self.shape = Shape::Closed;
        self.shared.is_closed.store(true, Ordering::Release);
    }
}

#[inline]
fn store(cells: &[AtomicU8], bytes: &[u8]) {
    for (cell, byte) in cells.iter().zip(bytes) {
        cell.store(*byte, Ordering::Relaxed);
    }
}

/// Stores text; returns false if it has a newline before its last byte.
#[inline]
fn store_line(cells: &[AtomicU8], text: &[u8]) -> bool {
    let Some((end, rest)) = text.split_last() else {
        return true;
    };
    for (cell, byte) in cells.iter().zip(rest) {
        if *byte == b'\n' {
            return false;
        }
        cell.store(*byte, Ordering::Relaxed);
    }
    if let Some(cell) = cells.get(rest.len()) {
        cell.store(*end, Ordering::Relaxed);
    }
    true
}

/// The consumer's end of the ring, owned by the recorder.
pub struct Consumer<'a> {
    bytes: &'a [AtomicU8],
    shared: &'a Shared,
    at: usize,
    tail: u32,
    /// Samples in the gaps taken so far, modulo 2^32.
    lost_taken: u32,
}

/// Next item in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Number of sample bytes before the next gap or session; never 0.
    Samples(usize),
    /// A gap. It may still grow until it is taken; samples lost after that form another gap.
    Gap(Gap),
    /// A session starts.
    Session,
    /// Nothing to read yet.
    Empty,
}

impl Consumer<'_> {
    /// Returns the size of the ring in bytes.
    pub fn capacity_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the number of buffered bytes.
    pub fn level_bytes(&self) -> usize {
        self.head().wrapping_sub(self.tail) as usize
    }

    /// Returns the highest level so far, in bytes.
    pub fn peak_bytes(&self) -> usize {
        self.shared.peak.load(Ordering::Relaxed) as usize
    }

    /// Returns the number of samples lost so far, modulo 2^32. Once the ring is drained, the gaps taken from it
    /// contain this number of samples.
    pub fn lost(&self) -> u32 {
        self.shared.lost.load(Ordering::Acquire)
    }

    /// Returns the number of samples in the gaps taken so far, modulo 2^32.
    pub(crate) fn lost_taken(&self) -> u32 {
        self.lost_taken
    }

    /// Returns true if no more samples will come: the producer was closed, or has seen the stop.
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed.load(Ordering::Acquire)
    }

    /// Returns the number of bytes ever pushed, modulo 2^32.
    pub(crate) fn head(&self) -> u32 {
        self.shared.head.load(Ordering::Acquire)
    }

    /// Returns the number of bytes ever taken, modulo 2^32.
    pub(crate) fn tail(&self) -> u32 {
        self.tail
    }

    /// Sets the cause for samples that find no room from now on.
    pub(crate) fn set_cause(&self, cause: Cause) {
        self.shared.cause.store(cause as u8, Ordering::Relaxed);
    }

    /// Ends the recording: later pushes return [`PushError::Stopped`] and are not counted. A push in progress
    /// on another core may still complete. Call this and [`Consumer::request_session`] from the same task
    /// only.
    pub fn stop(&self) {
        let orders = self.shared.orders.load(Ordering::Relaxed);
        self.shared.orders.store(orders | STOP, Ordering::Release);
    }

    /// Asks the producer to start a session before its next sample. If too many boundaries are queued then,
    /// the session starts before the first sample for which there is a slot.
    ///
    /// # Errors
    /// [`SessionError::QueueFull`] if the previously requested session has not begun in a file yet,
    /// [`SessionError::Schema`] if the session was made for another format, [`SessionError::Stopped`] after
    /// the end.
    pub fn request_session(&self, session: &Session) -> Result<(), SessionError> {
        let (shared, schema) = (self.shared, session.schema());
        let orders = shared.orders.load(Ordering::Relaxed);
        let requests = orders >> REQUEST_SHIFT;
        if orders & STOP != 0 || self.is_closed() {
            return Err(SessionError::Stopped);
        }
        if schema >= shared.schemas {
            return Err(SessionError::Schema);
        }
        if requests != shared.sessions.requests_taken() & REQUEST_MASK {
            return Err(SessionError::QueueFull);
        }
        shared.sessions.keep(session);
        let request = requests.wrapping_add(1) << REQUEST_SHIFT;
        let orders = request | u32::from(schema) << SCHEMA_SHIFT;
        shared.orders.store(orders, Ordering::Release);
        Ok(())
    }

    /// Returns the next item in the ring.
    pub(crate) fn next(&self) -> Next {
        // Load the level before the boundaries: a boundary published meanwhile lies at or beyond this head.
        let level = self.level_bytes();
        let (before, boundary) = match self.shared.boundaries.first() {
            Some((position, boundary)) => {
                let before = position.wrapping_sub(self.tail) as usize;
                (before.min(level), (before == 0).then_some(boundary))
            }
            None => (level, None),
        };
        match boundary {
            Some(Boundary::Gap(gap)) => Next::Gap(gap),
            Some(Boundary::Session(_)) => Next::Session,
            None if before > 0 => Next::Samples(before),
            None => Next::Empty,
        }
    }

    /// Returns the number of bytes before the next gap or session.
    pub(crate) fn waiting_bytes(&self) -> usize {
        match self.next() {
            Next::Samples(bytes) => bytes,
            Next::Gap(_) | Next::Session | Next::Empty => 0,
        }
    }

    /// Takes the gap if it is next, in its current length: it may have grown since [`Consumer::next`]. Also
    /// returns `None` while a push on another core changes the gap; call it again then.
    pub(crate) fn take_gap(&mut self) -> Option<Gap> {
        let Next::Gap(gap) = self.next() else {
            return None;
        };
        self.shared.boundaries.pass(&gap);
        self.lost_taken = self.lost_taken.wrapping_add(gap.count as u32);
        Some(gap)
    }

    /// Returns the number of bytes before the next session, and its schema, unless a gap comes first.
    pub(crate) fn next_session(&self) -> Option<(usize, u8)> {
        let (position, boundary) = self.shared.boundaries.first()?;
        let Boundary::Session(origin) = boundary else {
            return None;
        };
        let schema = match origin {
            Origin::Producer => self.shared.sessions.next_schema(),
            Origin::Consumer => self.shared.sessions.requested_schema(),
        };
        Some((position.wrapping_sub(self.tail) as usize, schema))
    }

    /// Takes the session if it is next.
    pub(crate) fn take_session(&mut self) -> Option<Session> {
        let (position, boundary) = self.shared.boundaries.first()?;
        let Boundary::Session(origin) = boundary else {
            return None;
        };
        if position != self.tail {
            return None;
        }
        let session = match origin {
            Origin::Producer => self.shared.sessions.take(),
            Origin::Consumer => self.shared.sessions.take_requested(),
        };
        self.shared.boundaries.take_session();
        Some(session)
    }

    /// Copies bytes from `skip` bytes after the tail on, without taking them. Bytes past the level are stale.
    pub(crate) fn peek(&self, skip: usize, out: &mut [u8]) {
        let mut at = self.at + skip;
        if at >= self.bytes.len() {
            at -= self.bytes.len();
        }
        let first = out.len().min(self.bytes.len() - at);
        let (before, after) = out.split_at_mut(first);
        load(&self.bytes[at..], before);
        load(self.bytes, after);
    }

    /// Frees the given number of bytes, but at most those before the next gap or session.
    pub(crate) fn release(&mut self, bytes: usize) {
        let bytes = bytes.min(self.waiting_bytes());
        self.at += bytes;
        if self.at >= self.bytes.len() {
            self.at -= self.bytes.len();
        }
        self.tail = self.tail.wrapping_add(bytes as u32);
        self.shared.tail.store(self.tail, Ordering::Release);
    }
}

#[inline]
fn load(cells: &[AtomicU8], bytes: &mut [u8]) {
    for (cell, byte) in cells.iter().zip(bytes) {
        *byte = cell.load(Ordering::Relaxed);
    }
}
