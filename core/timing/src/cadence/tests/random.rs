//! Random recordings, and a reference that tries every period.

use super::{Random, of_times};
use crate::cadence::{Known, Missing};
use alloc::vec;
use alloc::vec::Vec;

/// Number of random recordings.
const RECORDINGS: u64 = 160;

/// A recording and the number of samples it lacks.
struct Case {
    times_ns: Vec<u64>,
    lost: u64,
    /// True if period and clock should suffice for a count.
    is_easy: bool,
    known: Known,
    text: alloc::string::String,
}

fn lose(kept: &mut [bool], random: &mut Random) {
    let inner = kept.len() as u64 - 2;
    match random.below(6) {
        0 => kept[1 + random.below(inner) as usize] = false,
        1 => {
            let one_in = [200, 33, 10][random.below(3) as usize];
            let end = kept.len() - 1;
            kept[1..end]
                .iter_mut()
                .for_each(|kept| *kept = random.below(one_in) > 0);
        }
        2 | 3 => {
            for _ in 0..=random.below(4) {
                let (at, length) = (1 + random.below(inner), 1 + random.below(inner / 10));
                let to = (at + length).min(inner + 1);
                kept[at as usize..to as usize].fill(false);
            }
        }
        4 => {
            let quarter = kept.len() / 4;
            kept[quarter..3 * quarter].fill(false);
        }
        _ => {}
    }
}

fn case(random: &mut Random) -> Case {
    let tick_ns = [1e3, 1e6, 1e7, 1e9, 1e9 / 32_768.0][random.below(5) as usize];
    let ticks = match random.below(4) {
        0 => 1.02 + random.share(),
        1 => 2.0 + random.share() * 18.0,
        2 => 20.0 + random.share() * 2000.0,
        _ => (1 + random.below(50)) as f64,
    };
    // The clock may be 100 ppm off.
    let period_ns = ticks * tick_ns * [1.0, 1.0 + 1e-4, 1.0 - 1e-4][random.below(3) as usize];
    let jitter = [0.0, 0.0, 0.01, 0.05, 0.1, 0.3][random.below(6) as usize];
    let is_even = 1.0 / ticks + 2.0 * jitter <= 0.9;
    let jitter = if is_even { jitter } else { 0.0 };
    let count = [20, 60, 200, 600, 2000][random.below(5) as usize];
    let mut kept = vec![true; count];
    lose(&mut kept, random);
    let phase_ns = (1.0 + random.share()) * period_ns;
    let mut times_ns: Vec<u64> = Vec::new();
    for index in (0..count).filter(|&index| kept[index]) {
        let off = (2.0 * random.share() - 1.0) * jitter;
        let ns = phase_ns + (index as f64 + off) * period_ns;
        let ns = (((ns / tick_ns + 1e-9) as u64) as f64 * tick_ns) as u64;
        times_ns.push(ns.max(times_ns.last().copied().unwrap_or(0)));
        if random.below(400) == 0 {
            times_ns.push(times_ns[times_ns.len() - 1]);
        }
    }
    Case {
        text: alloc::format!("{tick_ns} {ticks} {jitter} {count}"),
        times_ns,
        lost: kept.iter().filter(|&&kept| !kept).count() as u64,
        is_easy: ticks >= 4.0 && jitter <= 0.05 && count >= 200,
        known: Known {
            period_ns: None,
            written_ns: (random.below(2) == 0).then_some(tick_ns as u64),
        },
    }
}

#[test]
fn a_stated_count_is_right_and_a_range_contains_it() {
    let mut random = Random(1);
    let (mut easy, mut stated) = (0, 0);
    for number in 0..RECORDINGS {
        let case = case(&mut random);
        let found = of_times(&case.times_ns, &case.known).missing;
        let lost = case.lost;
        match found {
            Missing::Exactly(count) => assert_eq!(count, lost, "recording {number} {}", case.text),
            Missing::Between(least, most) => {
                assert!(
                    (least..=most).contains(&lost),
                    "recording {number}: {found:?} for {lost} {}",
                    case.text
                );
            }
            Missing::RoomFor(_) => {}
        }
        easy += u64::from(case.is_easy);
        stated += u64::from(case.is_easy && matches!(found, Missing::Exactly(_)));
    }
    assert!(easy > 20 && stated * 10 >= easy * 8, "{stated} of {easy}");
}

/// Returns the numbers of missing samples for all periods, from the tick up, of which every sample is on a point of its
/// own, within one tick.
fn by_all_periods(times_ns: &[u64], tick_ns: u64) -> Vec<u64> {
    const PARTS: u64 = 4000;
    // Of the tick: the periods that fit are closer together than those tried.
    const SLACK: f64 = 0.15;
    let end_ns = times_ns[times_ns.len() - 1] - times_ns[0];
    let longest = end_ns as f64 / (times_ns.len() - 2) as f64;
    let mut counts = Vec::new();
    for part in 0..=PARTS {
        let period = tick_ns as f64 + (longest - tick_ns as f64) * part as f64 / PARTS as f64;
        // The clock drops up to one tick of the first sample's time.
        for late in 0..20 {
            let from = times_ns[0] as f64 + f64::from(late) / 20.0 * tick_ns as f64;
            // The point of each sample is the last one before it.
            let index =
                |ns: u64| ((ns as f64 + tick_ns as f64 * (1.0 + SLACK) - from) / period) as u64;
            let is_near =
                |ns: u64| from + index(ns) as f64 * period >= ns as f64 - SLACK * tick_ns as f64;
            let is_apart = times_ns
                .windows(2)
                .all(|pair| index(pair[0]) < index(pair[1]));
            if is_apart && times_ns.iter().all(|&ns| is_near(ns)) {
                let last = index(times_ns[times_ns.len() - 1]);
                counts.push(last + 1 - times_ns.len() as u64);
            }
        }
    }
    counts.sort_unstable();
    counts.dedup();
    counts
}

#[test]
fn a_stated_count_is_that_of_a_period_that_fits() {
    const TICK_NS: u64 = 1_000_000;
    let mut random = Random(5);
    let mut stated = 0;
    for number in 0..60 {
        let period_ns = (1.1 + random.share() * 6.0) * TICK_NS as f64;
        let count = 30 + random.below(40);
        let lost_from = 5 + random.below(count - 10);
        let lost = random.below(4);
        let indices = (0..count).filter(|index| !(lost_from..lost_from + lost).contains(index));
        let phase_ns = random.share() * period_ns;
        let time =
            |index| ((index as f64 * period_ns + phase_ns) / TICK_NS as f64) as u64 * TICK_NS;
        let times_ns: Vec<u64> = indices.map(time).collect();
        let known = Known {
            written_ns: Some(TICK_NS),
            ..Known::default()
        };
        if let Missing::Exactly(count) = of_times(&times_ns, &known).missing {
            let all = by_all_periods(&times_ns, TICK_NS);
            assert!(
                all.contains(&count),
                "recording {number}: {count} is not in {all:?}"
            );
            assert_eq!(count, lost, "recording {number}");
            stated += 1;
        }
    }
    assert!(stated >= 30, "{stated}");
}
