//! A profile from a measured trace.
//!
//! What a trace shows of a card is how long writes take, how high stalls are and how far apart. The host in
//! front of it is not known, so that it is kept simple: it gathers payload in blocks of 512 bytes, writes
//! each when it is full, and takes the same time for every write besides. A host that opens and closes the
//! file for each write brings the block under way and the file's directory entry to the card every time.
//! Which of the two it was is found out by trying both.

use crate::search;
use cardiograph_sim_card::{Controller, Profile, Seed};
use cardiograph_timing::{Latencies, Stalls, buckets_below, default_threshold_ns};
use cardiograph_workload::Operation;

const BUCKETS: usize = buckets_below(64);
const BLOCK_BYTES: u64 = 512;

/// Writes of a trace that are looked at: enough for hundreds of stalls.
pub const WRITES_MAX: usize = 50_000;

/// Shares of the write times that are compared, in ppm.
const SHARES_PPM: [u32; 6] = [100_000, 500_000, 900_000, 990_000, 999_000, 1_000_000];

/// Blocks that one trial writes at most: some 200 MB.
const BLOCKS_MAX: u64 = 400_000;

/// Where the file lies on the card, and its directory entry, in blocks: a unit of its own each. The
/// smallest card has twice as many; a longer file begins again at the first.
const FILE_BLOCK: u64 = 65_536;
const DIRECTORY_BLOCK: u64 = 32_768;

/// What stood between the writes and the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// A file that is kept open.
    KeepsOpen,
    /// A file that is opened and closed for each write.
    OpensAndCloses,
}

/// A profile, and the host it was found with.
pub struct Fit {
    /// The card.
    pub profile: Profile,
    /// The host.
    pub host: Host,
    /// What the host takes for each write besides the card, in ns.
    pub host_ns: u64,
    /// Sum of the squared logarithms of how far each figure is off; 0 is perfect.
    pub loss: f64,
    /// The same writes on this card.
    pub refit: Vec<Operation>,
}

/// What is compared of a trace, as natural logarithms.
struct Figures {
    shares: [f64; SHARES_PPM.len()],
    threshold_ns: u64,
    height: Option<f64>,
    spacing: Option<f64>,
}

impl Figures {
    fn of(writes: &[Operation], threshold_ns: Option<u64>) -> Figures {
        let mut times = Latencies::<BUCKETS>::default();
        for write in writes {
            times.push(write.duration_ns(), write.length_bytes);
        }
        let ln = |ns: u64| (ns.max(1) as f64).ln();
        let share = |ppm| ln(times.percentile_ns(ppm).unwrap_or_default());
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
            shares: SHARES_PPM.map(share),
            threshold_ns,
            height: peaks.median_latency_ns().map(ln),
            spacing: peaks.median_spacing_bytes().map(ln),
        }
    }

    /// Sum of squared differences; stalls count as much as all the rest.
    fn distance(&self, other: &Figures) -> f64 {
        let squared = |a: f64, b: f64| (a - b).powi(2);
        let pairs = self.shares.iter().zip(&other.shares);
        let shares: f64 = pairs.map(|(a, b)| squared(*a, *b)).sum();
        let stalls =
            [(self.height, other.height), (self.spacing, other.spacing)].map(|pair| match pair {
                (Some(a), Some(b)) => squared(a, b),
                (None, None) => 0.0,
                // Stalls where there should be none, or none where there should be some.
                _ => 4.0,
            });
        shares + 3.0 * stalls.iter().sum::<f64>()
    }
}

/// Finds the profile that comes closest to these writes, in so many trials.
///
/// `start` has what cannot be seen: capacity, kind of cells, endurance, power. Nothing is found if there
/// are no writes, or the first alone is over 200 MB.
pub fn fit(writes: &[Operation], start: &Profile, trials: u32) -> Option<Fit> {
    let writes = within_bounds(writes);
    if writes.is_empty() {
        return None;
    }
    let seen = Figures::of(writes, None);
    let fits = [Host::KeepsOpen, Host::OpensAndCloses].map(|host| {
        let mut random = Seed::new(1).stream("fit");
        let loss = |profile: &Profile| {
            let (refit, _) = replay(writes, profile, host, seen.shares[1]);
            seen.distance(&Figures::of(&refit, Some(seen.threshold_ns)))
        };
        let (profile, loss) = search::minimise(start, trials / 2, &mut random, loss);
        let (refit, host_ns) = replay(writes, &profile, host, seen.shares[1]);
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

/// The first of these writes, as many as a trial can bear.
fn within_bounds(writes: &[Operation]) -> &[Operation] {
    let mut blocks = 0u64;
    let bearable = writes.iter().take(WRITES_MAX).take_while(|write| {
        blocks = blocks.saturating_add(write.length_bytes / BLOCK_BYTES + 1);
        blocks <= BLOCKS_MAX
    });
    &writes[..bearable.count()]
}

/// The same writes, with the same pauses between them, on a card; and what the host takes for each, such
/// that the median comes out as it was.
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
