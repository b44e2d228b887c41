//! The exact sustained rate for a given buffer size, over a whole trace.
//!
//! By the recursion of the [crate docs](crate), `B(r)` is the maximum of many straight lines: one for every
//! stretch of writes `j..=i`, with the slope `s_j + ... + s_i` and an intercept that falls with every payload in
//! the stretch. It is convex and increasing in `r`, so Newton's method, started at a rate that is too high,
//! descends to the solution without overshooting: replay the trace at `r`, take the stretch that needed the
//! most buffer, solve its line for `B(r) = B`, repeat.
//!
//! The worst stretch begins and ends with a write slower than the producer (`r*s > b`); otherwise a shorter stretch
//! would need more buffer. Writes that are not slower than the producer are therefore summed up and skipped in one
//! step; the lower the rate, the more such writes there are. Long traces still leave many steps, so a first solution is
//! found among the slowest writes alone. It can only be too high, and is then checked against all writes and lowered if
//! necessary:
//!
//! ```text
//!   writes ──> Merger ──> step ──> lane 1 MiB ──> fewer steps ──> lane 512 KiB ──> fewer ──> ...
//! ```

use crate::{Histogram, Latencies, Pass, Replay};
use alloc::vec::Vec;

/// Number of slowest writes that the first solution is computed from.
const SLOWEST_WRITES: u64 = 1 << 14;

/// Tolerated relative excess of the buffer needed over the buffer given: far below the promised 0.1 %.
const TOLERANCE: f64 = 1e-9;

/// Maximum number of Newton steps. Every step finds another straight line; a handful is usual.
const STEPS_MAX: usize = 200;

/// Returns the sustained rate in bytes per second for each size in `buffer_bytes`, exact to 0.1 %.
///
/// `times` are the latency statistics of the same writes. A buffer smaller than a single payload sustains 0. All
/// rates are 0 if the latencies sum to 0.
pub fn sustained_rates_bytes_per_s<const BUCKETS: usize>(
    writes: &(impl Replay + ?Sized),
    times: &Latencies<BUCKETS>,
    buffer_bytes: &[u64],
) -> Vec<f64> {
    solved(writes, times, buffer_bytes, SLOWEST_WRITES)
}

/// Solves for all buffer sizes; the first solution is computed from the given number of slowest writes.
fn solved<const BUCKETS: usize>(
    writes: &(impl Replay + ?Sized),
    times: &Latencies<BUCKETS>,
    buffer_bytes: &[u64],
    slowest_writes: u64,
) -> Vec<f64> {
    if times.sum_ns() == 0 {
        return alloc::vec![0.0; buffer_bytes.len()];
    }
    let average = times.bytes() as f64 / times.sum_ns() as f64;
    let mut lanes: Vec<Lane> = buffer_bytes
        .iter()
        .enumerate()
        .map(|(index, &size)| Lane::new(index, size as f64, average))
        .collect();

    let slowest = slowest(writes, times.histogram(), slowest_writes);
    solve(&mut lanes, |lanes| {
        slowest.iter().for_each(|step| play(lanes, step));
    });
    solve(&mut lanes, |lanes| {
        let fastest = lanes.first().map_or(0.0, |lane| lane.rate);
        let mut merger = Merger::exact(fastest, |step: &Step| play(lanes, step));
        writes.replay_run(&mut merger);
        merger.finish();
    });
    lanes.sort_unstable_by_key(|lane| lane.index);
    lanes.iter().map(|lane| lane.rate * 1e9).collect()
}

