//! Plan for a simulated card, which adds what a trace cannot provide: energy and wear.

use crate::figures::{Ensemble, Plan, Wear};
use crate::long::LongStream;
use crate::plan::{Logger, Longer, Source, plan_with, sizes};
use crate::risk::PEAKS_MAX;
use crate::stream::{BLOCK_BYTES, StreamError, stream};
use cardiograph_sim_card::{Board, Profile};
use cardiograph_timing::tail::busy_periods;

/// Payload written over the simulated bus, to measure the time that bus and driver take per block.
const WIRE_BYTES: u64 = 4 << 20;
/// Payload written to measure sustained rates and stalls: takes 70 MB of the host's memory.
const BYTES: u64 = 4 << 30;
/// Payloads of further, longer runs, tried in turn until a distribution fits the longest stalls:
/// wear-levelling moves are rare.
const LONGER_BYTES: [u64; 2] = [16 << 30, 64 << 30];
/// Limits of the stream written at the logger's rate to measure energy and wear: payload in bytes, and
/// duration in ns.
const PACED_BYTES_MAX: u64 = 256 << 20;
const PACED_NS_MAX: f64 = 1e18;

/// Seed of the card.
const SEED: u64 = 1;

const DAY_S: f64 = 86_400.0;
const DAYS_PER_YEAR: f64 = 365.25;

/// Plans a logger for a card on a board; `target` is the name of this combination.
///
/// The plan of an ensemble is that of its first member, with median and range over all of them.
///
/// # Errors
/// [`StreamError`] if the recorder's driver cannot write to the card.
pub fn plan_simulated(
    target: &str,
    (profile, board): (&Profile, &Board),
    logger: &Logger,
) -> Result<Plan, StreamError> {
    let members = profile.members(target).map_err(StreamError::Members)?;
    let plans = each(&members, |member| {
        plan_member(target, (member, board), logger)
    });
    let plans = plans.into_iter().collect::<Result<Vec<_>, _>>()?;
    let ensemble = Ensemble::of(&plans);
    let mut plan = plans.into_iter().next().ok_or(StreamError::TooSmall)?;
    plan.ensemble = ensemble;
    Ok(plan)
}

/// Computes a value for each member, on all cores, or one after the other in a browser, which has no threads.
fn each<T: Send>(members: &[Profile], of: impl Fn(&Profile) -> T + Sync) -> Vec<T> {
    if cfg!(target_family = "wasm") {
        return members.iter().map(of).collect();
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let of = &of;
    std::thread::scope(|scope| {
        let share = |first: usize| {
            let members = members.iter().skip(first).step_by(threads);
            scope.spawn(move || members.map(of).collect::<Vec<T>>())
        };
        let shares: Vec<_> = (0..threads).map(share).collect();
        let shares = shares.into_iter().map(|share| match share.join() {
            Ok(values) => values.into_iter(),
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let mut shares: Vec<_> = shares.collect();
        let order = (0..members.len()).map(|member| member % threads);
        order.filter_map(|thread| shares[thread].next()).collect()
    })
}

/// Plans a logger like [`plan_simulated`], with the values of the profile itself, the first member of an ensemble.
///
/// # Errors
/// [`StreamError`] if the recorder's driver cannot write to the card.
pub fn plan_member(
    target: &str,
    (profile, board): (&Profile, &Board),
    logger: &Logger,
) -> Result<Plan, StreamError> {
    let streamed = stream((profile, board), SEED, WIRE_BYTES)?;
    let times_ns = streamed.trace.operations();
    let mut times_ns: Vec<u64> = times_ns
        .map(|block| block.end_ns - block.start_ns)
        .collect();
    // The card is not busy before most blocks, so the median contains no busy time.
    let middle = times_ns.len() / 2;
    let (_, &mut block_ns, _) = times_ns.select_nth_unstable(middle);
    let long = LongStream {
        profile,
        seed: SEED,
        start: streamed.start,
        blocks: BYTES / BLOCK_BYTES,
        block_ns,
        period_ns: None,
    };
    let mut trace = long.trace();
    trace.about.target = target.to_string();
    let planned = |longer| {
        let plan = plan_with(&trace, Source::Stream, logger, longer);
        plan.map_err(|_| StreamError::TooSmall)
    };
    let mut plan = planned(None)?;
    for bytes in LONGER_BYTES {
        if plan.is_sustained() && plan.tail.is_none() {
            plan = planned(Some(longer(&long, logger, bytes)))?;
        }
    }
    if plan.is_sustained() {
        add_energy_and_wear(&mut plan, &long);
    }
    Ok(plan)
}

fn longer(long: &LongStream, logger: &Logger, bytes: u64) -> Longer {
    let longer = LongStream {
        blocks: bytes / BLOCK_BYTES,
        ..*long
    };
    Longer {
        periods: busy_periods(
            &longer,
            logger.rate_bytes_per_s(),
            PEAKS_MAX,
            &sizes(logger),
        ),
        bytes,
    }
}

fn add_energy_and_wear(plan: &mut Plan, long: &LongStream) {
    let period_ns = BLOCK_BYTES as f64 * 1e9 / plan.rate_bytes_per_s;
    let paced = LongStream {
        blocks: (PACED_BYTES_MAX / BLOCK_BYTES).min((PACED_NS_MAX / period_ns) as u64),
        period_ns: Some(period_ns),
        ..*long
    };
    let consumed = paced.consumption();
    let days = consumed.elapsed_ns as f64 / 1e9 / DAY_S;
    plan.energy_j_per_day = Some(consumed.energy_pj as f64 / 1e12 / days);
    let flash = &long.profile.flash;
    let cycles_left = flash.endurance_cycles.saturating_sub(flash.cycles_used);
    let erases_left = f64::from(cycles_left) * long.profile.blocks() as f64;
    let erases_per_day = consumed.erases as f64 / days;
    plan.wear = (erases_per_day > 0.0).then(|| Wear {
        erases_per_day,
        lifetime_years: erases_left / erases_per_day / DAYS_PER_YEAR,
    });
}
