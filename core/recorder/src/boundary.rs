//! Boundaries between samples: gaps and sessions, in the order in which they lie in the ring.
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
//! A gap is open until the next sample or session follows it. It lives in the slot that will be published
//! next, and the consumer reads it there under a sequence counter, which is odd during a change.
//!
//! Nothing marks an open gap as taken, or a slot as unused. The consumer knows the index up to which it
//! took gaps, and ignores what lies below: an open gap that it took a part of, and the leftovers in a slot
//! that was published eight boundaries ago. So neither side ever waits for the other.

use crate::gap::{Cause, Gap};
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering, fence};

/// Published boundaries that may wait for the consumer. When all are taken, the last gap grows.
pub(crate) const BOUNDARIES_MAX: u32 = 7;
/// One slot more: the open gap always has one.
const SLOTS: usize = BOUNDARIES_MAX as usize + 1;
// The counters wrap at 2^32: slots must not jump there.
const _: () = assert!(SLOTS.is_power_of_two());
/// A gap is split, if its cause changes or the consumer took a part of it, only while fewer boundaries
/// than this wait. The other slots are for samples that follow gaps.
pub(crate) const SPLIT_MAX: u32 = 3;
const _: () = assert!(SPLIT_MAX < BOUNDARIES_MAX);
/// Attempts of the consumer to read the open gap while the producer changes it.
const READ_ATTEMPTS: u32 = 4;

/// Values of [`Slot::kind`] that are no [`Cause`].
const SESSION: u8 = 0x80;
const REQUESTED_SESSION: u8 = 0x81;

/// A queue of boundaries between the producer and the consumer.
pub(crate) struct Boundaries {
    slots: [Slot; SLOTS],
    /// Boundaries ever published, modulo 2^32. Written by the producer.
    put: AtomicU32,
    /// Boundaries ever taken, modulo 2^32. Written by the consumer.
    taken: AtomicU32,
    /// Odd while the producer changes the slot that is published next.
    sequence: AtomicU32,
    /// Index of the first sample behind the last gap taken. Written by the consumer.
    passed_end: Wide,
    /// Time of the last sample of that gap. Written and read by the consumer.
    passed_us: Wide,
}

/// A boundary as the consumer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Boundary {
    /// A gap, without what was taken of it.
    Gap(Gap),
    /// A session that starts here.
    Session(Origin),
}

/// The side that asked for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Producer,
    Consumer,
}

struct Slot {
    kind: AtomicU8,
    place: AtomicU32,
    first: Wide,
    count: Wide,
    at_us: Wide,
    last_us: Wide,
}

/// The producer's side.
impl Boundaries {
    /// An empty queue with counters that start here, and samples with this index.
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

    /// Published boundaries that wait for the consumer.
    pub(crate) fn waiting(&self) -> u32 {
        let put = self.put.load(Ordering::Relaxed);
        put.wrapping_sub(self.taken.load(Ordering::Acquire))
    }

    /// Opens a gap of one sample at this place of the ring. There has to be no open gap.
    pub(crate) fn open(&self, place: u32, first: u64, at_us: u64, cause: Cause) {
        self.change(|slot| {
            slot.kind.store(cause as u8, Ordering::Relaxed);
            slot.place.store(place, Ordering::Relaxed);
            slot.first.store(first);
            slot.count.store(1);
            slot.at_us.store(at_us);
            slot.last_us.store(at_us);
        });
    }

    /// Lets the open gap grow to so many samples.
    pub(crate) fn grow(&self, count: u64, last_us: u64) {
        self.change(|slot| {
            slot.count.store(count);
            slot.last_us.store(last_us);
        });
    }

    /// Publishes the open gap. There has to be a slot for it.
    pub(crate) fn publish(&self) {
        let put = self.put.load(Ordering::Relaxed);
        // The slot was stored before the fence at the end of its last change.
        self.put.store(put.wrapping_add(1), Ordering::Relaxed);
    }

