//! Moving-block bootstrap of percentiles (Künsch 1989).
//!
//! Consecutive latencies depend on each other: stalls recur at a typical spacing. Resampling individual writes would
//! ignore this, so the bootstrap draws whole blocks, which are longer than the spacing of the stalls, and computes the
//! percentile of every resampled trace.
//!
//! Blocks start at multiples of a sixteenth of their length (a cell). For every cell, the counts since the start of the
//! trace are stored, so the counts of a block are the difference of two of them. The cost of a resampled trace
//! therefore depends on the number of its blocks, not of its writes.

use super::dependence::dependent_writes;
use cardiograph_sim_card::{Random, Seed};

/// Number of resampled traces.
pub const REPLICATES: usize = 2000;
/// Seed of the bootstrap: the same traces always have the same intervals.
pub const SEED: u64 = 1;

/// Minimum and maximum number of blocks in a trace. Fewer give no useful interval; more cost time and gain nothing.
const BLOCKS_MIN: f64 = 5.0;
const BLOCKS_MAX: f64 = 400.0;
/// Cells in a block.
const CELLS: usize = 16;
/// Number of values on each side of a percentile that separate the bins of latencies. Their distances in rank grow
/// geometrically, so that a narrow interval is resolved as well as a wide one.
const EDGES: usize = 256;

/// Minimum length of a block, in stretches of writes that depend on each other.
const STRETCHES_PER_BLOCK: u64 = 4;

/// 97.5 % quantile of the normal distribution.
const NORMAL: f64 = 1.959_964;

/// A percentile of a trace, and of its resampled traces.
#[derive(Clone, Debug)]
pub struct Resampled {
    /// The percentile of the trace (nearest rank), in ns.
    pub estimate_ns: u64,
    /// Number of writes in a block.
    pub block_writes: u64,
    /// Number of blocks in each resampled trace.
    pub blocks: f64,
    replicates_ns: Vec<u64>,
}

/// Latencies of a trace, and the same in ascending order.
#[derive(Clone, Debug)]
pub struct Sorted<'a> {
    latencies_ns: &'a [u64],
    sorted_ns: Vec<u64>,
}

impl<'a> Sorted<'a> {
    /// Sorts the latencies, which are in the order of the writes. There must be at least one.
    pub fn new(latencies_ns: &'a [u64]) -> Sorted<'a> {
        let mut sorted_ns = latencies_ns.to_vec();
        sorted_ns.sort_unstable();
        Sorted {
            latencies_ns,
            sorted_ns,
        }
    }

    /// Returns the number of writes.
    pub fn writes(&self) -> u64 {
        self.latencies_ns.len() as u64
    }

    /// Returns a percentile (nearest rank), in millionths.
    pub fn percentile_ns(&self, ppm: u32) -> u64 {
        self.sorted_ns[rank(self.sorted_ns.len() as u64, ppm) as usize - 1]
    }

    /// Returns the bootstrap distribution of a percentile; `stalls` is the number of stalls in the trace. Returns
    /// `None` if the trace is too short to tell how many writes depend on each other.
    pub fn resample(&self, ppm: u32, stalls: u64) -> Option<Resampled> {
        let latencies_ns = self.latencies_ns;
        let dependent = dependent_writes(latencies_ns, self.percentile_ns(ppm))?;
        let block_writes = block_writes(latencies_ns.len() as u64, stalls, dependent);
        Some(self.resample_blocks(ppm, block_writes))
    }

    fn resample_blocks(&self, ppm: u32, block_writes: u64) -> Resampled {
        let edges_ns = edges(&self.sorted_ns, ppm);
        let cell_writes = block_writes.div_ceil(CELLS as u64) as usize;
        let cells = Cells::of(self.latencies_ns, &edges_ns, cell_writes);
        let blocks = self.latencies_ns.len() as f64 / block_writes as f64;
        let mut random = Seed::new(SEED).nth(self.hash());
        let mut counts = vec![0; edges_ns.len()];
        let replicates_ns = (0..REPLICATES).map(|_| {
            cells.draw(&mut counts, blocks.ceil() as usize, &mut random);
            edges_ns[percentile_of(&counts, ppm)]
        });
        Resampled {
            estimate_ns: self.percentile_ns(ppm),
            block_writes,
            blocks,
            replicates_ns: replicates_ns.collect(),
        }
    }

    /// Returns a seed for drawing blocks, derived from the latencies: different traces need independent blocks, and a
    /// trace must have the same interval whatever it is compared with.
    fn hash(&self) -> u64 {
        self.latencies_ns.iter().fold(0, |hash: u64, ns| {
            (hash ^ ns).wrapping_mul(0x0100_0000_01b3)
        })
    }
}

/// Returns the number of writes in a block. A block spans 1.5 mean stall spacings, or more if there are many stalls, so
/// that both the length and the number of the blocks grow with the trace. It also spans several of the stretches within
/// which latencies depend on each other.
fn block_writes(writes: u64, stalls: u64, dependent_writes: u64) -> u64 {
    let (writes, stalls) = (writes as f64, stalls.max(1) as f64);
    let spacings = (stalls.sqrt() / 2.0).max(1.5);
    let length = (writes / stalls * spacings)
        .max(writes.sqrt())
        .max((STRETCHES_PER_BLOCK * dependent_writes) as f64);
    length
        .clamp(writes / BLOCKS_MAX, writes / BLOCKS_MIN)
        .ceil()
        .max(1.0) as u64
}

impl Resampled {
    /// Returns the 95 % interval in ns.
    pub fn interval_ns(&self) -> (f64, f64) {
        interval(self.replicates_ns.iter().map(|&ns| ns as f64), self.blocks)
    }

