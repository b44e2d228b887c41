//! Boundaries between samples: gaps and sessions, in ring order.
//!
//! ```text
//!    taken                 put
//!      v                    v
//!    ┌─────┬─────┬─────┬─────────┬─────┬ ─ ─
//!    │ gap │ ses-│ gap │ the gap │ not │
//!    │     │ sion│     │ that is │ used│
//!    │     │     │     │  open   │     │
//!    └─────┴─────┴─────┴─────────┴─────┴ ─ ─
//!     published: fixed   may grow
//! ```
//!
//! A gap is open until the next sample or session follows it. It is stored in the slot that will be published
//! next, where the consumer reads it under a sequence counter that is odd during a change.
//!
//! No flag marks an open gap as taken or a slot as unused. The consumer knows the index up to which it has
//! taken gaps and ignores everything below: the part of an open gap that it has already taken, and stale
//! contents of a slot that was published eight boundaries ago. So neither side ever waits for the other.

use crate::gap::{Cause, Gap};
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering, fence};

/// Maximum number of published boundaries that the consumer has not taken. When all slots are used, the last
/// gap grows.
pub(crate) const BOUNDARIES_MAX: u32 = 7;
/// One slot more, so that the open gap always has one.
const SLOTS: usize = BOUNDARIES_MAX as usize + 1;
// The counters wrap at 2^32; a power of two keeps the slot sequence continuous there.
const _: () = assert!(SLOTS.is_power_of_two());
/// A gap is split (because its cause changes or the consumer has taken part of it) only while fewer
/// boundaries than this are queued. The other slots are reserved for samples that follow gaps.
pub(crate) const SPLIT_MAX: u32 = 3;
const _: () = assert!(SPLIT_MAX < BOUNDARIES_MAX);
/// Attempts of the consumer to read an open gap while the producer changes it.
const READ_ATTEMPTS: u32 = 4;

/// Values of [`Slot::kind`] that are not a [`Cause`].
const SESSION: u8 = 0x80;
const REQUESTED_SESSION: u8 = 0x81;

/// A queue of boundaries between the producer and the consumer.
pub(crate) struct Boundaries {
    slots: [Slot; SLOTS],
    /// Boundaries ever published, modulo 2^32. Written by the producer.
    put: AtomicU32,
    /// Boundaries ever taken, modulo 2^32. Written by the consumer.
    taken: AtomicU32,
    /// Odd while the producer changes the slot that will be published next.
    sequence: AtomicU32,
    /// Index of the first sample after the last gap taken. Written by the consumer.
    passed_end: Wide,
    /// Time of the last sample in that gap. Written and read by the consumer only.
    passed_us: Wide,
}

/// A boundary as the consumer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Boundary {
    /// A gap, without the part that was already taken.
    Gap(Gap),
    /// The start of a session.
    Session(Origin),
}

/// The side that started a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Producer,
    Consumer,
}

struct Slot {
    kind: AtomicU8,
    position: AtomicU32,
    first: Wide,
    count: Wide,
    at_us: Wide,
    last_us: Wide,
}

/// The producer's side.
impl Boundaries {
    /// Creates an empty queue whose counters start at `counter` and whose samples start at `index`.
    pub(crate) const fn starting_at(counter: u32, index: u64) -> Self {
        Boundaries {
            slots: [const { Slot::new() }; SLOTS],
            put: AtomicU32::new(counter),
            taken: AtomicU32::new(counter),
            sequence: AtomicU32::new(counter & !1),
            passed_end: Wide::new(index),
            passed_us: Wide::new(0),
        }
    }

    /// Returns the number of published boundaries that the consumer has not taken.
    pub(crate) fn waiting(&self) -> u32 {
        let put = self.put.load(Ordering::Relaxed);
        put.wrapping_sub(self.taken.load(Ordering::Acquire))
    }

    /// Opens a gap of one sample at this ring position. No gap may be open.
    pub(crate) fn open(&self, position: u32, first: u64, at_us: u64, cause: Cause) {
        self.change(|slot| {
            slot.kind.store(cause as u8, Ordering::Relaxed);
            slot.position.store(position, Ordering::Relaxed);
            slot.first.store(first);
            slot.count.store(1);
            slot.at_us.store(at_us);
            slot.last_us.store(at_us);
        });
    }

    /// Grows the open gap to `count` samples.
    pub(crate) fn grow(&self, count: u64, last_us: u64) {
        self.change(|slot| {
            slot.count.store(count);
            slot.last_us.store(last_us);
        });
    }

    /// Publishes the open gap. There has to be a free slot.
    pub(crate) fn publish(&self) {
        let put = self.put.load(Ordering::Relaxed);
        // The fence at the end of the slot's last change orders it before this store.
        self.put.store(put.wrapping_add(1), Ordering::Relaxed);
    }

    /// Publishes a session at this ring position. There has to be a free slot, and no gap may be open.
    pub(crate) fn publish_session(&self, position: u32, origin: Origin) {
        self.change(|slot| {
            let kind = match origin {
                Origin::Producer => SESSION,
                Origin::Consumer => REQUESTED_SESSION,
            };
            slot.kind.store(kind, Ordering::Relaxed);
            slot.position.store(position, Ordering::Relaxed);
        });
        self.publish();
    }

