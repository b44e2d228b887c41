//! Times of a trace in 8 bytes per operation.
//!
//! An operation is stored as two 32-bit numbers: the idle time before it and its duration, both in ns. A value
//! that does not fit (over 4.29 s) goes to a side table.

use crate::spill::Spill;
use crate::stop::StopFlag;
use crate::values::{Iter, Values};

/// Value that stands for a number stored in the side table.
const ESCAPE: u32 = u32::MAX;

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
///
/// Idle times and durations are stored separately: most analyses read only the durations.
#[derive(Default)]
pub(crate) struct Spans {
    idle_ns: Values,
    duration_ns: Values,
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
        self.idle_ns.push(short_idle_ns);
        self.duration_ns.push(short_duration_ns);
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

    /// Moves idle times and durations to temporary files as they arrive.
    pub(crate) fn spill_to(&mut self, idle: Spill, duration: Spill) {
        self.idle_ns.spill_to(idle);
        self.duration_ns.spill_to(duration);
    }

    /// Ends every pass after the flag is raised: each of them reads the durations.
    pub(crate) fn stop_with(&mut self, stop: StopFlag) {
        self.duration_ns.stop_with(stop);
    }

    pub(crate) fn spill_error(&self) -> Option<&std::io::Error> {
        let of_idle = self.idle_ns.spill_error();
        of_idle.or(self.duration_ns.spill_error())
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
        for chunk in self.duration_ns.chunks() {
            let mut rest = &chunk[..];
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
        for (idle_ns, duration_ns) in self.idle_ns.chunks().zip(self.duration_ns.chunks()) {
            for (&idle_ns, &duration_ns) in idle_ns.iter().zip(&*duration_ns) {
                let (idle_ns, duration_ns) = widened(idle_ns, duration_ns, &mut long);
                let start_ns = end_ns + idle_ns;
                end_ns = start_ns + duration_ns;
                take(start_ns, end_ns);
            }
        }
    }

    fn idle_and_durations_ns(&self) -> IdleAndDurations<'_> {
        IdleAndDurations {
            idle_ns: self.idle_ns.iter(),
            duration_ns: self.duration_ns.iter(),
            long: self.long.iter(),
        }
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
    idle_ns: Iter<'a>,
    duration_ns: Iter<'a>,
    long: std::slice::Iter<'a, Long>,
}

impl Iterator for IdleAndDurations<'_> {
    type Item = (u64, u64);

    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        let (idle_ns, duration_ns) = (self.idle_ns.next()?, self.duration_ns.next()?);
        Some(widened(idle_ns, duration_ns, &mut self.long))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::CHUNK;

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
            let spill = || Spill::beside(&directory.path().join("t")).unwrap();
            spilled.spill_to(spill(), spill());
            fill(&mut spilled, count);
            fill(&mut in_memory, count);
            for list in [&spilled.idle_ns, &spilled.duration_ns] {
                assert!(list.spilled().into_iter().all(|is_spilled| is_spilled));
            }
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
        let spill = |blocks_max| {
            let spill = Spill::beside(&directory.path().join("t")).unwrap();
            spill.failing_after(blocks_max)
        };
        spilled.spill_to(spill(2), spill(1));
        fill(&mut spilled, count);
        fill(&mut in_memory, count);
        assert_eq!(spilled.idle_ns.spilled(), [true, true, false, false]);
        assert_eq!(spilled.duration_ns.spilled(), [true, false, false, false]);
        assert!(equal(&spilled, &in_memory));
    }
}
