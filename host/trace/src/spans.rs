//! Times of a trace in 8 bytes per operation.
//!
//! An operation is stored as two 32-bit numbers: the idle time before it and its duration, both in ns. A value
//! that does not fit (over 4.29 s) goes to a side table. Memory is allocated in fixed chunks, so a growing trace
//! is never copied. Full chunks may move to a temporary file; every pass then reads them one by one.

use crate::spill::Spill;
use std::sync::Arc;

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

/// Place of a full chunk.
enum Full {
    Memory(Chunk),
    /// Two blocks of the temporary file, idle times and durations; the number of the first.
    Spilled(u64),
}

/// A chunk of a pass.
enum Part<'a> {
    Memory(&'a Chunk),
    Spilled(u64),
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
    short: std::slice::Iter<'b, u32>,
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
    full: Vec<Full>,
    /// The chunk that is being filled.
    tail: Chunk,
    spill: Option<Spill>,
    /// True after the temporary file could not be written: full chunks stay in memory.
    is_spill_full: bool,
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
        if let Some(first) = self.spill_tail() {
            self.full.push(Full::Spilled(first));
            self.tail.idle_ns.clear();
            self.tail.duration_ns.clear();
            return;
        }
        let tail = std::mem::replace(&mut self.tail, Chunk::new());
        if !tail.idle_ns.is_empty() {
            self.full.push(Full::Memory(tail));
        }
    }

    /// Moves the full tail to the temporary file; returns the number of its first block, or `None` if it stays.
    fn spill_tail(&mut self) -> Option<u64> {
        let spill = self.spill.as_mut().filter(|_| !self.is_spill_full)?;
        if self.tail.idle_ns.len() < CHUNK {
            return None;
        }
        let idle = spill.append(&self.tail.idle_ns);
        let moved = idle.and_then(|first| {
            spill.append(&self.tail.duration_ns)?;
            Ok(first)
        });
        self.is_spill_full = moved.is_err();
        moved.ok()
    }

    pub(crate) fn spill_to(&mut self, spill: Spill) {
        // Chunks in an earlier file would be lost.
        if self.spill.is_none() {
            self.spill = Some(spill);
        }
    }

    pub(crate) fn spill_error(&self) -> Option<&std::io::Error> {
        self.spill.as_ref().and_then(Spill::error)
    }

    fn part(&self, index: usize) -> Option<Part<'_>> {
        match self.full.get(index) {
            Some(Full::Memory(chunk)) => Some(Part::Memory(chunk)),
            Some(Full::Spilled(first)) => Some(Part::Spilled(*first)),
            None => (index == self.full.len()).then_some(Part::Memory(&self.tail)),
        }
    }

    fn read(&self, block: u64, values: &mut Vec<u32>) {
        if let Some(spill) = &self.spill {
            spill.read(block, CHUNK, values);
        }
    }

    fn read_chunk(&self, first: u64) -> Arc<Chunk> {
        let mut chunk = Chunk::default();
        self.read(first, &mut chunk.idle_ns);
        self.read(first + 1, &mut chunk.duration_ns);
        Arc::new(chunk)
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
        let mut buffer = Vec::new();
        for part in (0..).map_while(|index| self.part(index)) {
            let mut rest = match part {
                Part::Memory(chunk) => &chunk.duration_ns[..],
                Part::Spilled(first) => {
                    self.read(first + 1, &mut buffer);
                    &buffer[..]
                }
            };
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

    /// Calls `take` with the start and end of every operation in ns, in order.
    pub(crate) fn each_start_and_end_ns(&self, mut take: impl FnMut(u64, u64)) {
        let mut long = self.long.iter();
        let mut end_ns = self.first_start_ns;
        for part in (0..).map_while(|index| self.part(index)) {
            let chunk = match part {
                Part::Memory(chunk) => Loaded::Memory(&chunk.idle_ns, &chunk.duration_ns),
                Part::Spilled(first) => Loaded::Read(self.read_chunk(first)),
            };
            let (idle_ns, duration_ns) = chunk.slices();
            for (&idle_ns, &duration_ns) in idle_ns.iter().zip(duration_ns) {
                let (idle_ns, duration_ns) = widened(idle_ns, duration_ns, &mut long);
                let start_ns = end_ns + idle_ns;
                end_ns = start_ns + duration_ns;
                take(start_ns, end_ns);
            }
        }
    }

    fn idle_and_durations_ns(&self) -> IdleAndDurations<'_> {
        IdleAndDurations {
            spans: self,
            next_part: 0,
            chunk: Loaded::Memory(&[], &[]),
            at: 0,
            long: self.long.iter(),
        }
    }
}

/// A chunk in memory, or read from the temporary file.
#[derive(Clone)]
enum Loaded<'a> {
    Memory(&'a [u32], &'a [u32]),
    Read(Arc<Chunk>),
}