/// Lowers the rate of every lane until `play_all` needs no more buffer than the lane has.
fn solve(lanes: &mut [Lane], mut play_all: impl FnMut(&mut [Lane])) {
    // Unsolved lanes are kept in front.
    let mut open = lanes.len();
    for _ in 0..STEPS_MAX {
        if open == 0 {
            return;
        }
        lanes[..open].iter_mut().for_each(Lane::rewind);
        lanes[..open].sort_unstable_by(|a, b| b.rate.total_cmp(&a.rate));
        play_all(&mut lanes[..open]);
        let mut at = 0;
        while at < open {
            if lanes[at].lower_rate() {
                at += 1;
            } else {
                open -= 1;
                lanes.swap(at, open);
            }
        }
    }
}

fn slowest<const BUCKETS: usize>(
    writes: &(impl Replay + ?Sized),
    histogram: &Histogram<BUCKETS>,
    count: u64,
) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut merger = Merger::of_writes_above(histogram.value_exceeded_by(count), |step: &Step| {
        steps.push(*step)
    });
    writes.replay_run(&mut merger);
    merger.finish();
    steps
}

/// A slow write, together with the quick writes since the previous slow write, summed up.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    /// Payload that leaves the buffer before this write starts: the previous slow write and the quick writes.
    freed_bytes: u64,
    /// Sum of the latencies of the quick writes.
    quick_ns: u64,
    /// Maximum latency of the quick writes.
    quick_longest_ns: u64,
    /// Payload of the quick write with the maximum latency.
    quick_longest_bytes: u64,
    ns: u64,
    bytes: u64,
    /// True if the writes before and after this one carry the same payload. Only then may this write count
    /// as quick.
    equal_neighbours: bool,
}

impl Step {
    #[inline]
    fn add_quick(&mut self, sum_ns: u64, longest_ns: u64, bytes: u64) {
        self.quick_ns = self.quick_ns.saturating_add(sum_ns);
        if longest_ns > self.quick_longest_ns {
            self.quick_longest_ns = longest_ns;
            self.quick_longest_bytes = bytes;
        }
    }
}

/// Longest latency at which writes of a certain payload size are not slower than the producer.
#[derive(Clone, Copy, Debug, Default)]
struct QuickUpTo {
    bytes: u64,
    ns: u64,
}

impl QuickUpTo {
    #[inline]
    fn ns(&mut self, bytes: u64, rate: f64) -> u64 {
        if bytes != self.bytes {
            *self = QuickUpTo {
                bytes,
                ns: (bytes as f64 / rate) as u64,
            };
        }
        self.ns
    }
}

/// The search for the rate that one buffer size sustains. Rates are in bytes per ns.
#[derive(Clone, Copy, Debug)]
struct Lane {
    /// Index of the lane's result; lanes are reordered while they are solved.
    index: usize,
    buffer_bytes: f64,
    rate: f64,
    /// The step under construction: the writes since the last write that is slow at this lane's rate. A slow
    /// write completes the step; `coming_was_played` is then true until the next write.
    coming: Step,
    coming_was_played: bool,
    quick: QuickUpTo,
    waiting_bytes: f64,
    /// Sum of the latencies since the current busy period began: the slope of the current line.
    slope_ns: f64,
    peak_bytes: f64,
    peak_slope_ns: f64,
}

impl Lane {
    fn new(index: usize, buffer_bytes: f64, rate: f64) -> Lane {
        Lane {
            index,
            buffer_bytes,
            rate,
            coming: Step::default(),
            coming_was_played: true,
            quick: QuickUpTo::default(),
            waiting_bytes: 0.0,
            slope_ns: 0.0,
            peak_bytes: 0.0,
            peak_slope_ns: 0.0,
        }
    }

    fn rewind(&mut self) {
        *self = Lane::new(self.index, self.buffer_bytes, self.rate);
    }

