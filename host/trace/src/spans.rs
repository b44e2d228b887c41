//! The times of a trace in 8 bytes an operation.
//!
//! An operation is kept as two 32-bit numbers: the idle time since the one before it ended, and its
//! own duration, both in ns. A value that does not fit (over 4.29 s) is kept in a side table. The
//! memory comes in fixed chunks, so a growing trace is never copied.

/// Operations in one chunk of memory.
const CHUNK: usize = 1 << 16;

/// Marks a span that is kept in the side table.
const ESCAPE: u32 = u32::MAX;

#[derive(Clone, Copy, Default)]
struct Short {
    idle_ns: u32,
    duration_ns: u32,
}

/// A span that does not fit in 32 bits.
#[derive(Clone, Copy)]
struct Long {
    idle_ns: u64,
    duration_ns: u64,
}

/// Starts and ends of operations in order of time.
#[derive(Default)]
pub(crate) struct Spans {
    full: Vec<Vec<Short>>,
    /// The chunk that grows.
    tail: Vec<Short>,
    long: Vec<Long>,
    len: usize,
    first_start_ns: u64,
    last_end_ns: u64,
}

impl Spans {
    /// Appends an operation; `None`, and no change, unless `last_end_ns <= start_ns <= end_ns`.
    #[inline]
    pub(crate) fn push(&mut self, start_ns: u64, end_ns: u64) -> Option<()> {
        let is_first = self.len == 0;
        let before_ns = if is_first { start_ns } else { self.last_end_ns };
        let idle_ns = start_ns.checked_sub(before_ns)?;
        let duration_ns = end_ns.checked_sub(start_ns)?;
        if is_first {
            self.first_start_ns = start_ns;
        }
        self.last_end_ns = end_ns;
        let short = if (idle_ns | duration_ns) < u64::from(ESCAPE) {
            Short {
                idle_ns: idle_ns as u32,
                duration_ns: duration_ns as u32,
            }
        } else {
            self.push_long(idle_ns, duration_ns)
        };
        if self.tail.len() == self.tail.capacity() {
            self.start_chunk();
        }
        self.tail.push(short);
        self.len += 1;
        Some(())
    }

    #[cold]
    fn push_long(&mut self, idle_ns: u64, duration_ns: u64) -> Short {
        self.long.push(Long {
            idle_ns,
            duration_ns,
        });
        Short {
            idle_ns: ESCAPE,
            duration_ns: ESCAPE,
        }
    }

    #[cold]
    fn start_chunk(&mut self) {
        let tail = std::mem::replace(&mut self.tail, Vec::with_capacity(CHUNK));
        if !tail.is_empty() {
            self.full.push(tail);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn first_start_ns(&self) -> u64 {
        self.first_start_ns
    }

    pub(crate) fn last_end_ns(&self) -> u64 {
        self.last_end_ns
    }

    /// Every operation's duration in ns, in order.
    pub(crate) fn durations_ns(&self) -> impl Iterator<Item = u64> + Clone + '_ {
        self.idle_and_durations_ns().map(|(_, duration)| duration)
    }

    /// Every operation's start and end in ns, in order.
    pub(crate) fn starts_and_ends_ns(&self) -> impl Iterator<Item = (u64, u64)> + Clone + '_ {
        self.idle_and_durations_ns()
            .scan(self.first_start_ns, |end_ns, (idle, duration)| {
                let start_ns = *end_ns + idle;
                *end_ns = start_ns + duration;
                Some((start_ns, *end_ns))
            })
    }

    fn idle_and_durations_ns(&self) -> impl Iterator<Item = (u64, u64)> + Clone + '_ {
        let mut long = self.long.iter();
        self.full
            .iter()
            .flatten()
            .chain(&self.tail)
            .map(move |short| {
                if short.duration_ns == ESCAPE {
                    // The side table is in the order of the operations.
                    long.next().map_or((0, 0), |l| (l.idle_ns, l.duration_ns))
                } else {
                    (u64::from(short.idle_ns), u64::from(short.duration_ns))
                }
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_do_not_fit_in_32_bits_are_kept_too() {
        let limit = u64::from(u32::MAX);
        let mut spans = Spans::default();
        let mut due = Vec::new();
        let mut now_ns = 7;
        for span_ns in [0, 1, limit - 1, limit, limit + 1, 1 << 50] {
            let (start_ns, end_ns) = (now_ns + span_ns, now_ns + 2 * span_ns);
            assert!(spans.push(start_ns, end_ns).is_some());
            due.push((start_ns, end_ns));
            now_ns = end_ns;
        }
        assert!(spans.starts_and_ends_ns().eq(due));
    }

    #[test]
    fn a_span_that_is_refused_changes_nothing() {
        let mut spans = Spans::default();
        assert!(spans.push(9, 5).is_none());
        assert_eq!((spans.len(), spans.last_end_ns()), (0, 0));
        assert!(spans.push(5, 9).is_some());
        assert!(spans.push(8, 10).is_none());
        assert!(spans.starts_and_ends_ns().eq([(5, 9)]));
    }

    #[test]
    fn chunks_join() {
        let mut spans = Spans::default();
        let count = 2 * CHUNK as u64 + 3;
        for index in 0..count {
            assert!(spans.push(2 * index, 2 * index + 1).is_some());
        }
        assert_eq!(spans.len() as u64, count);
        assert!(
            spans
                .starts_and_ends_ns()
                .eq((0..count).map(|index| (2 * index, 2 * index + 1)))
        );
    }
}
