//! The newest samples of a stream, for tasks that show them while they are recorded.
//!
//! The producer copies every sample that it accepts into a slot, whose number it changes before and after: a
//! reader that sees the same number before and after its own copy has that sample.

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering, fence};

/// Length stored with a sample that is longer than its slot.
const TOO_LONG: u16 = u16::MAX;

/// Memory for the newest samples of a stream: `SLOTS` samples of up to `BYTES` bytes.
///
/// A task that shows samples every 100 ms needs room for the samples of 150 ms.
pub struct NewestMemory<const SLOTS: usize, const BYTES: usize> {
    next: AtomicU32,
    heads: [Head; SLOTS],
    samples: [[AtomicU8; BYTES]; SLOTS],
}

struct Head {
    /// Number of the sample, modulo 2^32.
    number: AtomicU32,
    /// Length in bytes.
    bytes: AtomicU16,
    /// Index of its schema in the format.
    schema: AtomicU8,
}

impl<const SLOTS: usize, const BYTES: usize> NewestMemory<SLOTS, BYTES> {
    /// Creates an empty memory.
    pub const fn new() -> Self {
        // Each empty slot holds the number of the following slot, so there are at least two slots.
        const { assert!(SLOTS >= 2 && SLOTS.is_power_of_two() && BYTES < TOO_LONG as usize) };
        let mut heads = [const {
            Head {
                number: AtomicU32::new(0),
                bytes: AtomicU16::new(0),
                schema: AtomicU8::new(0),
            }
        }; SLOTS];
        let mut at = 0;
        while at < SLOTS {
            heads[at].number = AtomicU32::new(at as u32 + 1);
            at += 1;
        }
        NewestMemory {
            next: AtomicU32::new(0),
            heads,
            samples: [const { [const { AtomicU8::new(0) }; BYTES] }; SLOTS],
        }
    }

    /// Returns the handle for [`Producer::show`](crate::Producer::show) and for readers.
    pub fn handle(&self) -> Newest<'_> {
        Newest {
            next: &self.next,
            heads: &self.heads,
            samples: self.samples.as_flattened(),
        }
    }
}

impl<const SLOTS: usize, const BYTES: usize> Default for NewestMemory<SLOTS, BYTES> {
    fn default() -> Self {
        NewestMemory::new()
    }
}

/// The newest samples of a stream.
#[derive(Clone, Copy)]
pub struct Newest<'a> {
    next: &'a AtomicU32,
    heads: &'a [Head],
    samples: &'a [AtomicU8],
}

/// Result of [`Newest::look`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The sample was copied.
    Sample {
        /// Length in bytes.
        bytes: usize,
        /// Index of its schema in the format.
        schema: u8,
    },
    /// The producer has not pushed this sample yet.
    Later,
    /// The sample is lost: it is not among the newest ones, although newer and older ones are.
    Lost,
    /// The sample is too old, or longer than a slot.
    NotKept,
}

impl Newest<'_> {
    /// Returns the number of slots.
    pub fn slots(&self) -> u32 {
        self.heads.len() as u32
    }

    /// Returns the number of the next sample, modulo 2^32: that of the newest one, plus 1.
    pub fn next(&self) -> u32 {
        self.next.load(Ordering::Acquire)
    }

    /// Copies the sample with this number, modulo 2^32, to `out`, which has to be as long as a slot.
    pub fn look(&self, number: u32, out: &mut [u8]) -> Shown {
        let at = number as usize % self.heads.len();
        let head = &self.heads[at];
        let found = head.number.load(Ordering::Acquire);
        let bytes = head.bytes.load(Ordering::Relaxed);
        let schema = head.schema.load(Ordering::Relaxed);
        let slot = self.slot(at);
        for (to, from) in out.iter_mut().zip(slot).take(bytes.into()) {
            *to = from.load(Ordering::Relaxed);
        }
        fence(Ordering::Acquire);
        let is_same = found == number && head.number.load(Ordering::Relaxed) == number;
        // Loaded last, so that a sample that is overwritten meanwhile does not count as lost.
        let behind = self.next().wrapping_sub(number);
        match is_same {
            _ if behind == 0 || behind > u32::MAX / 2 => Shown::Later,
            _ if behind >= self.slots() => Shown::NotKept,
            true if bytes == TOO_LONG => Shown::NotKept,
            true => Shown::Sample {
                bytes: usize::from(bytes).min(out.len()),
                schema,
            },
            false => Shown::Lost,
        }
    }

    fn slot(&self, at: usize) -> &[AtomicU8] {
        let bytes = self.samples.len() / self.heads.len();
        &self.samples[at * bytes..(at + 1) * bytes]
    }

    /// Adds a sample.
    pub(crate) fn push(&self, number: u64, schema: u8, sample: &[u8]) {
        let number = number as u32;
        let at = number as usize % self.heads.len();
        let (head, slot) = (&self.heads[at], self.slot(at));
        head.number.store(number.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        let bytes = match sample.len() <= slot.len() {
            true => sample.len() as u16,
            false => TOO_LONG,
        };
        head.bytes.store(bytes, Ordering::Relaxed);
        head.schema.store(schema, Ordering::Relaxed);
        for (to, from) in slot.iter().zip(sample) {
            to.store(*from, Ordering::Relaxed);
        }
        head.number.store(number, Ordering::Release);
        self.next.store(number.wrapping_add(1), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn samples_are_new_old_lost_or_to_come() {
        let memory = NewestMemory::<4, 8>::new();
        let newest = memory.handle();
        let mut out = [0; 8];
        for number in 0..9 {
            assert_eq!(newest.look(number, &mut out), Shown::Later);
        }
        for number in [0, 1, 2, 5, 6] {
            newest.push(number, 1, &number.to_le_bytes());
        }
        newest.push(7, 0, &[7; 9]);
        let mut look = |number| newest.look(number, &mut out);
        assert_eq!(look(2), Shown::NotKept);
        assert_eq!(look(4), Shown::NotKept);
        let kept = Shown::Sample {
            bytes: 8,
            schema: 1,
        };
        assert_eq!((look(5), look(6)), (kept, kept));
        assert_eq!((look(7), look(8)), (Shown::NotKept, Shown::Later));
        newest.push(9, 1, &[9; 3]);
        assert_eq!(newest.look(8, &mut out), Shown::Lost);
        assert_eq!(newest.look(6, &mut out), Shown::NotKept);
    }

    #[test]
    fn numbers_wrap() {
        let memory = NewestMemory::<8, 8>::new();
        let newest = memory.handle();
        let mut out = [0; 8];
        for number in (1 << 32) - 5..(1 << 32) + 5_u64 {
            newest.push(number, 0, &number.to_le_bytes());
            assert_ne!(newest.look(number as u32, &mut out), Shown::Later);
            assert_eq!(u64::from_le_bytes(out), number);
        }
        assert_eq!(newest.next(), 5);
    }

    #[test]
    fn a_reader_on_another_core_never_takes_a_sample_for_another() {
        let memory = NewestMemory::<16, 64>::new();
        let newest = memory.handle();
        const COUNT: u64 = 300_000;
        thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..COUNT {
                    newest.push(number, 0, &[number as u8; 64]);
                }
            });
            let (mut seen, mut out) = (0_u64, [0; 64]);
            while u64::from(newest.next()) < COUNT {
                let number = newest.next().wrapping_sub(8);
                if let Shown::Sample { bytes, .. } = newest.look(number, &mut out) {
                    assert_eq!(out[..bytes], [number as u8; 64]);
                    seen += 1;
                }
            }
            std::println!("{seen} samples seen");
        });
    }
}