    /// Adds a step to `coming`. Returns true if the step's write is slow at this lane's rate; `coming` is
    /// then complete and can be passed to the lanes with lower rates.
    #[inline]
    fn take(&mut self, step: &Step) -> bool {
        if self.coming_was_played {
            self.coming = *step;
        } else {
            self.coming.freed_bytes += step.freed_bytes;
            self.coming.add_quick(
                step.quick_ns,
                step.quick_longest_ns,
                step.quick_longest_bytes,
            );
        }
        let is_quick = step.equal_neighbours && step.ns <= self.quick.ns(step.bytes, self.rate);
        if is_quick {
            // The freed bytes of the next step include this write's payload.
            self.coming.add_quick(step.ns, step.ns, step.bytes);
        } else {
            self.coming.ns = step.ns;
            self.coming.bytes = step.bytes;
            self.coming.equal_neighbours = step.equal_neighbours;
            self.play_coming();
        }
        self.coming_was_played = !is_quick;
        !is_quick
    }

    #[inline]
    fn play_coming(&mut self) {
        let step = self.coming;
        let quick_longest_ns = step.quick_longest_ns as f64;
        let quick_peak_bytes = step.quick_longest_bytes as f64 + self.rate * quick_longest_ns;
        self.note(quick_peak_bytes, quick_longest_ns);
        let (quick_ns, ns, bytes) = (step.quick_ns as f64, step.ns as f64, step.bytes as f64);
        let carried = self.waiting_bytes - step.freed_bytes as f64 + self.rate * quick_ns;
        let (begin_bytes, begin_ns) = if carried > bytes {
            (carried, self.slope_ns + quick_ns)
        } else {
            (bytes, 0.0)
        };
        self.waiting_bytes = begin_bytes + self.rate * ns;
        self.slope_ns = begin_ns + ns;
        self.note(self.waiting_bytes, self.slope_ns);
    }

    #[inline]
    fn note(&mut self, bytes: f64, slope_ns: f64) {
        if bytes > self.peak_bytes {
            self.peak_bytes = bytes;
            self.peak_slope_ns = slope_ns;
        }
    }

    /// Lowers the rate until the worst stretch of writes just fits in the buffer. Returns false if it fitted
    /// already.
    fn lower_rate(&mut self) -> bool {
        if self.rate == 0.0 || self.peak_bytes <= self.buffer_bytes * (1.0 + TOLERANCE) {
            return false;
        }
        let intercept = self.peak_bytes - self.rate * self.peak_slope_ns;
        self.rate = if intercept >= self.buffer_bytes {
            0.0
        } else {
            // The root lies below the present rate; rounding must not raise it.
            ((self.buffer_bytes - intercept) / self.peak_slope_ns).min(self.rate)
        };
        true
    }
}

/// Replays a step in every lane; `lanes` are sorted by descending rate.
#[inline]
fn play(lanes: &mut [Lane], step: &Step) {
    let mut step = step;
    for lane in lanes {
        if !lane.take(step) {
            return;
        }
        step = &lane.coming;
    }
}

/// Turns writes into [`Step`]s.
struct Merger<E: FnMut(&Step)> {
    emit: E,
    rule: Rule,
    step: Step,
    held: Option<(u64, u64)>,
    before_bytes: u64,
}

/// Selects the writes that are skipped.
enum Rule {
    /// Skips writes that cannot affect the result at any rate up to the given one, in bytes per ns.
    UpToRate(f64, QuickUpTo),
    /// Skips all writes up to a latency in ns, even those that affect the result.
    UpToTime(u64),
}

impl<E: FnMut(&Step)> Merger<E> {
    fn exact(rate: f64, emit: E) -> Self {
        Merger::new(Rule::UpToRate(rate, QuickUpTo::default()), emit)
    }

    fn of_writes_above(ns: u64, emit: E) -> Self {
        Merger::new(Rule::UpToTime(ns), emit)
    }

    fn new(rule: Rule, emit: E) -> Self {
        Merger {
            emit,
            rule,
            step: Step::default(),
            held: None,
            before_bytes: 0,
        }
    }

    fn finish(mut self) {
        if let Some((ns, bytes)) = self.held {
            self.take_slow(ns, bytes, false);
        }
    }

