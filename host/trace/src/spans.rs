//! Times of a trace in 8 bytes per operation.
//!
//! An operation is stored as two 32-bit numbers: the idle time before it and its duration, both in ns. A value
//! that does not fit (over 4.29 s) goes to a side table. Memory is allocated in fixed chunks, so a growing trace
//! is never copied.

/// Number of operations per chunk of memory.
const CHUNK: usize = 1 << 16;

/// Value that stands for a number stored in the side table.
const ESCAPE: u32 = u32::MAX;

/// Idle times and durations are stored separately: most analyses read only the durations.
#[derive(Default)]
struct Chunk {
    idle_ns: Vec<u32>,
    duration_ns: Vec<u32>,
}

impl Chunk {
    fn new() -> Chunk {
        Chunk {
            idle_ns: Vec::with_capacity(CHUNK),
            duration_ns: Vec::with_capacity(CHUNK),
        }
    }
}

/// A span that does not fit in 32 bits.
#[derive(Clone, Copy)]
struct Long {
    idle_ns: u64,
    duration_ns: u64,
}

/// Durations of consecutive operations in ns. This iterator must be exhausted, because it shares its
/// position in the side table with the iterators that follow.
pub struct Durations<'a, 'b> {
    short: std::slice::Iter<'a, u32>,
    /// Remaining entries of the side table, in the order of the operations.
    long: &'b mut std::slice::Iter<'a, Long>,
}

impl Iterator for Durations<'_, '_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let &short = self.short.next()?;
        if short == ESCAPE {
            return Some(self.long.next().map_or(0, |long| long.duration_ns));
        }
        Some(u64::from(short))
    }
}

/// Starts and ends of operations in order of time.
#[derive(Default)]
pub(crate) struct Spans {
    full: Vec<Chunk>,
    /// The chunk that is being filled.
    tail: Chunk,
    long: Vec<Long>,
    len: usize,
    first_start_ns: u64,
    last_end_ns: u64,
}

impl Spans {
    /// Appends an operation. Returns `None`, without a change, unless `last_end_ns <= start_ns <= end_ns`.
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
        let (short_idle_ns, short_duration_ns) = if (idle_ns | duration_ns) < u64::from(ESCAPE) {
            (idle_ns as u32, duration_ns as u32)
        } else {
            self.push_long(idle_ns, duration_ns)
        };
        if self.tail.idle_ns.len() == self.tail.idle_ns.capacity() {
            self.start_chunk();
        }
        self.tail.idle_ns.push(short_idle_ns);
        self.tail.duration_ns.push(short_duration_ns);
        self.len += 1;
        Some(())
    }

    #[cold]
    fn push_long(&mut self, idle_ns: u64, duration_ns: u64) -> (u32, u32) {
        self.long.push(Long {
            idle_ns,
            duration_ns,
        });
        (ESCAPE, ESCAPE)
    }

    #[cold]
    fn start_chunk(&mut self) {
        let tail = std::mem::replace(&mut self.tail, Chunk::new());
        if !tail.idle_ns.is_empty() {
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

    /// Calls `take` with the durations of all operations in ns, in order. Each call covers a group or a part
    /// of one, and also passes the value of the group. `groups` lists the groups in the same order, each
    /// with its value and its number of operations.
    pub(crate) fn replay<G>(
        &self,
        mut groups: impl Iterator<Item = (G, u64)>,
        mut take: impl FnMut(&G, Durations),
    ) {
        let mut long = self.long.iter();
        let mut group = None;
        for chunk in self.full.iter().chain([&self.tail]) {
            let mut rest = &chunk.duration_ns[..];
            while !rest.is_empty() {
                let Some((belongs_to, left)) = group.take().or_else(|| groups.next()) else {
                    return;
                };
                let count = rest.len().min(left as usize);
                let (now, later) = rest.split_at(count);
                take(
                    &belongs_to,
                    Durations {
                        short: now.iter(),
                        long: &mut long,
                    },
                );
                rest = later;
                group = (left > count as u64).then_some((belongs_to, left - count as u64));
            }
        }
    }

    /// Start and end of every operation in ns, in order.
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
            .chain([&self.tail])
            .flat_map(|chunk| chunk.idle_ns.iter().zip(&chunk.duration_ns))
            .map(move |(&idle_ns, &duration_ns)| {
                if duration_ns == ESCAPE {
                    long.next().map_or((0, 0), |l| (l.idle_ns, l.duration_ns))
                } else {
                    (u64::from(idle_ns), u64::from(duration_ns))
                }
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_beyond_32_bits_are_stored_exactly() {
        let limit = u64::from(u32::MAX);
        let mut spans = Spans::default();
        let mut expected = Vec::new();
        let mut now_ns = 7;
        for span_ns in [0, 1, limit - 1, limit, limit + 1, 1 << 50] {
            let (start_ns, end_ns) = (now_ns + span_ns, now_ns + 2 * span_ns);
            assert!(spans.push(start_ns, end_ns).is_some());
            expected.push((start_ns, end_ns));
            now_ns = end_ns;
        }
        assert!(spans.starts_and_ends_ns().eq(expected));
    }

    #[test]
    fn a_rejected_span_changes_nothing() {
        let mut spans = Spans::default();
        assert!(spans.push(9, 5).is_none());
        assert_eq!((spans.len(), spans.last_end_ns()), (0, 0));
        assert!(spans.push(5, 9).is_some());
        assert!(spans.push(8, 10).is_none());
        assert!(spans.starts_and_ends_ns().eq([(5, 9)]));
    }

    #[test]
    fn chunks_are_joined_seamlessly() {
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