    /// Publishes a session at this place of the ring. There has to be a slot for it, and no open gap.
    pub(crate) fn publish_session(&self, place: u32, origin: Origin) {
        self.change(|slot| {
            let kind = match origin {
                Origin::Producer => SESSION,
                Origin::Consumer => REQUESTED_SESSION,
            };
            slot.kind.store(kind, Ordering::Relaxed);
            slot.place.store(place, Ordering::Relaxed);
        });
        self.publish();
    }

    /// Returns true if the consumer took a part of the open gap, which ends here and has so many samples.
    /// It is wrong at times where a gap has more than 2^32: it is a reason to split a gap, nothing more.
    pub(crate) fn is_taken_from(&self, end: u64, count: u64) -> bool {
        let passed_end = self.passed_end.low.load(Ordering::Relaxed);
        u64::from((end as u32).wrapping_sub(passed_end)) < count
    }

    fn change(&self, write: impl FnOnce(&Slot)) {
        let sequence = self.sequence.load(Ordering::Relaxed);
        self.sequence
            .store(sequence.wrapping_add(1), Ordering::Relaxed);
        // Whoever sees one of the next stores sees the odd number as well.
        fence(Ordering::Release);
        let put = self.put.load(Ordering::Relaxed);
        write(&self.slots[put as usize % SLOTS]);
        // Whoever sees one of the next stores, of the number or of `put`, sees the slot as it is now.
        fence(Ordering::Release);
        self.sequence
            .store(sequence.wrapping_add(2), Ordering::Relaxed);
    }
}

/// The consumer's side.
impl Boundaries {
    /// Returns the next boundary and its place in the ring. Frees the slot of a gap that was taken while
    /// it was open.
    pub(crate) fn first(&self) -> Option<(u32, Boundary)> {
        let mut taken = self.taken.load(Ordering::Relaxed);
        // Ends: only what was open at the last take can be published and passed, and that is one slot.
        while self.put.load(Ordering::Acquire) != taken {
            let slot = &self.slots[taken as usize % SLOTS];
            if let Some(boundary) = self.boundary(slot) {
                return Some((slot.place.load(Ordering::Relaxed), boundary));
            }
            taken = taken.wrapping_add(1);
            self.taken.store(taken, Ordering::Release);
        }
        let (place, gap) = self.read_open(taken)?;
        Some((place, Boundary::Gap(gap)))
    }

    /// Reads the open gap. If the producer publishes it meanwhile it stays where it is: no slot is used
    /// again before the consumer took it.
    fn read_open(&self, taken: u32) -> Option<(u32, Gap)> {
        let slot = &self.slots[taken as usize % SLOTS];
        for _ in 0..READ_ATTEMPTS {
            let before = self.sequence.load(Ordering::Acquire);
            let (place, boundary) = (slot.place.load(Ordering::Relaxed), self.boundary(slot));
            // Whoever saw one of a change's stores sees its odd number below.
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.sequence.load(Ordering::Relaxed) == before {
                return match boundary {
                    Some(Boundary::Gap(gap)) => Some((place, gap)),
                    // A session from eight boundaries ago.
                    Some(Boundary::Session(_)) | None => None,
                };
            }
        }
        None
    }

    /// The boundary in the slot; `None` if it is a gap that was taken.
    fn boundary(&self, slot: &Slot) -> Option<Boundary> {
        let kind = slot.kind.load(Ordering::Relaxed);
        match kind {
            SESSION => return Some(Boundary::Session(Origin::Producer)),
            REQUESTED_SESSION => return Some(Boundary::Session(Origin::Consumer)),
            _ => (),
        }
        let passed_end = self.passed_end.load();
        let (first, at_us) = (slot.first.load(), slot.at_us.load());
        // Wraps only in a read that is repeated, because the slot changed meanwhile.
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

    /// Takes all up to the end of this gap.
    pub(crate) fn pass(&self, gap: &Gap) {
        self.passed_end.store(gap.end());
        self.passed_us.store(gap.last_us);
        // Frees the slot, if the gap had been published.
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
            place: AtomicU32::new(0),
            first: Wide::new(0),
            count: Wide::new(0),
            at_us: Wide::new(0),
            last_us: Wide::new(0),
        }
    }
}

/// 64 bits for cores with 32. Not atomic as a whole: the slot is.
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