    fn is_quick(&mut self, ns: u64, bytes: u64, equal_neighbours: bool) -> bool {
        // Between unequal payloads a quick write can still bound the worst stretch.
        (equal_neighbours || matches!(self.rule, Rule::UpToTime(_)))
            && ns <= self.quick_up_to_ns(bytes)
    }

    fn quick_up_to_ns(&mut self, bytes: u64) -> u64 {
        match &mut self.rule {
            Rule::UpToRate(rate, quick) => quick.ns(bytes, *rate),
            Rule::UpToTime(ns) => *ns,
        }
    }

    /// Adds a write once the payload of the next one is known.
    fn take(&mut self, ns: u64, bytes: u64, next_bytes: u64) {
        let equal_neighbours = bytes == self.before_bytes && bytes == next_bytes;
        if self.is_quick(ns, bytes, equal_neighbours) {
            self.step.freed_bytes += bytes;
            self.step.add_quick(ns, ns, bytes);
            self.before_bytes = bytes;
        } else {
            self.take_slow(ns, bytes, equal_neighbours);
        }
    }

    fn take_slow(&mut self, ns: u64, bytes: u64, equal_neighbours: bool) {
        let step = Step {
            ns,
            bytes,
            equal_neighbours,
            ..self.step
        };
        (self.emit)(&step);
        self.step = Step {
            freed_bytes: bytes,
            ..Step::default()
        };
        self.before_bytes = bytes;
    }
}

