//! Recordings whose steps are all whole multiples of the usual step.
//!
//! Such a step may be the tick of a clock that is as slow as the samples: a loop of 1.001 s shows steps of 1 s, and
//! one of 2 s in every thousand, without a loss. The double steps of such a loop are evenly spaced.

use super::totals::Totals;
use super::track::Tracked;
use super::{Known, LateStep, Missing, each_at, round};
use crate::Replay;
use alloc::vec::Vec;

/// Number of evenly spaced double steps, or more, that are no coincidence.
const EVEN_MIN: usize = 5;

/// Longest spacing to try is that between double steps, divided by up to this.
const PARTS: u64 = 8;

/// Number of double steps from which spacings are tried.
const STARTS: usize = 12;

/// Returns true if the tick is the resolution with which the times are written.
pub(super) fn is_written(tick_ns: f64, known: &Known) -> bool {
    known
        .written_ns
        .is_some_and(|ns| (tick_ns / ns as f64 - 1.0).abs() < 0.01)
}

/// Audits a recording of which most steps are the tick itself.
pub(super) fn in_whole_ticks(
    steps: &(impl Replay + ?Sized),
    totals: &Totals,
    tick_ns: f64,
    known: &Known,
) -> Option<Tracked> {
    let per_ns = 1.0 / tick_ns;
    let ticks_of = |ns: u64| round(ns as f64 * per_ns) as u64;
    let mut single = 0u64;
    steps.replay(|ns, _| single += u64::from(ticks_of(ns) == 1));
    let is_usual = single * 5 >= (totals.count - totals.equal) * 4;
    let is_stated = known
        .period_ns
        .is_none_or(|ns| (ns / tick_ns - 1.0).abs() < 0.01);
    if !is_usual || !is_stated {
        return None;
    }
    // The longest time without a gap limits the error of the period.
    let (mut since, mut longest) = (0, 1);
    let (mut before, mut caught_up, mut periods) = (1, 0, 0);
    let mut gaps = Vec::new();
    each_at(steps, |mut gap| {
        let ticks = ticks_of(gap.step_ns);
        caught_up += u64::from(ticks == 0 && before == 2);
        before = ticks;
        periods += ticks;
        if ticks > 1 {
            gap.missing = Missing::Exactly(ticks - 1);
            gaps.push(gap);
            since = 0;
        }
        since += u64::from(ticks == 1);
        longest = longest.max(since);
    });
    // Samples written late, and the next ones on time, are no sign of a period above the tick.
    let doubles = gaps.iter().filter(|gap| ticks_of(gap.step_ns) == 2).count() as u64;
    let found = match known.period_ns {
        None if caught_up < 3 || caught_up * 2 < doubles => {
            slips(&gaps, tick_ns, totals.elapsed_ns)
        }
        _ => Slips::None,
    };
    let clock = Clock {
        tick_ns,
        single,
        longest,
        equal: totals.equal,
        is_written: is_written(tick_ns, known),
    };
    Some(Tracked {
        period_ns: tick_ns,
        missing: missing(&mut gaps, found, &clock),
        gaps,
        periods,
        width_ns: 0.0,
    })
}

/// Double steps of a recording that are explained without a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slips {
    /// No even spacing explains them.
    None,
    /// Up to this number may be slips of the clock.
    Possible(u64),
    /// This number are slips of the clock.
    Even(u64),
}

/// Finds evenly spaced double steps. `gaps` are the steps longer than `tick_ns` of a recording that lasts `end_ns`.
fn slips(gaps: &[LateStep], tick_ns: f64, end_ns: u64) -> Slips {
    // Ticks without a sample, as ranges: a slip is one of them.
    let ticks_of = |ns: u64| round(ns as f64 / tick_ns) as u64;
    let absent = |gap: &LateStep| {
        let at = ticks_of(gap.at_ns);
        (at + 1, at + ticks_of(gap.step_ns))
    };
    let is_double = |gap: &&LateStep| ticks_of(gap.step_ns) == 2;
    let doubles = || gaps.iter().filter(is_double).map(|gap| absent(gap).0);
    let end = ticks_of(end_ns);
    let count = doubles().count();
    if count == 0 {
        return Slips::None;
    }
    let mut best = 0;
    for from in doubles().take(STARTS) {
        for to in doubles().filter(|&to| to > from).take(STARTS) {
            for parts in 1..=PARTS {
                let spacing = Spacing { from, to, parts };
                if let Some(hits) = spacing.hits(gaps.iter().map(absent), end) {
                    best = best.max(hits);
                }
            }
        }
    }
    if best >= EVEN_MIN && best * 5 >= count * 4 {
        return Slips::Even(best as u64);
    }
    // Few slips fit any loop whose error adds up to one tick over the rest of the recording.
    if count <= 3 || best >= 3 {
        return Slips::Possible(count as u64);
    }
    Slips::None
}

