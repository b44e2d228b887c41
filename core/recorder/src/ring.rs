//! The ring between an interrupt and the recorder.
//!
//! ```text
//!   interrupt ── Sampler ──> [ ..... samples ..... ] ──> Source ── recorder
//!                   │   head >                 > tail      ^
//!                   └──────> gap slots ────────────────────┘
//! ```
//!
//! One side writes each number and the other only reads it: plain loads and stores are enough, which every
//! core has. A sample is there as a whole or not at all. Nothing is stored beside its bytes, so that all of
//! the memory holds samples.
//!
//! What finds no room is counted in a gap. A gap has its own slot, with the place in the ring where the
//! samples are missing; it is handed over before the next sample is. When all slots are taken, no sample is
//! taken until there is one: the gap grows instead of being forgotten.

use crate::gap::{Cause, Gap, GapSlots};
use crate::limits::{LINE_BYTES_MAX, SAMPLE_BYTES_MAX};
use crate::session::Session;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

/// Largest ring, in bytes: positions are 32 bits and may not overtake each other.
pub const RING_BYTES_MAX: usize = (1 << 31) - 1;

/// Longest sample, in bytes: what a line of a file may be.
const SAMPLE_PUSH_BYTES_MAX: usize = LINE_BYTES_MAX;
const _: () = assert!(SAMPLE_BYTES_MAX <= SAMPLE_PUSH_BYTES_MAX);

/// Memory for samples. `Bytes` is where they are: an array for a static ring, a slice that somebody else
/// owns, or a box on a computer.
pub struct Ring<Bytes> {
    bytes: Bytes,
    shared: Shared,
}

struct Shared {
    /// Bytes that were ever pushed, modulo 2^32.
    head: AtomicU32,
    /// Bytes that were ever taken, modulo 2^32.
    tail: AtomicU32,
    /// Highest level so far.
    peak: AtomicU32,
    /// Samples lost so far, modulo 2^32.
    lost: AtomicU32,
    /// Why the ring may be full, as a number of [`Cause`].
    cause: AtomicU8,
    is_closed: AtomicBool,
    gaps: GapSlots,
}

impl Shared {
    const fn new() -> Shared {
        Shared {
            head: AtomicU32::new(0),
            tail: AtomicU32::new(0),
            peak: AtomicU32::new(0),
            lost: AtomicU32::new(0),
            cause: AtomicU8::new(0),
            is_closed: AtomicBool::new(false),
            gaps: GapSlots::new(),
        }
    }
}

impl<const BYTES: usize> Ring<[AtomicU8; BYTES]> {
    /// An empty ring of its own memory.
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
    /// An empty ring on this memory. What of it is beyond [`RING_BYTES_MAX`] is not used.
    pub fn over(bytes: Bytes) -> Self {
        let shared = Shared::new();
        Ring { bytes, shared }
    }

    /// Empties the ring and gives out its two ends.
    pub fn split(&mut self) -> (Sampler<'_>, Source<'_>) {
        self.shared = Shared::new();
        let bytes = self.bytes.as_ref();
        ends(&bytes[..bytes.len().min(RING_BYTES_MAX)], &self.shared)
    }
}

fn ends<'a>(bytes: &'a [AtomicU8], shared: &'a Shared) -> (Sampler<'a>, Source<'a>) {
    let sampler = Sampler {
        bytes,
        shared,
        at: 0,
        head: 0,
        peak: 0,
        index: 0,
        lost: 0,
        gap: None,
    };
    let source = Source {
        bytes,
        shared,
        at: 0,
        tail: 0,
        session: None,
    };
    (sampler, source)
}

/// The end that an interrupt holds.
pub struct Sampler<'a> {
    bytes: &'a [AtomicU8],
    shared: &'a Shared,
    /// Where the next byte goes.
    at: usize,
    head: u32,
    peak: u32,
    index: u64,
    lost: u32,
    gap: Option<Gap>,
}

/// A sample found no room. It is counted, and the recording will say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

impl Sampler<'_> {
    /// Pushes a sample of up to [`LINE_BYTES_MAX`] bytes; wait-free. `now_us` is only looked at if it is lost.
    ///
    /// A text sample is one line with one LF, its last byte; a sample of a schema has all its bytes. Others
    /// are not told from those, and the recording's own indices of samples will be wrong.
    ///
    /// # Errors
    /// [`Lost`] if there is no room for all of it, or it is empty or too long.
    #[inline]
    pub fn push(&mut self, sample: &[u8], now_us: u64) -> Result<(), Lost> {
        self.index += 1;
        if sample.is_empty() || sample.len() > SAMPLE_PUSH_BYTES_MAX {
            self.lose(now_us, Cause::BadSample);
            return Err(Lost);
        }
        let tail = self.shared.tail.load(Ordering::Acquire);
        let level = self.head.wrapping_sub(tail) as usize;
        if sample.len() > self.bytes.len() - level || (self.gap.is_some() && !self.hand_over()) {
            let cause = Cause::of(self.shared.cause.load(Ordering::Relaxed));
            self.lose(now_us, cause);
            return Err(Lost);
        }
        self.copy(sample);
        self.head = self.head.wrapping_add(sample.len() as u32);
        let level = (level + sample.len()) as u32;
        if level > self.peak {
            self.peak = level;
            self.shared.peak.store(level, Ordering::Relaxed);
        }
        self.shared.head.store(self.head, Ordering::Release);
        Ok(())
    }

    #[inline]
    fn copy(&mut self, sample: &[u8]) {
        let first = sample.len().min(self.bytes.len() - self.at);
        let (before, after) = sample.split_at(first);
        store(&self.bytes[self.at..], before);
        store(self.bytes, after);
        self.at += sample.len();
        if self.at >= self.bytes.len() {
            self.at -= self.bytes.len();
        }
    }

    #[cold]
    fn lose(&mut self, now_us: u64, cause: Cause) {
        let gap = self.gap.get_or_insert(Gap {
            first: self.index - 1,
            count: 0,
            at_us: now_us,
            last_us: now_us,
            cause,
        });
        gap.count += 1;
        gap.last_us = now_us;
        self.lost = self.lost.wrapping_add(1);
        self.shared.lost.store(self.lost, Ordering::Relaxed);
    }

    /// Puts the gap into a slot; whether there was one.
    #[cold]
    fn hand_over(&mut self) -> bool {
        match self.gap {
            Some(gap) if !self.shared.gaps.put(self.head, gap) => false,
            _ => {
                self.gap = None;
                true
            }
        }
    }

    /// Samples pushed so far, with those that were lost.
    pub fn pushed(&self) -> u64 {
        self.index
    }

    /// No more samples will come: the recorder may finish. Without it a gap at the very end stays unknown.
    pub fn close(&mut self) {
        if let Some(gap) = self.gap.take() {
            self.shared.gaps.put_last(self.head, gap);
        }
        self.shared.is_closed.store(true, Ordering::Release);
    }
}

