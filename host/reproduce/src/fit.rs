//! Fitting of a card profile to a measured trace.
//!
//! A trace shows the latencies of writes, and the latency and spacing of stalls. It does not show the host
//! through which the writes reach the card, so the fit uses a simple model: the host gathers payload in
//! blocks of 512 bytes, writes each block when it is full, and adds a constant time to every write. A host
//! that opens and closes the file for each write also writes the block in progress and the file's directory
//! entry every time. The fit tries both kinds of host and keeps the better one.

use crate::fitting::{self, Search};
use crate::{Known, bounds};
use cardiograph_sim_card::{Controller, Profile, Seed};
use cardiograph_timing::{Latencies, Stalls, buckets_below, default_threshold_ns};
use cardiograph_workload::Operation;

const BUCKETS: usize = buckets_below(64);
const BLOCK_BYTES: u64 = 512;

/// Largest number of writes of a trace that the fit uses: enough for hundreds of stalls.
pub const WRITES_MAX: usize = 50_000;

/// Percentiles of the latency that are compared, in ppm.
const PERCENTILES_PPM: [u32; 6] = [100_000, 500_000, 900_000, 990_000, 999_000, 1_000_000];

/// Largest number of blocks that a trial writes: about 200 MB.
const BLOCKS_MAX: u64 = 400_000;

/// First block of the file, at half the capacity of the smallest card. A file that reaches the end of the
/// card continues at this block.
const FILE_BLOCK: u64 = 65_536;
/// Block of the file's directory entry, in a different mapping unit than the file's data.
const DIRECTORY_BLOCK: u64 = 32_768;

/// Model of the host through which the writes reach the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// Keeps the file open.
    KeepsOpen,
    /// Opens and closes the file for each write.
    OpensAndCloses,
}

/// A fitted profile and the host model that it was found with.
pub struct Fit {
    /// Profile of the card.
    pub profile: Profile,
    /// Kind of host.
    pub host: Host,
    /// Time that the host adds to each write, in ns.
    pub host_ns: u64,
    /// Weighted sum of the squared logarithmic deviations of the compared figures; 0 is perfect.
    pub loss: f64,
    /// The writes of the trace, simulated on the fitted card.
    pub refit: Vec<Operation>,
}

/// Figures of a trace that are compared, as natural logarithms of ns and bytes.
struct Figures {
    percentiles: [f64; PERCENTILES_PPM.len()],
    threshold_ns: u64,
    stall_latency: Option<f64>,
    stall_spacing: Option<f64>,
}

impl Figures {
    fn of(writes: &[Operation], threshold_ns: Option<u64>) -> Figures {
        let mut times = Latencies::<BUCKETS>::default();
        for write in writes {
            times.push(write.duration_ns(), write.length_bytes);
        }
        let ln = |ns: u64| (ns.max(1) as f64).ln();
        let percentile = |ppm| ln(times.percentile_ns(ppm).unwrap_or_default());
        let chosen = || {
            let median_ns = times.percentile_ns(500_000).unwrap_or_default();
            let (mean_ns, max_ns) = (times.mean_ns(), times.max_ns());
            default_threshold_ns(
                mean_ns.unwrap_or_default(),
                median_ns,
                max_ns.unwrap_or_default(),
            )
        };
        let threshold_ns = threshold_ns.unwrap_or_else(chosen);
        let mut peaks = Stalls::<BUCKETS>::above(threshold_ns);
        for write in writes {
            peaks.push(write.duration_ns(), write.length_bytes);
        }
        peaks.finish();
        Figures {
            percentiles: PERCENTILES_PPM.map(percentile),
            threshold_ns,
            stall_latency: peaks.median_latency_ns().map(ln),
            stall_spacing: peaks.median_spacing_bytes().map(ln),
        }
    }

    /// Returns the sum of squared differences; the latency and the spacing of stalls count threefold.
    fn distance(&self, other: &Figures) -> f64 {
        let squared = |a: f64, b: f64| (a - b).powi(2);
        let pairs = self.percentiles.iter().zip(&other.percentiles);
        let percentiles: f64 = pairs.map(|(a, b)| squared(*a, *b)).sum();
        let stalls = [
            (self.stall_latency, other.stall_latency),
            (self.stall_spacing, other.stall_spacing),
        ]
        .map(|pair| match pair {
            (Some(a), Some(b)) => squared(a, b),
            (None, None) => 0.0,
            // Only one of the two traces has stalls.
            _ => 4.0,
        });
        percentiles + 3.0 * stalls.iter().sum::<f64>()
    }
}