/// Evenly spaced slips of which two are at `from` and `to`, `parts` spacings apart.
struct Spacing {
    from: u64,
    to: u64,
    parts: u64,
}

impl Spacing {
    /// Returns the number of slips if all of them are in ticks without a sample.
    fn hits(&self, absent: impl Iterator<Item = (u64, u64)> + Clone, end: u64) -> Option<usize> {
        let mut spacing = (
            (self.to - self.from - 1) as f64 / self.parts as f64,
            (self.to - self.from + 1) as f64 / self.parts as f64,
        );
        if spacing.0 < 2.0 {
            return None;
        }
        // A slip before the first one would be at a tick with a sample.
        if self.from as f64 > spacing.1 + 1.0 {
            return None;
        }
        let mut absent = absent.skip_while(|range| range.1 <= self.from).peekable();
        for index in 1u64.. {
            let n = index as f64;
            let at = (
                self.from as f64 + n * spacing.0,
                self.from as f64 + 1.0 + n * spacing.1,
            );
            if at.1 >= end as f64 {
                return Some(index as usize);
            }
            while absent.next_if(|range| range.1 as f64 <= at.0).is_some() {}
            let &(first, after) = absent.peek().filter(|range| (range.0 as f64) < at.1)?;
            let from = self.from as f64;
            spacing.0 = spacing.0.max((first as f64 - from - 1.0) / n);
            spacing.1 = spacing.1.min((after as f64 - from) / n);
            if spacing.0 > spacing.1 {
                return None;
            }
        }
        None
    }
}

/// Steps of a recording in ticks.
struct Clock {
    tick_ns: f64,
    /// Number of steps of one tick.
    single: u64,
    /// Longest number of such steps in a row, which limits the error of the period.
    longest: u64,
    /// Number of steps of 0, which may be samples of a period below the tick.
    equal: u64,
    /// True if the times are written with no more digits than the tick has.
    is_written: bool,
}

/// Returns the number of missing samples at about one sample per tick, and sets that of the gaps.
fn missing(gaps: &mut [LateStep], slips: Slips, clock: &Clock) -> Missing {
    let ticks_of = |gap: &LateStep| round(gap.step_ns as f64 / clock.tick_ns) as u64;
    let doubles = gaps.iter().filter(|gap| ticks_of(gap) == 2).count() as u64;
    // One slip in hundreds of ticks that are much coarser than the digits would be a coincidence.
    let may_slip = clock.is_written || doubles * 64 > clock.single;
    let (least_slips, most_slips) = match slips {
        Slips::None => (0, 0),
        Slips::Possible(_) if !may_slip => (0, 0),
        Slips::Even(slips) if clock.is_written => (slips, slips),
        Slips::Possible(slips) | Slips::Even(slips) => (0, slips),
    };
    let per_tick: u64 = gaps.iter().map(|gap| ticks_of(gap) - 1).sum();
    let (mut less, mut more) = (0, 0);
    for gap in gaps {
        let ticks = ticks_of(gap);
        if ticks == 2 {
            gap.missing = Missing::between(u64::from(most_slips == 0), u64::from(least_slips == 0));
            continue;
        }
        let shorter = (ticks * clock.equal + clock.single / 2) / clock.single.max(1);
        let unknown = ticks / (2 * clock.longest.max(1));
        // A loop that slips has fewer samples in the gap.
        let slipped = match most_slips {
            0 => 0,
            _ => 1 + ticks * (doubles + 1) / (clock.single + doubles).max(1),
        };
        let low = (ticks - 1).saturating_sub(unknown + slipped);
        gap.missing = Missing::between(low, ticks - 1 + unknown + shorter);
        less += ticks - 1 - low;
        more += unknown + shorter;
    }
    // Slips within long gaps are among `less`.
    let least = per_tick.saturating_sub(less + most_slips.min(doubles));
    let most = per_tick + more - least_slips.min(doubles);
    Missing::between(least.min(most), most)
}
