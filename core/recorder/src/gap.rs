//! Samples that are missing, and why.

use core::fmt;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// Samples lost in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Index of the first, counted from the start of the stream, lost ones included.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// When the first was lost, in us of the recorder's clock.
    pub at_us: u64,
    /// When the last was lost.
    pub last_us: u64,
    /// Why.
    pub cause: Cause,
}

/// Why samples are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cause {
    /// The card was busy, or slower than the samples, for longer than the ring lasts.
    Busy = 0,
    /// There was no card, or it lost power: pulled, or not plugged in.
    NoCard = 1,
    /// The card reports a failure, or garbles what is sent, again and again.
    CardFailed = 2,
    /// The card has no room left.
    CardFull = 3,
    /// The next file was not ready in time.
    FileNotReady = 4,
    /// A read that somebody asked for was under way.
    Read = 5,
    /// The sample is empty, or longer than a line may be.
    BadSample = 6,
}

impl Cause {
    pub(crate) fn of(number: u8) -> Cause {
        match number {
            1 => Cause::NoCard,
            2 => Cause::CardFailed,
            3 => Cause::CardFull,
            4 => Cause::FileNotReady,
            5 => Cause::Read,
            6 => Cause::BadSample,
            _ => Cause::Busy,
        }
    }

    /// The word for it in files and reports.
    pub fn word(self) -> &'static str {
        match self {
            Cause::Busy => "busy",
            Cause::NoCard => "no-card",
            Cause::CardFailed => "card-failed",
            Cause::CardFull => "card-full",
            Cause::FileNotReady => "file-not-ready",
            Cause::Read => "read",
            Cause::BadSample => "bad-sample",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Gaps that may wait to be written down. When they are all taken, the last gap grows.
pub(crate) const GAP_SLOTS: usize = 7;
// The counters wrap at 2^32: places must not jump there.
const _: () = assert!((GAP_SLOTS + 1).is_power_of_two());

/// A queue of gaps between an interrupt and the recorder.
pub(crate) struct GapSlots {
    /// One more than may be waiting, so that there is one for the end.
    slots: [Slot; GAP_SLOTS + 1],
    /// Gaps ever put in.
    put: AtomicU32,
    /// Gaps ever taken out.
    taken: AtomicU32,
}

struct Slot {
    place: AtomicU32,
    first: Wide,
    count: Wide,
    at_us: Wide,
    last_us: Wide,
    cause: AtomicU8,
}

impl GapSlots {
    pub(crate) const fn new() -> Self {
        GapSlots {
            slots: [const { Slot::new() }; GAP_SLOTS + 1],
            put: AtomicU32::new(0),
            taken: AtomicU32::new(0),
        }
    }

    /// Puts a gap in that lies at this place of the ring; whether there was a slot.
    pub(crate) fn put(&self, place: u32, gap: Gap) -> bool {
        let put = self.put.load(Ordering::Relaxed);
        let waiting = put.wrapping_sub(self.taken.load(Ordering::Acquire));
        if waiting as usize >= GAP_SLOTS {
            return false;
        }
        self.put_at(put, place, gap);
        true
    }

    /// Puts in the gap after which nothing comes: there is a slot for it.
    pub(crate) fn put_last(&self, place: u32, gap: Gap) {
        self.put_at(self.put.load(Ordering::Relaxed), place, gap);
    }

    fn put_at(&self, put: u32, place: u32, gap: Gap) {
        let slot = &self.slots[put as usize % self.slots.len()];
        slot.place.store(place, Ordering::Relaxed);
        slot.first.store(gap.first);
        slot.count.store(gap.count);
        slot.at_us.store(gap.at_us);
        slot.last_us.store(gap.last_us);
        slot.cause.store(gap.cause as u8, Ordering::Relaxed);
        self.put.store(put.wrapping_add(1), Ordering::Release);
    }

    /// The gap that is next, and its place.
    pub(crate) fn first(&self) -> Option<(u32, Gap)> {
        let taken = self.taken.load(Ordering::Relaxed);
        if self.put.load(Ordering::Acquire) == taken {
            return None;
        }
        let slot = &self.slots[taken as usize % self.slots.len()];
        let gap = Gap {
            first: slot.first.load(),
            count: slot.count.load(),
            at_us: slot.at_us.load(),
            last_us: slot.last_us.load(),
            cause: Cause::of(slot.cause.load(Ordering::Relaxed)),
        };
        Some((slot.place.load(Ordering::Relaxed), gap))
    }

    pub(crate) fn take(&self) {
        let taken = self.taken.load(Ordering::Relaxed);
        self.taken.store(taken.wrapping_add(1), Ordering::Release);
    }
}

impl Slot {
    const fn new() -> Slot {
        Slot {
            place: AtomicU32::new(0),
            first: Wide::new(),
            count: Wide::new(),
            at_us: Wide::new(),
            last_us: Wide::new(),
            cause: AtomicU8::new(0),
        }
    }
}

/// 64 bits for cores with 32. Not atomic as a whole: the slot's hand-over is.
struct Wide {
    low: AtomicU32,
    high: AtomicU32,
}

impl Wide {
    const fn new() -> Wide {
        Wide {
            low: AtomicU32::new(0),
            high: AtomicU32::new(0),
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
