//! Simulated traces whose percentiles are known, and how often the bootstrap's intervals contain them.

use cardiograph_plan::comparison::{Resampled, Sorted};
use cardiograph_sim_card::{Random, Seed};

/// A kind of trace: quick writes with stalls at a spacing.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub name: &'static str,
    pub writes: usize,
    /// Mean number of writes from stall to stall.
    pub spacing: u64,
    pub stalls: Stalls,
    pub noise: Noise,
}

/// Latencies of the quick writes.
#[derive(Clone, Copy, Debug)]
pub enum Noise {
    /// Each write has this correlation with the previous one.
    Correlated(f64),
    /// Fast and slow phases, each of random length with this mean, in writes.
    Phases(u64),
}

/// Positions of the stalls.
#[derive(Clone, Copy, Debug)]
pub enum Stalls {
    /// At the spacing, and up to an eighth of it early or late.
    Periodic,
    /// At any write with the same probability.
    Random,
}

pub const KINDS: [Kind; 9] = [
    Kind {
        name: "periodic",
        writes: 16_384,
        spacing: 64,
        stalls: Stalls::Periodic,
        noise: Noise::Correlated(0.0),
    },
    Kind {
        name: "periodic, rare",
        writes: 16_384,
        spacing: 200,
        stalls: Stalls::Periodic,
        noise: Noise::Correlated(0.0),
    },
    Kind {
        name: "random",
        writes: 16_384,
        spacing: 64,
        stalls: Stalls::Random,
        noise: Noise::Correlated(0.0),
    },
    Kind {
        name: "correlated",
        writes: 16_384,
        spacing: 64,
        stalls: Stalls::Periodic,
        noise: Noise::Correlated(0.9),
    },
    Kind {
        name: "12 stalls",
        writes: 768,
        spacing: 64,
        stalls: Stalls::Periodic,
        noise: Noise::Correlated(0.0),
    },
    Kind {
        name: "20 rare stalls",
        writes: 20_000,
        spacing: 1000,
        stalls: Stalls::Random,
        noise: Noise::Correlated(0.5),
    },
    Kind {
        name: "drifting",
        writes: 3000,
        spacing: 64,
        stalls: Stalls::Random,
        noise: Noise::Correlated(0.997),
    },
    Kind {
        name: "few phases",
        writes: 3000,
        spacing: 64,
        stalls: Stalls::Random,
        noise: Noise::Phases(200),
    },
    Kind {
        name: "many phases",
        writes: 60_000,
        spacing: 64,
        stalls: Stalls::Random,
        noise: Noise::Phases(200),
    },
];

const PERCENTILES_PPM: [u32; 2] = [500_000, 990_000];

fn uniform(random: &mut Random) -> f64 {
    ((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// A normal variable (Box and Muller).
fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * uniform(random).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(random)).cos()
}

/// Returns latencies in ns, and the number of stalls among them.
fn trace(kind: &Kind, writes: usize, random: &mut Random) -> (Vec<u64>, u64) {
    let mut noise = normal(random);
    let mut is_slow = false;
    let mut stalls = 0;
    let jitter = kind.spacing / 4;
    let next = |random: &mut Random| kind.spacing - jitter / 2 + random.below(jitter + 1);
    // Every trace begins at a random position between two stalls.
    let mut left = random.below(kind.spacing);
    let latencies = (0..writes).map(|_| {
        noise = match kind.noise {
            Noise::Correlated(correlation) => {
                correlation * noise + (1.0 - correlation * correlation).sqrt() * normal(random)
            }
            Noise::Phases(mean) => {
                is_slow ^= random.below(mean) == 0;
                f64::from(u8::from(is_slow)) * 4.0 + normal(random)
            }
        };
        let is_stall = match kind.stalls {
            Stalls::Periodic => left == 0,
            Stalls::Random => random.below(kind.spacing) == 0,
        };
        left = left.checked_sub(1).unwrap_or_else(|| next(random) - 1);
        stalls += u64::from(is_stall);
        match is_stall {
            // 20 ms plus an exponential part with a mean of 10 ms.
            true => (2e7 - 1e7 * uniform(random).ln()) as u64,
            false => (1e6 * (0.1 * noise).exp()) as u64,
        }
    });
    (latencies.collect(), stalls)
}

/// Percentiles of a trace of four million writes.
fn truth(kind: &Kind) -> [f64; 2] {
    let (mut latencies, _) = trace(kind, 4_000_000, &mut Seed::new(0).stream("truth"));
    latencies.sort_unstable();
    PERCENTILES_PPM.map(|ppm| latencies[latencies.len() / 1000 * (ppm / 1000) as usize] as f64)
}

/// Counts over all runs, for the median and the 99th percentile.
#[derive(Debug, Default)]
pub struct Coverage {
    /// Runs that have an interval.
    pub decided: [u32; 2],
    /// Runs whose interval contains the true percentile.
    pub inside: [u32; 2],
    /// Pairs of runs of the same kind that both have an interval.
    pub pairs: [u32; 2],
    /// Pairs of runs of the same kind that the interval of their ratio calls different.
    pub different: [u32; 2],
    /// Sum of the widths of the intervals, relative to the true percentile.
    pub width: [f64; 2],
}

/// Resamples two traces of a kind for each seed.
pub fn cover(kind: &Kind, seeds: std::ops::Range<u64>) -> Coverage {
    let truth = truth(kind);
    let mut coverage = Coverage::default();
    for seed in seeds {
        let [one, other] = [0, 1].map(|side| resampled(kind, seed, side));
        for figure in 0..2 {
            if let Some(one) = &one[figure] {
                let (low, high) = one.interval_ns();
                coverage.decided[figure] += 1;
                coverage.inside[figure] += u32::from((low..=high).contains(&truth[figure]));
                coverage.width[figure] += (high - low) / truth[figure];
            }
            if let (Some(one), Some(other)) = (&one[figure], &other[figure]) {
                let (low, high) = other.ratio_interval(one);
                coverage.pairs[figure] += 1;
                coverage.different[figure] += u32::from(!(low..=high).contains(&1.0));
            }
        }
    }
    coverage
}

fn resampled(kind: &Kind, seed: u64, side: u64) -> [Option<Resampled>; 2] {
    let mut random = Seed::new(seed).child("trace").nth(side);
    let (latencies_ns, stalls) = trace(kind, kind.writes, &mut random);
    PERCENTILES_PPM.map(|ppm| Sorted::new(&latencies_ns).resample(ppm, stalls))
}