#[inline]
fn store(cells: &[AtomicU8], bytes: &[u8]) {
    for (cell, byte) in cells.iter().zip(bytes) {
        cell.store(*byte, Ordering::Relaxed);
    }
}

/// The end that the recorder holds.
pub struct Source<'a> {
    bytes: &'a [AtomicU8],
    shared: &'a Shared,
    at: usize,
    tail: u32,
    /// A session, and the place in the ring where it begins.
    session: Option<(u32, Session)>,
}

/// The end that the recorder holds.
pub(crate) type Consumer<'a> = Source<'a>;

/// Content of a ring that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Bytes of samples before the next gap or session.
    Samples(usize),
    /// Samples are missing here.
    Gap(Gap),
    /// A session begins here.
    Session,
    /// Nothing waits.
    Empty,
}

impl Source<'_> {
    /// Bytes of memory.
    pub fn capacity_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that wait.
    pub fn level_bytes(&self) -> usize {
        self.shared
            .head
            .load(Ordering::Acquire)
            .wrapping_sub(self.tail) as usize
    }

    /// Highest level so far, in bytes.
    pub fn peak_bytes(&self) -> usize {
        self.shared.peak.load(Ordering::Relaxed) as usize
    }

    /// Samples that found no room so far, modulo 2^32.
    pub fn lost(&self) -> u32 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// Whether no more samples will come.
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed.load(Ordering::Acquire)
    }

    /// Bytes ever pushed, modulo 2^32.
    pub(crate) fn head(&self) -> u32 {
        self.shared.head.load(Ordering::Acquire)
    }

    /// Bytes ever taken, modulo 2^32.
    pub(crate) fn tail(&self) -> u32 {
        self.tail
    }

    /// Says what a sample that finds no room from now on is lost to.
    pub(crate) fn set_cause(&self, cause: Cause) {
        self.shared.cause.store(cause as u8, Ordering::Relaxed);
    }

    /// The content that comes next.
    pub(crate) fn next(&self) -> Next {
        let mut before = self.level_bytes();
        if let Some((place, gap)) = self.shared.gaps.first() {
            match place.wrapping_sub(self.tail) as usize {
                0 => return Next::Gap(gap),
                bytes => before = before.min(bytes),
            }
        }
        if let Some((place, _)) = self.session {
            match place.wrapping_sub(self.tail) as usize {
                0 => return Next::Session,
                bytes => before = before.min(bytes),
            }
        }
        match before {
            0 => Next::Empty,
            bytes => Next::Samples(bytes),
        }
    }

    /// Bytes that wait before the next gap, and the gap if none do.
    pub fn waiting(&self) -> (usize, Option<Gap>) {
        match self.next() {
            Next::Samples(bytes) => (bytes, None),
            Next::Gap(gap) => (0, Some(gap)),
            Next::Session | Next::Empty => (0, None),
        }
    }

    /// Bytes of samples that wait before the next gap or session.
    pub(crate) fn ready_bytes(&self) -> usize {
        match self.next() {
            Next::Samples(bytes) => bytes,
            _ => 0,
        }
    }

    /// Takes the gap that is next.
    pub fn take_gap(&mut self) -> Option<Gap> {
        let Next::Gap(gap) = self.next() else {
            return None;
        };
        self.shared.gaps.take();
        Some(gap)
    }

    /// Takes the session that is next.
    #[cfg(test)]
    pub(crate) fn take_session(&mut self) -> Option<Session> {
        let is_next = self.next() == Next::Session;
        let (_, session) = self.session.take_if(|_| is_next)?;
        Some(session)
    }

    /// Begins a session behind everything that was pushed.
    #[cfg(test)]
    pub(crate) fn put_session(&mut self, session: Session) {
        self.session = Some((self.head(), session));
    }

    /// Copies what comes `skip` bytes on, and leaves it in the ring. Beyond the level are bytes of old.
    pub fn peek(&self, skip: usize, out: &mut [u8]) {
        let mut at = self.at + skip;
        if at >= self.bytes.len() {
            at -= self.bytes.len();
        }
        let first = out.len().min(self.bytes.len() - at);
        let (before, after) = out.split_at_mut(first);
        load(&self.bytes[at..], before);
        load(self.bytes, after);
    }

    /// Gives the room of the next bytes back, of no more than there are.
    pub fn release(&mut self, bytes: usize) {
        let bytes = bytes.min(self.level_bytes());
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
