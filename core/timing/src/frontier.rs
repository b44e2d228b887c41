//! The exact lossless rate for a given RAM, over a whole trace.
//!
//! By the recursion of the [crate docs](crate), `B(r)` is the greatest of many straight lines: one
//! for every stretch of writes `j..=i`, with the slope `s_j + ... + s_i` and an intercept that falls
//! with every payload in it. It is convex and rises with `r`, so Newton's method from a rate that is
//! too high steps down to the answer without passing it: play the trace at `r`, take the stretch
//! that needed the most RAM, solve its line for `B(r) = B`, repeat.
//!
//! A stretch that matters begins and ends with a write slower than the producer (`r*s > b`):
//! otherwise a shorter one needs more. So writes that are not slower are added up and passed over in
//! one step; the lower a rate, the more of them. What remains is still much for long traces, so a
//! solution is first found among the slowest writes alone; it can only be too high, and is then
//! checked, and if need be mended, against all:
//!
//! ```text
//!   writes ──> Merger ──> step ──> lane 1 MiB ──> fewer steps ──> lane 512 KiB ──> fewer ──> ...
//! ```

use crate::{Histogram, Pass, Replay, WriteTimes};
use alloc::vec::Vec;

/// Writes that the first solution is found among.
const SLOWEST_WRITES: u64 = 1 << 14;

/// How far the RAM needed may lie above the RAM given: far below the 0.1 % that is promised.
const TOLERANCE: f64 = 1e-9;

/// Newton steps; every step takes another straight line, a handful is usual.
const STEPS_MAX: usize = 200;

/// The lossless rates in bytes per second for every RAM size in `ram_bytes`, exact to 0.1 %.
///
/// `times` are the figures of the same writes. A RAM that does not hold a single payload carries 0.
/// All rates are 0 when no write took any time.
#[allow(non_snake_case, reason = "B is bytes, b would be bits")]
pub fn lossless_rates_Bps<const BUCKETS: usize>(
    writes: &(impl Replay + ?Sized),
    times: &WriteTimes<BUCKETS>,
    ram_bytes: &[u64],
) -> Vec<f64> {
    solved(writes, times, ram_bytes, SLOWEST_WRITES)
}

/// The same, the first solution found among so many of the slowest writes.
fn solved<const BUCKETS: usize>(
    writes: &(impl Replay + ?Sized),
    times: &WriteTimes<BUCKETS>,
    ram_bytes: &[u64],
    slowest_writes: u64,
) -> Vec<f64> {
    if times.sum_ns() == 0 {
        return alloc::vec![0.0; ram_bytes.len()];
    }
    let average = times.bytes() as f64 / times.sum_ns() as f64;
    let mut lanes: Vec<Lane> = ram_bytes
        .iter()
        .enumerate()
        .map(|(index, &ram)| Lane::new(index, ram as f64, average))
        .collect();

    let slowest = slowest(writes, times.histogram(), slowest_writes);
    solve(&mut lanes, |lanes| {
        slowest.iter().for_each(|step| play(lanes, step));
    });
    solve(&mut lanes, |lanes| {
        let fastest = lanes.first().map_or(0.0, |lane| lane.rate);
        let mut merger = Merger::exact(fastest, |step: &Step| play(lanes, step));
        writes.replay_alike(&mut merger);
        merger.finish();
    });
    lanes.sort_unstable_by_key(|lane| lane.index);
    lanes.iter().map(|lane| lane.rate * 1e9).collect()
}

/// Lowers the rate of every lane until `play_all` needs no more RAM than the lane has.
fn solve(lanes: &mut [Lane], mut play_all: impl FnMut(&mut [Lane])) {
    // Lanes that are not solved are kept in front.
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
    writes.replay_alike(&mut merger);
    merger.finish();
    steps
}

/// A slow write, and the quicker ones since the slow write before it, added up.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    /// Payloads that leave the RAM before this write starts: the slow one's before, the quick ones'.
    freed_bytes: u64,
    /// Sum of the quick writes' times.
    quick_ns: u64,
    /// The longest of the quick writes.
    quick_longest_ns: u64,
    /// Its payload.
    quick_longest_bytes: u64,
    ns: u64,
    bytes: u64,
    /// The writes before and after carry as much. Only then may it count as quick.
    alike: bool,
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

