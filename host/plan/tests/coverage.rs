//! Coverage of the 95 % risk interval: over 1000 traces of each of several stall distributions with a known true
//! risk.

use cardiograph_plan::{PEAKS_MAX, Tail};
use cardiograph_sim_card::{Random, Seed};
use cardiograph_timing::tail::busy_periods;

/// Stalls per trace, and quick writes after each stall: enough for the backlog to drain.
const STALLS: usize = 400;
const QUICK: usize = 40;
const QUICK_NS: u64 = 1_000_000;
const BLOCK_BYTES: u64 = 512;
/// Data rate of the logger: a tenth of the throughput of the quick writes.
const RATE_BYTES_PER_S: f64 = 51_200.0;
/// Length of the predicted run as a multiple of the trace's length.
const TIMES_AS_LONG: f64 = 20.0;

/// Stall latency in ms that a given fraction of the stalls exceeds.
type Law = fn(f64) -> f64;

fn exponential(share: f64) -> f64 {
    -20.0 * share.ln()
}

fn bounded(share: f64) -> f64 {
    20.0 + 60.0 * (1.0 - share.sqrt())
}

fn uniform(share: f64) -> f64 {
    50.0 + 10.0 * (1.0 - share)
}

fn pareto(share: f64) -> f64 {
    10.0 * share.powf(-0.25)
}

/// Stall latencies with a power-law tail of infinite variance, and therefore an infinite mean backlog.
fn heavy(share: f64) -> f64 {
    5.0 * share.powf(-0.6)
}

/// Stall latencies with a tail heavier than exponential and lighter than any power law, which no fit matches
/// exactly.
fn weibull(share: f64) -> f64 {
    20.0 * (-share.ln()).powf(1.4)
}

/// Stall latencies with a tail lighter than exponential, which no fit matches exactly either.
fn light(share: f64) -> f64 {
    40.0 * (-share.ln()).sqrt()
}

/// Latencies of two kinds of merges, each with its own spread; one merge in ten is of the kind that takes
/// twice as long.
fn two_kinds(share: f64) -> f64 {
    match share < 0.1 {
        true => 60.0 + 6.0 * (1.0 - share * 10.0),
        false => 30.0 + 3.0 * (1.0 - (share - 0.1) / 0.9),
    }
}