impl Loaded<'_> {
    #[inline]
    fn slices(&self) -> (&[u32], &[u32]) {
        match self {
            Loaded::Memory(idle_ns, duration_ns) => (idle_ns, duration_ns),
            Loaded::Read(chunk) => (&chunk.idle_ns, &chunk.duration_ns),
        }
    }

    #[inline]
    fn get(&self, at: usize) -> Option<(u32, u32)> {
        let (idle_ns, duration_ns) = self.slices();
        Some((*idle_ns.get(at)?, *duration_ns.get(at)?))
    }
}

/// Returns idle time and duration of an operation, which may be in the side table.
#[inline]
fn widened(idle_ns: u32, duration_ns: u32, long: &mut std::slice::Iter<Long>) -> (u64, u64) {
    if duration_ns == ESCAPE {
        let long = long.next();
        return long.map_or((0, 0), |long| (long.idle_ns, long.duration_ns));
    }
    (u64::from(idle_ns), u64::from(duration_ns))
}

/// Idle time before every operation, and its duration, in ns.
#[derive(Clone)]
struct IdleAndDurations<'a> {
    spans: &'a Spans,
    next_part: usize,
    chunk: Loaded<'a>,
    /// Position in the chunk.
    at: usize,
    long: std::slice::Iter<'a, Long>,
}

impl Iterator for IdleAndDurations<'_> {
    type Item = (u64, u64);

    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        let (idle_ns, duration_ns) = loop {
            if let Some(pair) = self.chunk.get(self.at) {
                break pair;
            }
            self.chunk = match self.spans.part(self.next_part)? {
                Part::Memory(chunk) => Loaded::Memory(&chunk.idle_ns, &chunk.duration_ns),
                Part::Spilled(first) => Loaded::Read(self.spans.read_chunk(first)),
            };
            (self.next_part, self.at) = (self.next_part + 1, 0);
        };
        self.at += 1;
        Some(widened(idle_ns, duration_ns, &mut self.long))
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

    /// Pushes spans of which every thousandth is long.
    fn fill(spans: &mut Spans, count: u64) {
        let mut now_ns = 3;
        for index in 0..count {
            let duration_ns = match index % 1000 {
                0 => u64::from(u32::MAX) + index,
                _ => index * 7919 % 100_003,
            };
            assert!(
                spans
                    .push(now_ns + index % 5, now_ns + index % 5 + duration_ns)
                    .is_some()
            );
            now_ns += index % 5 + duration_ns;
        }
    }

    fn durations(spans: &Spans) -> Vec<(u32, u64)> {
        let groups = (0..).map(|group| (group, 40_001));
        let mut all = Vec::new();
        spans.replay(groups, |group, durations_ns| {
            all.extend(durations_ns.map(|ns| (*group, ns)))
        });
        all
    }

    fn each(spans: &Spans) -> Vec<(u64, u64)> {
        let mut all = Vec::new();
        spans.each_start_and_end_ns(|start_ns, end_ns| all.push((start_ns, end_ns)));
        all
    }

    fn equal(a: &Spans, b: &Spans) -> bool {
        assert!(a.starts_and_ends_ns().eq(each(a)));
        a.starts_and_ends_ns().eq(b.starts_and_ends_ns()) && durations(a) == durations(b)
    }

    #[cfg(unix)]
    #[test]
    fn spans_in_a_file_are_those_in_memory() {
        let directory = tempfile::tempdir().unwrap();
        for count in [0, 1, CHUNK as u64, CHUNK as u64 + 1, 3 * CHUNK as u64 + 5] {
            let (mut spilled, mut in_memory) = (Spans::default(), Spans::default());
            spilled.spill_to(Spill::beside(&directory.path().join("t")).unwrap());
            fill(&mut spilled, count);
            fill(&mut in_memory, count);
            let is_spilled = |full: &Full| matches!(full, Full::Spilled(_));
            assert!(spilled.full.iter().all(is_spilled));
            assert_eq!(spilled.full.len(), in_memory.full.len());
            assert!(equal(&spilled, &in_memory), "{count}");
            // A clone goes on where its original is.
            let mut iterator = spilled.starts_and_ends_ns();
            let passed = iterator.by_ref().take(CHUNK + 7).count();
            let expected: Vec<_> = in_memory.starts_and_ends_ns().skip(passed).collect();
            assert!(iterator.clone().eq(expected.iter().copied()));
            assert!(iterator.eq(expected));
            assert!(spilled.spill_error().is_none());
        }
    }

    /// The file system has no space for the second and further chunks.
    #[cfg(unix)]
    #[test]
    fn spans_stay_in_memory_if_the_file_cannot_be_written() {
        let directory = tempfile::tempdir().unwrap();
        let (mut spilled, mut in_memory) = (Spans::default(), Spans::default());
        let count = 4 * CHUNK as u64 + 9;
        spilled.spill_to(
            Spill::beside(&directory.path().join("t"))
                .unwrap()
                .failing_after(3),
        );
        fill(&mut spilled, count);
        fill(&mut in_memory, count);
        let places: Vec<_> = spilled
            .full
            .iter()
            .map(|full| matches!(full, Full::Spilled(_)))
            .collect();
        assert_eq!(places, [true, false, false, false]);
        assert!(equal(&spilled, &in_memory));
    }
}
