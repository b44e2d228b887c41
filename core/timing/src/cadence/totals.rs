//! Figures that a pass over all steps gives: sums, and a stretch without a long gap.

use super::scan::SAMPLES_MAX;
use crate::Replay;
use alloc::vec::Vec;

/// Sums over all steps.
pub(super) struct Totals {
    pub(super) count: u64,
    /// Number of steps of 0.
    pub(super) equal: u64,
    pub(super) elapsed_ns: u64,
    pub(super) longest_ns: u64,
    /// Greatest common divisor of the steps.
    pub(super) tick_ns: u64,
}

impl Totals {
    pub(super) fn of(steps: &(impl Replay + ?Sized)) -> Option<Totals> {
        let mut totals = Totals {
            count: 0,
            equal: 0,
            elapsed_ns: 0,
            longest_ns: 0,
            tick_ns: 0,
        };
        steps.replay(|ns, _| {
            totals.count += 1;
            totals.equal += u64::from(ns == 0);
            totals.elapsed_ns = totals.elapsed_ns.saturating_add(ns);
            totals.longest_ns = totals.longest_ns.max(ns);
            if totals.tick_ns != 1 && (totals.tick_ns == 0 || !ns.is_multiple_of(totals.tick_ns)) {
                totals.tick_ns = common_divisor(totals.tick_ns, ns);
            }
        });
        (totals.count > 0).then_some(totals)
    }
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Returns the first stretch of up to [`SAMPLES_MAX`] samples without a long gap, or the longest one; times in ns
/// after its first sample.
pub(super) fn stretch(steps: &(impl Replay + ?Sized)) -> Vec<u64> {
    const GAP_STEPS: u64 = 64;
    let (mut best, mut now) = (Vec::new(), alloc::vec![0u64]);
    let mut mean_ns = 0;
    steps.replay(|ns, _| {
        if ns == 0 || best.len() == SAMPLES_MAX {
            return;
        }
        if now.len() > 1 && ns / GAP_STEPS > mean_ns {
            if now.len() > best.len() {
                core::mem::swap(&mut best, &mut now);
            }
            now.clear();
            now.push(0);
            return;
        }
        let end_ns = now.last().copied().unwrap_or(0).saturating_add(ns);
        now.push(end_ns);
        mean_ns = end_ns / (now.len() as u64 - 1);
        if now.len() == SAMPLES_MAX {
            core::mem::swap(&mut best, &mut now);
        }
    });
    if now.len() > best.len() { now } else { best }
}