/// Up to which time writes of a payload are not slower than the producer.
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

/// One RAM size on its way to its lossless rate. Rates in bytes per ns.
#[derive(Clone, Copy, Debug)]
struct Lane {
    /// Place of the answer; lanes are reordered while they are solved.
    index: usize,
    ram_bytes: f64,
    rate: f64,
    /// What has come since the last write that is slow at this rate; that write itself if
    /// `coming_was_played`.
    coming: Step,
    coming_was_played: bool,
    quick: QuickUpTo,
    waiting_bytes: f64,
    /// Sum of the write times since the backlog last began: the slope of the line we are on.
    slope_ns: f64,
    peak_bytes: f64,
    peak_slope_ns: f64,
}

impl Lane {
    fn new(index: usize, ram_bytes: f64, rate: f64) -> Lane {
        Lane {
            index,
            ram_bytes,
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
        *self = Lane::new(self.index, self.ram_bytes, self.rate);
    }

    /// Takes in a step. Whether its write is slow at this rate: `coming` is then the step with all
    /// that came before it, for lanes with lower rates.
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
        let is_quick = step.alike && step.ns <= self.quick.ns(step.bytes, self.rate);
        if is_quick {
            // Its payload is in the next step's freed bytes.
            self.coming.add_quick(step.ns, step.ns, step.bytes);
        } else {
            self.coming.ns = step.ns;
            self.coming.bytes = step.bytes;
            self.coming.alike = step.alike;
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

    /// Takes the rate at which the worst stretch just fits. False when it fitted already.
    fn lower_rate(&mut self) -> bool {
        if self.rate == 0.0 || self.peak_bytes <= self.ram_bytes * (1.0 + TOLERANCE) {
            return false;
        }
        let intercept = self.peak_bytes - self.rate * self.peak_slope_ns;
        self.rate = if intercept >= self.ram_bytes {
            0.0
        } else {
            // The root lies below; rounding must not lift it.
            ((self.ram_bytes - intercept) / self.peak_slope_ns).min(self.rate)
        };
        true
    }
}

/// Plays a step in every lane; `lanes` are in the order of falling rates.
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

/// Which writes are passed over.
enum Rule {
    /// Those that matter at no rate up to this one, in bytes per ns.
    UpToRate(f64, QuickUpTo),
    /// Those up to a time in ns, whether they matter or not.
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

    fn is_quick(&mut self, ns: u64, bytes: u64, alike: bool) -> bool {
        // Between unequal payloads a quick write can still bound the worst stretch.
        (alike || matches!(self.rule, Rule::UpToTime(_))) && ns <= self.quick_up_to_ns(bytes)
    }

    fn quick_up_to_ns(&mut self, bytes: u64) -> u64 {
        match &mut self.rule {
            Rule::UpToRate(rate, quick) => quick.ns(bytes, *rate),
            Rule::UpToTime(ns) => *ns,
        }
    }

    /// Takes in a write when it is known whether its neighbours carry as much.
    fn take(&mut self, ns: u64, bytes: u64, next_bytes: u64) {
        let alike = bytes == self.before_bytes && bytes == next_bytes;
        if self.is_quick(ns, bytes, alike) {
            self.step.freed_bytes += bytes;
            self.step.add_quick(ns, ns, bytes);
            self.before_bytes = bytes;
        } else {
            self.take_slow(ns, bytes, alike);
        }
    }

    fn take_slow(&mut self, ns: u64, bytes: u64, alike: bool) {
        let step = Step {
            ns,
            bytes,
            alike,
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
    fn take_alike(&mut self, bytes: u64, mut durations_ns: impl Iterator<Item = u64>) {
        let Some(first_ns) = durations_ns.next() else {
            return;
        };
        if let Some((held_ns, held_bytes)) = self.held.take() {
            self.take(held_ns, held_bytes, bytes);
        }
        // The write before the present one; whether it is quick hangs on the present one's payload.
        let mut held_ns = first_ns;
        let up_to_ns = self.quick_up_to_ns(bytes);
        // Locals stay in registers where fields would be stored at every write.
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

    type Times = WriteTimes<{ buckets_below(64) }>;

    fn rates(writes: &[(u64, u64)], ram_bytes: &[u64]) -> Vec<f64> {
        let mut times = Times::default();
        writes.iter().for_each(|&(ns, bytes)| times.push(ns, bytes));
        lossless_rates_Bps(writes, &times, ram_bytes)
    }

    /// RAM needed at `rate` bytes per ns: the definition itself, producer and writer in time.
    fn ram_needed(writes: &[(u64, u64)], rate: f64) -> f64 {
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
    fn by_windows(writes: &[(u64, u64)], ram: f64) -> f64 {
        let b = writes[0].1 as f64;
        let sum = |w: &[(u64, u64)]| w.iter().map(|w| w.0 as f64).sum::<f64>();
        let average = b * writes.len() as f64 / sum(writes);
        (1..=writes.len()).fold(average, |least, m| {
            let worst = writes.windows(m).map(sum).fold(0.0, f64::max);
            least.min((ram + (m as f64 - 2.0) * b) / worst)
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
            ram_blocks in prop::collection::vec(0..400u64, 1..6),
        ) {
            let writes: Vec<_> = times.into_iter().map(|ns| (ns, bytes)).collect();
            let rams: Vec<u64> = ram_blocks.iter().map(|n| n * bytes).collect();
            for (ram, rate) in rams.iter().zip(rates(&writes, &rams)) {
                let expected = by_windows(&writes, *ram as f64).max(0.0) * 1e9;
                prop_assert!((rate - expected).abs() <= expected * 1e-6 + 1e-9, "{rate} for {expected}");
            }
        }

        #[test]
        fn unequal_payloads_fit_the_ram_and_not_a_thousandth_more_does(
            writes in prop::collection::vec((times(), 1..2000u64), 1..120),
            ram in 2_000..300_000u64,
        ) {
            let rate = rates(&writes, &[ram])[0] / 1e9;
            prop_assert!(ram_needed(&writes, rate) <= ram as f64 * 1.000_001);
            let average = writes.iter().map(|w| w.1 as f64).sum::<f64>()
                / writes.iter().map(|w| w.0 as f64).sum::<f64>();
            if rate * 1.001 < average {
                prop_assert!(ram_needed(&writes, rate * 1.001) > ram as f64);
            }
        }

        #[test]
        fn however_few_writes_the_first_solution_looks_at_the_answer_is_exact(
            writes in prop::collection::vec((times(), prop_oneof![9 => Just(512u64), 1 => 1..2000u64]), 2..150),
            slowest_writes in 0..20u64,
            rams in prop::collection::vec(2_000..300_000u64, 1..6),
        ) {
            let mut times = Times::default();
            writes.iter().for_each(|&(ns, bytes)| times.push(ns, bytes));
            let few = solved(&writes[..], &times, &rams, slowest_writes);
            for (rate, ram) in few.iter().zip(&rams) {
                prop_assert!(ram_needed(&writes, rate / 1e9) <= *ram as f64 * 1.000_001);
            }
            for (few, all) in few.iter().zip(rates(&writes, &rams)) {
                prop_assert!((few - all).abs() <= all * 1e-6, "{few} for {all}");
            }
        }
    }

    #[test]
    fn two_blocks_of_ram_carry_the_guaranteed_throughput() {
        // 512 B in at most 64 ms is 8 kB/s.
        let rate = rates(
            &[(1_000_000, 512), (64_000_000, 512), (1_000_000, 512)],
            &[1024],
        )[0];
        assert!((rate - 8000.0).abs() < 1e-6, "{rate}");
    }

    #[test]
    fn a_ram_below_one_payload_carries_nothing() {
        assert_eq!(rates(&[(1000, 512), (1000, 512)], &[511]), [0.0]);
        assert_eq!(rates(&[(0, 512)], &[4096]), [0.0]);
    }
}
