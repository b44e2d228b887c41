//! Plan for a simulated card, which adds what a trace cannot provide: energy and wear.

use crate::figures::{Ensemble, Plan, Wear};
use crate::long::LongStream;
use crate::plan::{Logger, Longer, Source, plan_with, sizes};
use crate::risk::PEAKS_MAX;
use crate::stream::{BLOCK_BYTES, StreamError, stream};
use cardiograph_sim_card::{Board, Profile};
use cardiograph_timing::tail::busy_periods;
use cardiograph_timing::{Pass, Replay};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

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

/// Longest time between two calls of `watch`.
const WATCH_INTERVAL: Duration = Duration::from_millis(50);

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
    let watch = &mut |_| ControlFlow::Continue(());
    plan_simulated_with_progress(target, (profile, board), logger, watch)
}

/// Plans like [`plan_simulated`]. Calls `watch` with the number of planned members, on the calling thread and at least
/// every 50 ms where there are threads; if it returns `Break`, the plan stops.
///
/// # Errors
/// [`StreamError`]; [`StreamError::Stopped`] after `Break`.
pub fn plan_simulated_with_progress(
    target: &str,
    (profile, board): (&Profile, &Board),
    logger: &Logger,
    watch: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Plan, StreamError> {
    let members = profile.members(target).map_err(StreamError::Members)?;
    let is_stopped = AtomicBool::new(false);
    let plan = |member: &Profile| plan_until(target, (member, board), logger, &is_stopped);
    let plans = each(&members, plan, &mut |planned| {
        if watch(planned).is_break() {
            is_stopped.store(true, Ordering::Relaxed);
        }
    });
    let plans = plans.into_iter().collect::<Result<Vec<_>, _>>()?;
    let ensemble = Ensemble::of(&plans);
    let mut plan = plans.into_iter().next().ok_or(StreamError::TooSmall)?;
    plan.ensemble = ensemble;
    plan.full_after_s = Some(profile.capacity_bytes as f64 / plan.rate_bytes_per_s);
    plan.warnings.extend(crate::warnings::of_card(&plan));
    Ok(plan)
}

/// Computes a value for each member, on all cores, or one after the other in a browser, which has no threads. Calls
/// `watch` with the number of values.
fn each<T: Send>(
    members: &[Profile],
    of: impl Fn(&Profile) -> T + Sync,
    watch: &mut dyn FnMut(usize),
) -> Vec<T> {
    if cfg!(target_family = "wasm") {
        let values = members.iter().enumerate();
        let values = values.map(|(done, member)| {
            watch(done);
            of(member)
        });
        return values.collect();
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let of = &of;
    let (sender, computed) = mpsc::channel();
    std::thread::scope(|scope| {
        let share = |first: usize| {
            let members = members.iter().skip(first).step_by(threads);
            let sender = sender.clone();
            scope.spawn(move || {
                let values = members.map(of);
                let values = values.inspect(|_| {
                    // The receiver outlives the threads.
                    let _ = sender.send(());
                });
                values.collect::<Vec<T>>()
            })
        };
        let shares: Vec<_> = (0..threads).map(share).collect();
        drop(sender);
        let mut done = 0;
        loop {
            watch(done);
            match computed.recv_timeout(WATCH_INTERVAL) {
                Ok(()) => done += 1,
                Err(RecvTimeoutError::Timeout) => (),
                // All threads have ended.
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
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
    plan_until(target, (profile, board), logger, &AtomicBool::new(false))
}

fn plan_until(
    target: &str,
    (profile, board): (&Profile, &Board),
    logger: &Logger,
    is_stopped: &AtomicBool,
) -> Result<Plan, StreamError> {
    let go_on = || match is_stopped.load(Ordering::Relaxed) {
        true => Err(StreamError::Stopped),
        false => Ok(()),
    };
    go_on()?;
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
    go_on()?;
    let mut plan = planned(None)?;
    for bytes in LONGER_BYTES {
        if plan.is_sustained() && plan.tail.is_none() {
            let longer = longer(&long, logger, bytes, is_stopped);
            go_on()?;
            plan = planned(Some(longer))?;
            go_on()?;
        }
    }
    if plan.is_sustained() {
        add_energy_and_wear(&mut plan, &long);
    }
    Ok(plan)
}

fn longer(long: &LongStream, logger: &Logger, bytes: u64, is_stopped: &AtomicBool) -> Longer {
    let longer = Stoppable {
        stream: LongStream {
            blocks: bytes / BLOCK_BYTES,
            ..*long
        },
        is_stopped,
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

/// A stream whose replay ends early once it is stopped.
struct Stoppable<'a> {
    stream: LongStream<'a>,
    is_stopped: &'a AtomicBool,
}

impl Replay for Stoppable<'_> {
    fn replay_run(&self, pass: &mut impl Pass) {
        self.stream
            .replay_while(pass, || !self.is_stopped.load(Ordering::Relaxed));
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