fn trace(law: Law, stalls: usize, random: &mut Random) -> Vec<(u64, u64)> {
    let mut writes = Vec::with_capacity(stalls * (QUICK + 1));
    for _ in 0..stalls {
        let share = ((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        writes.push(((law(share) * 1e6) as u64, BLOCK_BYTES));
        writes.extend([(QUICK_NS, BLOCK_BYTES); QUICK]);
    }
    writes
}

/// Buffer that a stall of the given latency fills.
fn buffer_bytes(stall_ms: f64) -> u64 {
    (BLOCK_BYTES as f64 + RATE_BYTES_PER_S * stall_ms / 1e3).ceil() as u64
}

/// Fractions of stalls that may exceed the buffer if half of all long runs, or one in a hundred, are to
/// overflow.
fn shares() -> [f64; 2] {
    let stalls = STALLS as f64 * TIMES_AS_LONG;
    [0.5, 0.01].map(|risk: f64| 1.0 - (1.0 - risk).powf(1.0 / stalls))
}

/// Number of seeds for which the true risk is below, inside and above the interval, and of seeds without a
/// fit.
#[derive(Default)]
struct Coverage {
    below: u64,
    inside: u64,
    above: u64,
    unfitted: u64,
}

impl Coverage {
    /// Counts the seeds for each buffer size; each size comes with its true risk.
    fn over(law: Law, buffers: &[(u64, f64)], seeds: u64) -> Vec<Coverage> {
        let mut all: Vec<Coverage> = buffers.iter().map(|_| Coverage::default()).collect();
        let sizes: Vec<u64> = buffers.iter().map(|buffer| buffer.0).collect();
        for seed in 0..seeds {
            let writes = trace(law, STALLS, &mut Seed::new(seed).stream("stalls"));
            let periods = busy_periods(&writes[..], RATE_BYTES_PER_S, PEAKS_MAX, &sizes);
            let tail = Tail::of(&periods);
            let found = all.iter_mut().zip(buffers).zip(&periods.exceeding);
            for ((coverage, &(buffer_bytes, truth)), &exceeding) in found {
                let expected = tail.expected_above(buffer_bytes, exceeding);
                let risk = expected.at_least_one(TIMES_AS_LONG);
                coverage.unfitted += u64::from(!tail.is_fitted());
                match truth {
                    truth if truth < risk.low => coverage.below += 1,
                    truth if truth > risk.high => coverage.above += 1,
                    _ => coverage.inside += 1,
                }
            }
        }
        all
    }
}

/// Asserts that of 1000 seeds, the true risk is inside the interval for at least 92 %, and above it for at most 5 %. With
/// fewer seeds, chance moves these shares from the expected 95 % and 2.5 % with the square root of their number.
fn check(name: &str, law: Law, buffers: &[(u64, f64)]) {
    let seeds = cardiograph_effort::COVERAGE_SEEDS.now();
    let chance = f64::sqrt(1000.0 / seeds as f64);
    let inside_min = seeds as f64 * (0.95 - 0.03 * chance);
    let above_max = seeds as f64 * (0.025 + 0.025 * chance);
    for (coverage, (buffer_bytes, truth)) in Coverage::over(law, buffers, seeds).iter().zip(buffers)
    {
        let Coverage {
            below,
            inside,
            above,
            unfitted,
        } = coverage;
        println!(
            "{name}, {buffer_bytes} B, risk {truth:.4}: inside {inside}, too high {below}, too low \
             {above}, without a fit {unfitted}, of {seeds}"
        );
        assert!(
            *inside as f64 >= inside_min && *above as f64 <= above_max,
            "{name}"
        );
    }
}

/// Checks a distribution whose true risk is known exactly; if it has a greatest value, also checks a buffer
/// that no stall overflows.
fn cover(name: &str, law: Law, greatest_ms: Option<f64>) {
    let stalls = STALLS as f64 * TIMES_AS_LONG;
    let mut buffers: Vec<(u64, f64)> = shares()
        .map(|share| (buffer_bytes(law(share)), 1.0 - (1.0 - share).powf(stalls)))
        .to_vec();
    buffers.extend(greatest_ms.map(|ms| (buffer_bytes(ms) + 8, 0.0)));
    check(name, law, &buffers);
}

#[test]
fn exponential_stalls() {
    cover("exponential", exponential, None);
}

#[test]
fn bounded_stalls() {
    cover("bounded", bounded, Some(80.0));
}

#[test]
fn uniformly_distributed_stalls() {
    cover("uniform", uniform, Some(60.0));
}

#[test]
fn stalls_of_two_kinds() {
    cover("two kinds", two_kinds, Some(66.0));
}

#[test]
fn weibull_stalls() {
    cover("Weibull", weibull, None);
    cover("light", light, None);
}

#[test]
fn pareto_stalls() {
    cover("Pareto", pareto, None);
}

/// Stalls so long that the next one arrives before the backlog has drained; the true risk comes from a long
/// simulation.
#[test]
fn heavy_stalls_that_overlap() {
    let mut random = Seed::new(u64::MAX).stream("truth");
    let sizes = shares().map(|share| buffer_bytes(heavy(share)));
    let (mut exceeding, runs) = ([0; 2], 2000u32);
    for _ in 0..runs {
        let stalls = STALLS * TIMES_AS_LONG as usize;
        let writes = trace(heavy, stalls, &mut random);
        let periods = busy_periods(&writes[..], RATE_BYTES_PER_S, 1, &sizes);
        for (sum, found) in exceeding.iter_mut().zip(&periods.exceeding) {
            *sum += u32::from(*found > 0);
        }
    }
    let truths = exceeding.map(|exceeding| exceeding as f64 / f64::from(runs));
    check(
        "heavy",
        heavy,
        &[(sizes[0], truths[0]), (sizes[1], truths[1])],
    );
}