impl<E: FnMut(&Step)> Pass for Merger<E> {
    fn take_run(&mut self, bytes: u64, mut durations_ns: impl Iterator<Item = u64>) {
        let Some(first_ns) = durations_ns.next() else {
            return;
        };
        if let Some((held_ns, held_bytes)) = self.held.take() {
            self.take(held_ns, held_bytes, bytes);
        }
        // The previous write is held back, because whether it is quick depends on the current write's
        // payload.
        let mut held_ns = first_ns;
        let up_to_ns = self.quick_up_to_ns(bytes);
        // Locals stay in registers; fields would be stored at every write.
        let (mut count, mut sum_ns, mut longest_ns) = (0, 0u64, 0);
        for ns in durations_ns {
            let is_quick = held_ns <= up_to_ns && (count > 0 || self.before_bytes == bytes);
            if is_quick {
                count += 1;
                sum_ns = sum_ns.saturating_add(held_ns);
                longest_ns = held_ns.max(longest_ns);
            } else {
                self.step.freed_bytes += count * bytes;
                self.step.add_quick(sum_ns, longest_ns, bytes);
                (count, sum_ns, longest_ns) = (0, 0, 0);
                self.take(held_ns, bytes, bytes);
            }
            held_ns = ns;
        }
        self.step.freed_bytes += count * bytes;
        self.step.add_quick(sum_ns, longest_ns, bytes);
        if count > 0 {
            self.before_bytes = bytes;
        }
        self.held = Some((held_ns, bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buckets_below;
    use proptest::prelude::*;

    type Times = Latencies<{ buckets_below(64) }>;

    fn rates(writes: &[(u64, u64)], buffer_bytes: &[u64]) -> Vec<f64> {
        let mut times = Times::default();
        writes.iter().for_each(|&(ns, bytes)| times.push(ns, bytes));
        sustained_rates_bytes_per_s(writes, &times, buffer_bytes)
    }

    /// Buffer needed at `rate` bytes per ns, by definition: timestamps of producer and writer.
    fn buffer_needed(writes: &[(u64, u64)], rate: f64) -> f64 {
        let (mut end, mut made, mut peak) = (0.0f64, 0.0, 0.0f64);
        for &(ns, bytes) in writes {
            let before = made;
            made += bytes as f64;
            end = end.max(made / rate) + ns as f64;
            peak = peak.max(rate * end - before);
        }
        peak
    }

    /// The published formula, over every stretch of `m` writes with equal payload.
    fn by_windows(writes: &[(u64, u64)], size: f64) -> f64 {
        let b = writes[0].1 as f64;
        let sum = |w: &[(u64, u64)]| w.iter().map(|w| w.0 as f64).sum::<f64>();
        let average = b * writes.len() as f64 / sum(writes);
        (1..=writes.len()).fold(average, |least, m| {
            let worst = writes.windows(m).map(sum).fold(0.0, f64::max);
            least.min((size + (m as f64 - 2.0) * b) / worst)
        })
    }

    fn times() -> impl Strategy<Value = u64> {
        prop_oneof![8 => 1_000..400_000u64, 2 => 400_000..4_000_000u64, 1 => 4_000_000..90_000_000u64]
    }

    proptest! {
        #[test]
        fn equal_payloads_match_the_published_formula(
            times in prop::collection::vec(times(), 1..120),
            bytes in prop_oneof![Just(1u64), Just(100), Just(512), Just(32_768)],
            buffer_blocks in prop::collection::vec(0..400u64, 1..6),
        ) {
            let writes: Vec<_> = times.into_iter().map(|ns| (ns, bytes)).collect();
            let sizes_bytes: Vec<u64> = buffer_blocks.iter().map(|n| n * bytes).collect();
            for (size, rate) in sizes_bytes.iter().zip(rates(&writes, &sizes_bytes)) {
                let expected = by_windows(&writes, *size as f64).max(0.0) * 1e9;
                prop_assert!((rate - expected).abs() <= expected * 1e-6 + 1e-9, "{rate} for {expected}");
            }
        }

        #[test]
        fn unequal_payloads_fit_the_buffer_and_a_thousandth_more_does_not(
            writes in prop::collection::vec((times(), 1..2000u64), 1..120),
            size in 2_000..300_000u64,
        ) {
            let rate = rates(&writes, &[size])[0] / 1e9;
            prop_assert!(buffer_needed(&writes, rate) <= size as f64 * 1.000_001);
            let average = writes.iter().map(|w| w.1 as f64).sum::<f64>()
                / writes.iter().map(|w| w.0 as f64).sum::<f64>();
            if rate * 1.001 < average {
                prop_assert!(buffer_needed(&writes, rate * 1.001) > size as f64);
            }
        }

        #[test]
        fn the_result_does_not_depend_on_the_size_of_the_first_selection(
            writes in prop::collection::vec((times(), prop_oneof![9 => Just(512u64), 1 => 1..2000u64]), 2..150),
            slowest_writes in 0..20u64,
            sizes_bytes in prop::collection::vec(2_000..300_000u64, 1..6),
        ) {
            let mut times = Times::default();
            writes.iter().for_each(|&(ns, bytes)| times.push(ns, bytes));
            let few = solved(&writes[..], &times, &sizes_bytes, slowest_writes);
            for (rate, size) in few.iter().zip(&sizes_bytes) {
                prop_assert!(buffer_needed(&writes, rate / 1e9) <= *size as f64 * 1.000_001);
            }
            for (few, all) in few.iter().zip(rates(&writes, &sizes_bytes)) {
                prop_assert!((few - all).abs() <= all * 1e-6, "{few} for {all}");
            }
        }
    }

    #[test]
    fn a_buffer_of_two_blocks_sustains_the_worst_case_throughput() {
        // 512 B in at most 64 ms is 8 kB/s.
        let rate = rates(
            &[(1_000_000, 512), (64_000_000, 512), (1_000_000, 512)],
            &[1024],
        )[0];
        assert!((rate - 8000.0).abs() < 1e-6, "{rate}");
    }

    #[test]
    fn a_buffer_below_one_payload_sustains_nothing() {
        assert_eq!(rates(&[(1000, 512), (1000, 512)], &[511]), [0.0]);
        assert_eq!(rates(&[(0, 512)], &[4096]), [0.0]);
    }
}
