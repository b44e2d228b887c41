//! How often the 95 % interval of the risk contains the truth: over 1000 traces of each of several laws
//! of stalls, of which the truth is known.

use cardiograph_plan::{HEIGHTS_MAX, Tail};
use cardiograph_sim_card::{Random, Seed};
use cardiograph_timing::tail::busy_periods;

const SEEDS: u64 = 1000;
/// Stalls of a trace, and quick writes after each: enough for the backlog to go.
const STALLS: usize = 400;
const QUICK: usize = 40;
const QUICK_NS: u64 = 1_000_000;
const BLOCK_BYTES: u64 = 512;
/// A tenth of what the quick writes carry.
const RATE_BPS: f64 = 51_200.0;
/// The run whose risk is asked for is so many times as long.
const TIMES_AS_LONG: f64 = 20.0;

/// How long a stall is, in ms, that a share of the stalls exceeds.
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

/// Neither mean square nor what it does to the backlog are finite.
fn heavy(share: f64) -> f64 {
    5.0 * share.powf(-0.6)
}

/// Heavier than exponential and lighter than any power: no tail of it is quite what is fitted.
fn weibull(share: f64) -> f64 {
    20.0 * (-share.ln()).powf(1.4)
}

/// The same, lighter than exponential.
fn light(share: f64) -> f64 {
    40.0 * (-share.ln()).sqrt()
}

/// Merges of two kinds, one in ten of them twice as long, each with its spread.
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

/// RAM that a stall of so many ms fills.
fn ram_bytes(stall_ms: f64) -> u64 {
    (BLOCK_BYTES as f64 + RATE_BPS * stall_ms / 1e3).ceil() as u64
}

/// Shares of stalls at which a long run overflows in half of all cases, and in one of a hundred.
fn shares() -> [f64; 2] {
    let stalls = STALLS as f64 * TIMES_AS_LONG;
    [0.5, 0.01].map(|risk: f64| 1.0 - (1.0 - risk).powf(1.0 / stalls))
}

/// How many of the seeds had the truth below their interval, in it, above it, and how many had no fit.
#[derive(Default)]
struct Coverage {
    below: u64,
    inside: u64,
    above: u64,
    unfitted: u64,
}

impl Coverage {
    /// For each of the RAM sizes, with its true risk.
    fn over(law: Law, rams: &[(u64, f64)]) -> Vec<Coverage> {
        let mut all: Vec<Coverage> = rams.iter().map(|_| Coverage::default()).collect();
        let sizes: Vec<u64> = rams.iter().map(|ram| ram.0).collect();
        for seed in 0..SEEDS {
            let writes = trace(law, STALLS, &mut Seed::new(seed).stream("stalls"));
            let periods = busy_periods(&writes[..], RATE_BPS, HEIGHTS_MAX, &sizes);
            let tail = Tail::of(&periods);
            let found = all.iter_mut().zip(rams).zip(&periods.higher);
            for ((coverage, &(ram_bytes, truth)), &higher) in found {
                let expected = tail.expected_above(ram_bytes, higher);
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

/// At least 92 % inside, and no more than 5 % where the risk is greater than was said.
fn check(name: &str, law: Law, rams: &[(u64, f64)]) {
    for (coverage, (ram_bytes, truth)) in Coverage::over(law, rams).iter().zip(rams) {
        let Coverage {
            below,
            inside,
            above,
            unfitted,
        } = coverage;
        println!(
            "{name}, {ram_bytes} B, risk {truth:.4}: inside {inside}, said too high {below}, \
             said too low {above}, without a fit {unfitted}, of {SEEDS}"
        );
        assert!(*inside >= 920 && *above <= 50, "{name}");
    }
}

/// With a law of which the truth can be written down, and of a RAM that no stall overflows if there is one.
fn cover(name: &str, law: Law, greatest_ms: Option<f64>) {
    let stalls = STALLS as f64 * TIMES_AS_LONG;
    let mut rams: Vec<(u64, f64)> = shares()
        .map(|share| (ram_bytes(law(share)), 1.0 - (1.0 - share).powf(stalls)))
        .to_vec();
    rams.extend(greatest_ms.map(|ms| (ram_bytes(ms) + 8, 0.0)));
    check(name, law, &rams);
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
fn stalls_of_any_height_between_two() {
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

/// Stalls so long that the next one comes before their backlog is gone: the truth is what a long
/// simulation shows.
#[test]
fn heavy_stalls_that_meet() {
    let mut random = Seed::new(u64::MAX).stream("truth");
    let rams = shares().map(|share| ram_bytes(heavy(share)));
    let (mut higher, runs) = ([0; 2], 2000u32);
    for _ in 0..runs {
        let stalls = STALLS * TIMES_AS_LONG as usize;
        let writes = trace(heavy, stalls, &mut random);
        let periods = busy_periods(&writes[..], RATE_BPS, 1, &rams);
        for (sum, found) in higher.iter_mut().zip(&periods.higher) {
            *sum += u32::from(*found > 0);
        }
    }
    let truths = higher.map(|higher| higher as f64 / f64::from(runs));
    check(
        "heavy",
        heavy,
        &[(rams[0], truths[0]), (rams[1], truths[1])],
    );
}
