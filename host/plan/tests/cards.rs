//! Plans from short runs on simulated cards, compared with many longer runs on other cards.

use cardiograph_plan::{Interval, LongStream, PEAKS_MAX, Tail};
use cardiograph_sim_card::Profile;
use cardiograph_timing::tail::busy_periods;

/// Time per block over SPI at 25 MHz, without busy time.
const BLOCK_NS: u64 = 165_440;
const RATE_BYTES_PER_S: f64 = 200_000.0;
const TIMES_AS_LONG: u64 = 4;
const LONG_RUNS: u64 = 200;
const SHORT_RUNS: u64 = 200;

fn run(profile: &Profile, seed: u64, blocks: u64) -> LongStream<'_> {
    LongStream {
        profile,
        seed,
        start: 8192,
        blocks,
        block_ns: BLOCK_NS,
        period_ns: None,
    }
}

/// Returns the peak backlog of a run on the card with this seed.
fn highest_bytes(profile: &Profile, seed: u64, blocks: u64) -> f64 {
    busy_periods(&run(profile, seed, blocks), RATE_BYTES_PER_S, 1, &[]).peaks_bytes[0]
}

fn check(name: &str, profile: &Profile, short_blocks: u64) {
    let runs = 0..LONG_RUNS;
    let mut peaks: Vec<f64> = runs
        .map(|seed| highest_bytes(profile, 1_000_000 + seed, short_blocks * TIMES_AS_LONG))
        .collect();
    peaks.sort_unstable_by(f64::total_cmp);
    // Buffer sizes that half and a tenth of the long runs overflow.
    let sizes =
        [2, 10].map(|part| peaks[(LONG_RUNS - LONG_RUNS / part - 1) as usize].round() as u64);
    let truths = sizes.map(|buffer_bytes| {
        let over = peaks
            .iter()
            .filter(|&&bytes| bytes > buffer_bytes as f64)
            .count();
        over as f64 / LONG_RUNS as f64
    });
    let mut coverages = [Coverage::default(), Coverage::default()];
    let mut unfitted = 0;
    for seed in 0..SHORT_RUNS {
        let short = run(profile, seed, short_blocks);
        let periods = busy_periods(&short, RATE_BYTES_PER_S, PEAKS_MAX, &sizes);
        let tail = Tail::of(&periods);
        unfitted += u64::from(!tail.is_fitted());
        for (index, coverage) in coverages.iter_mut().enumerate() {
            let expected = tail.expected_above(sizes[index], periods.exceeding[index]);
            coverage.note(truths[index], &expected.at_least_one(TIMES_AS_LONG as f64));
        }
    }
    for (index, coverage) in coverages.iter().enumerate() {
        println!(
            "{name}, {} B, risk {:.3}: {coverage:?}, without a fit {unfitted}, of {SHORT_RUNS}",
            sizes[index], truths[index]
        );
        // The true risk itself is known only to within a few percent.
        assert!(coverage.inside >= SHORT_RUNS * 90 / 100, "{name}");
        assert!(unfitted <= SHORT_RUNS / 10, "{name}");
    }
}

/// Number of intervals that contain the true risk, that are too high, and that are too low.
#[derive(Debug, Default)]
struct Coverage {
    inside: u64,
    too_high: u64,
    too_low: u64,
}

impl Coverage {
    fn note(&mut self, truth: f64, risk: &Interval) {
        match truth {
            truth if truth < risk.low => self.too_high += 1,
            truth if truth > risk.high => self.too_low += 1,
            _ => self.inside += 1,
        }
    }
}

#[test]
fn an_unmodified_profile() {
    let profile = Profile::named("toshiba-8g").unwrap();
    check("toshiba-8g", &profile, (64 << 20) / 512);
}

#[test]
fn wear_levelling_moves() {
    let mut profile = Profile::named("class10-16g").unwrap();
    // Wear levelling is frequent enough to show in a trace of this length.
    profile.controller.wear_levelling_erases = 4;
    check("class10-16g", &profile, (64 << 20) / 512);
}