    /// Returns true if the consumer has taken part of the open gap, which ends at `end` and has `count`
    /// samples. Can be wrong for gaps of more than 2^32 samples, which is acceptable because the result only
    /// decides whether to split a gap.
    pub(crate) fn is_taken_from(&self, end: u64, count: u64) -> bool {
        let passed_end = self.passed_end.low.load(Ordering::Relaxed);
        u64::from((end as u32).wrapping_sub(passed_end)) < count
    }

    fn change(&self, write: impl FnOnce(&Slot)) {
        let sequence = self.sequence.load(Ordering::Relaxed);
        self.sequence
            .store(sequence.wrapping_add(1), Ordering::Relaxed);
        // A reader that sees one of the following stores also sees the odd sequence number.
        fence(Ordering::Release);
        let put = self.put.load(Ordering::Relaxed);
        write(&self.slots[put as usize % SLOTS]);
        // A reader that sees the new sequence number or the new `put` also sees the slot in its current
        // state.
        fence(Ordering::Release);
        self.sequence
            .store(sequence.wrapping_add(2), Ordering::Relaxed);
    }
}

/// The consumer's side.
impl Boundaries {
    /// Returns the next boundary and its ring position. Frees the slot of a gap that was taken while it was
    /// open.
    pub(crate) fn first(&self) -> Option<(u32, Boundary)> {
        let mut taken = self.taken.load(Ordering::Relaxed);
        // This loop ends: only the gap that was open at the last take can be both published and taken, and
        // that is one slot.
        while self.put.load(Ordering::Acquire) != taken {
            let slot = &self.slots[taken as usize % SLOTS];
            if let Some(boundary) = self.boundary(slot) {
                return Some((slot.position.load(Ordering::Relaxed), boundary));
            }
            taken = taken.wrapping_add(1);
            self.taken.store(taken, Ordering::Release);
        }
        let (position, gap) = self.read_open(taken)?;
        Some((position, Boundary::Gap(gap)))
    }

    /// Reads the open gap. If the producer publishes it meanwhile, it stays in its slot: no slot is reused
    /// before the consumer has taken it.
    fn read_open(&self, taken: u32) -> Option<(u32, Gap)> {
        let slot = &self.slots[taken as usize % SLOTS];
        for _ in 0..READ_ATTEMPTS {
            let before = self.sequence.load(Ordering::Acquire);
            let (position, boundary) = (slot.position.load(Ordering::Relaxed), self.boundary(slot));
            // A reader that saw one of a change's stores sees the odd sequence number below.
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.sequence.load(Ordering::Relaxed) == before {
                return match boundary {
                    Some(Boundary::Gap(gap)) => Some((position, gap)),
                    // A stale session from eight boundaries ago.
                    Some(Boundary::Session(_)) | None => None,
                };
            }
        }
        None
    }

    /// Returns the boundary in the slot, or `None` for a gap that was taken.
    fn boundary(&self, slot: &Slot) -> Option<Boundary> {
        let kind = slot.kind.load(Ordering::Relaxed);
        match kind {
            SESSION => return Some(Boundary::Session(Origin::Producer)),
            REQUESTED_SESSION => return Some(Boundary::Session(Origin::Consumer)),
            _ => (),
        }
        let passed_end = self.passed_end.load();
        let (first, at_us) = (slot.first.load(), slot.at_us.load());
        // This wraps only in a torn read, which is repeated because the slot changed meanwhile.
        let end = first.wrapping_add(slot.count.load());
        let is_split = first < passed_end;
        let first = first.max(passed_end);
        (end > first).then(|| {
            Boundary::Gap(Gap {
                first,
                count: end - first,
                at_us: if is_split {
                    self.passed_us.load()
                } else {
                    at_us
                },
                last_us: slot.last_us.load(),
                cause: Cause::of(kind),
            })
        })
    }

    /// Takes everything up to the end of this gap.
    pub(crate) fn pass(&self, gap: &Gap) {
        self.passed_end.store(gap.end());
        self.passed_us.store(gap.last_us);
        // Frees the slot if the gap has been published.
        self.first();
    }

    /// Frees the slot of a published session.
    pub(crate) fn take_session(&self) {
        let taken = self.taken.load(Ordering::Relaxed);
        self.taken.store(taken.wrapping_add(1), Ordering::Release);
    }
}

impl Slot {
    const fn new() -> Slot {
        Slot {
            kind: AtomicU8::new(0),
            position: AtomicU32::new(0),
            first: Wide::new(0),
            count: Wide::new(0),
            at_us: Wide::new(0),
            last_us: Wide::new(0),
        }
    }
}

/// A 64-bit value for 32-bit cores. It is not atomic as a whole; in slots, the sequence counter detects torn
/// reads.
struct Wide {
    low: AtomicU32,
    high: AtomicU32,
}

impl Wide {
    const fn new(value: u64) -> Wide {
        Wide {
            low: AtomicU32::new(value as u32),
            high: AtomicU32::new((value >> 32) as u32),
        }
    }

    fn store(&self, value: u64) {
        self.low.store(value as u32, Ordering::Relaxed);
        self.high.store((value >> 32) as u32, Ordering::Relaxed);
    }

    fn load(&self) -> u64 {
        let high = u64::from(self.high.load(Ordering::Relaxed));
        high << 32 | u64::from(self.low.load(Ordering::Relaxed))
    }
}