/// Searches for the profile that best reproduces the given writes, in the given number of trials. Calls `progress` with
/// the number of finished trials.
///
/// The values that are searched have bounds from data sheets ([`bounds`](crate::bounds)). Values that a trace does not show
/// (capacity, kind of cells, endurance, power) are those of `like`; the others are those of [`fitting::template`].
/// Returns `None` if there are no writes, or if the first write alone exceeds 200 MB.
pub fn fit(
    writes: &[Operation],
    like: &Profile,
    trials: u32,
    progress: impl FnMut(u64),
) -> Option<Fit> {
    fit_known(writes, like, &Known::default(), trials, progress)
}

/// Searches as [`fit`] does, among profiles with the known values.
pub fn fit_known(
    writes: &[Operation],
    like: &Profile,
    known: &Known,
    trials: u32,
    mut progress: impl FnMut(u64),
) -> Option<Fit> {
    let with_known = |profile: &Profile| {
        let mut profile = profile.clone();
        known.apply(&mut profile);
        profile
    };
    let template = fitting::template(like);
    let bounds = bounds::of(&template);
    let search = Search {
        trials: trials / 2,
        enough: 0.0,
    };
    let writes = within_bounds(writes);
    if writes.is_empty() {
        return None;
    }
    let measured = Figures::of(writes, None);
    let mut finished = 0;
    let fits = [Host::KeepsOpen, Host::OpensAndCloses].map(|host| {
        let mut random = Seed::new(1).stream("fit");
        let loss = |profile: &Profile| {
            let profile = with_known(profile);
            if profile.check("trial").is_err() {
                return f64::INFINITY;
            }
            let (refit, _) = replay(writes, &profile, host, measured.percentiles[1]);
            finished += 1;
            progress(finished);
            measured.distance(&Figures::of(&refit, Some(measured.threshold_ns)))
        };
        let (profile, loss) = fitting::fit(&template, &bounds, search, &mut random, loss);
        let profile = with_known(&profile);
        let (refit, host_ns) = replay(writes, &profile, host, measured.percentiles[1]);
        Fit {
            profile,
            host,
            host_ns,
            loss,
            refit,
        }
    });
    fits.into_iter().min_by(|a, b| a.loss.total_cmp(&b.loss))
}

/// Returns the writes from the start of the trace that are within the limits of a trial.
fn within_bounds(writes: &[Operation]) -> &[Operation] {
    let mut blocks = 0u64;
    let within = writes.iter().take(WRITES_MAX).take_while(|write| {
        blocks = blocks.saturating_add(write.length_bytes / BLOCK_BYTES + 1);
        blocks <= BLOCKS_MAX
    });
    &writes[..within.count()]
}

/// Simulates the same writes with the same pauses on a card. Also returns the time that the host adds to each
/// write, chosen so that the median matches.
fn replay(
    writes: &[Operation],
    profile: &Profile,
    host: Host,
    ln_median_ns: f64,
) -> (Vec<Operation>, u64) {
    let mut controller = Controller::new(profile, Seed::new(1));
    let file_blocks = profile.capacity_bytes / BLOCK_BYTES - FILE_BLOCK;
    let mut card = |now_ns: u64, block: u64| {
        let busy = controller.write_by_command(now_ns, block, 1);
        busy.total_ns
    };
    let mut now_ns = 0;
    let mut last_end_ns = writes.first().map_or(0, |write| write.start_ns);
    let mut refit = Vec::with_capacity(writes.len());
    let mut position = 0;
    for write in writes {
        now_ns += write.start_ns - last_end_ns;
        last_end_ns = write.end_ns;
        let begin_ns = now_ns;
        let end = position + write.length_bytes;
        let whole = position / BLOCK_BYTES..end / BLOCK_BYTES;
        for block in whole {
            now_ns += card(now_ns, FILE_BLOCK + block % file_blocks);
        }
        if host == Host::OpensAndCloses {
            if !end.is_multiple_of(BLOCK_BYTES) {
                now_ns += card(now_ns, FILE_BLOCK + end / BLOCK_BYTES % file_blocks);
            }
            now_ns += card(now_ns, DIRECTORY_BLOCK);
        }
        position = end;
        refit.push(Operation {
            start_ns: begin_ns,
            end_ns: now_ns,
            ..*write
        });
    }
    let mut times = Latencies::<BUCKETS>::default();
    for write in &refit {
        times.push(write.duration_ns(), write.length_bytes);
    }
    let card_median_ns = times.percentile_ns(500_000).unwrap_or_default();
    let host_ns = (ln_median_ns.exp() as u64).saturating_sub(card_median_ns);
    for (number, write) in (0..).zip(&mut refit) {
        write.start_ns += number * host_ns;
        write.end_ns += (number + 1) * host_ns;
    }
    (refit, host_ns)
}