    /// Returns the 95 % interval of the ratio of this percentile to that of `base`.
    pub fn ratio_interval(&self, base: &Resampled) -> (f64, f64) {
        let pairs = self.replicates_ns.iter().zip(&base.replicates_ns);
        // A latency of 0 is below the resolution of the clock.
        let ratios = pairs.map(|(&ns, &base_ns)| ns.max(1) as f64 / base_ns.max(1) as f64);
        interval(ratios, self.blocks.min(base.blocks))
    }
}

/// Returns the expanded percentile interval (Hesterberg 2015): with few blocks, the plain 2.5 % and 97.5 % are too
/// close together, just as a normal interval is too narrow without Student's t.
fn interval(replicates: impl Iterator<Item = f64>, blocks: f64) -> (f64, f64) {
    let mut sorted: Vec<f64> = replicates.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let deviation = student(blocks - 1.0) * (blocks / (blocks - 1.0)).sqrt();
    // Phi(-x) = erfc(x / sqrt 2) / 2.
    let share = libm::erfc(deviation / std::f64::consts::SQRT_2) / 2.0;
    let outside = (share * sorted.len() as f64) as usize;
    (sorted[outside], sorted[sorted.len() - 1 - outside])
}

/// 97.5 % quantile of Student's t (Abramowitz and Stegun 26.7.5).
fn student(freedom: f64) -> f64 {
    let z = NORMAL;
    let terms = [
        (z.powi(3) + z) / 4.0,
        (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0,
        (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0,
    ];
    let series = terms.iter().zip(1..);
    z + series
        .map(|(term, power)| term / freedom.powi(power))
        .sum::<f64>()
}

/// Nearest rank of a percentile, from 1.
fn rank(count: u64, ppm: u32) -> u64 {
    let rank = (u128::from(count) * u128::from(ppm)).div_ceil(1_000_000);
    (rank as u64).max(1)
}

/// Index of the bin that holds a percentile.
fn percentile_of(counts: &[u64], ppm: u32) -> usize {
    let rank = rank(counts.iter().sum(), ppm);
    let mut seen = 0;
    let bin = counts.iter().position(|count| {
        seen += count;
        seen >= rank
    });
    bin.unwrap_or(counts.len() - 1)
}

/// Returns the upper edges of the bins in ascending order; the last one is the greatest latency.
fn edges(sorted_ns: &[u64], ppm: u32) -> Vec<u64> {
    let last = sorted_ns.len() - 1;
    let growth = libm::pow((last as f64).max(1.0), 1.0 / (EDGES - 1) as f64);
    let centre = rank(sorted_ns.len() as u64, ppm) as usize - 1;
    let mut edges_ns = vec![sorted_ns[last], sorted_ns[centre]];
    for step in 0..EDGES {
        let distance = growth.powi(step as i32).round() as usize;
        edges_ns.push(sorted_ns[centre.saturating_sub(distance)]);
        edges_ns.push(sorted_ns[(centre + distance).min(last)]);
    }
    edges_ns.sort_unstable();
    edges_ns.dedup();
    edges_ns
}

/// For each cell, the number of writes in each bin from the start of the trace up to the cell.
struct Cells {
    bins: usize,
    sums: Vec<u32>,
}

impl Cells {
    fn of(latencies_ns: &[u64], edges_ns: &[u64], cell_writes: usize) -> Cells {
        let bins = edges_ns.len();
        let mut sums = vec![0; bins];
        let mut now = vec![0; bins];
        for cell in latencies_ns.chunks(cell_writes) {
            for ns in cell {
                now[edges_ns.partition_point(|edge| edge < ns)] += 1;
            }
            sums.extend_from_slice(&now);
        }
        Cells { bins, sums }
    }

    /// Sums the counts of randomly drawn blocks.
    fn draw(&self, counts: &mut [u64], blocks: usize, random: &mut Random) {
        counts.fill(0);
        let rows = self.sums.len() / self.bins;
        let starts = rows.saturating_sub(CELLS).max(1) as u64;
        for _ in 0..blocks {
            let start = random.below(starts) as usize;
            let end = (start + CELLS).min(rows - 1);
            let (before, after) = (self.row(start), self.row(end));
            for ((count, after), before) in counts.iter_mut().zip(after).zip(before) {
                *count += u64::from(after - before);
            }
        }
    }

    fn row(&self, row: usize) -> &[u32] {
        &self.sums[row * self.bins..][..self.bins]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_quantiles_are_those_of_the_tables() {
        for (freedom, published) in [(4.0, 2.776), (6.0, 2.447), (9.0, 2.262), (29.0, 2.045)] {
            assert!((student(freedom) - published).abs() < 0.01, "{freedom}");
        }
    }

    /// Draws the same blocks write by write, and sorts.
    #[test]
    fn replicates_are_those_of_resampled_and_sorted_writes() {
        let mut random = Seed::new(3).stream("writes");
        let latencies_ns: Vec<u64> = (0..4800)
            .map(|i| match i % 60 {
                0 => 50_000 + random.below(20_000),
                _ => 1000 + random.below(300),
            })
            .collect();
        let block = 160;
        let sorted = Sorted::new(&latencies_ns);
        let found = [500_000, 990_000].map(|ppm| sorted.resample_blocks(ppm, block as u64));
        let cell = block / CELLS;
        let starts = (latencies_ns.len() / cell + 1 - CELLS) as u64;
        let mut random = Seed::new(SEED).nth(sorted.hash());
        for replicate in 0..50 {
            let mut drawn: Vec<u64> = (0..latencies_ns.len() / block)
                .flat_map(|_| {
                    let start = random.below(starts) as usize * cell;
                    latencies_ns[start..start + block].to_vec()
                })
                .collect();
            drawn.sort_unstable();
            for (resampled, share) in found.iter().zip([0.5, 0.99]) {
                let exact = drawn[(drawn.len() as f64 * share).ceil() as usize - 1] as f64;
                let near = resampled.replicates_ns[replicate] as f64;
                assert!((near / exact - 1.0).abs() < 0.02, "{near} for {exact}");
            }
        }
    }
}
