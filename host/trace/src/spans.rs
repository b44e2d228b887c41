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
    chunks: Vec<Vec<Short>>,
    long: Vec<Long>,
    len: usize,
    first_start_ns: u64,
    last_end_ns: u64,
}

impl Spans {
    /// Appends an operation. The caller has checked `last_end_ns <= start_ns <= end_ns`.
    #[inline]
    pub(crate) fn push(&mut self, start_ns: u64, end_ns: u64) {
        if self.len == 0 {
            self.first_start_ns = start_ns;
            self.last_end_ns = start_ns;
        }
        let idle_ns = start_ns - self.last_end_ns;
        let duration_ns = end_ns - start_ns;
        self.last_end_ns = end_ns;
        let short = if (idle_ns | duration_ns) < u64::from(ESCAPE) {
            Short {
                idle_ns: idle_ns as u32,
                duration_ns: duration_ns as u32,
            }
        } else {
            self.push_long(idle_ns, duration_ns)
        };
        if self.len.is_multiple_of(CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(short);
        }
        self.len += 1;
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
        self.chunks.iter().flatten().map(move |short| {
            if short.duration_ns == ESCAPE {
                // The side table is in the order of the operations.
                long.next().map_or((0, 0), |l| (l.idle_ns, l.duration_ns))
            } else {
                (u64::from(short.idle_ns), u64::from(short.duration_ns))
            }
        })
    }
}
