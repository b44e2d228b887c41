//! Analysis of write latencies.
//!
//! The latencies of a card arrive one at a time; this crate turns them into the figures from which a recorder is
//! designed. It knows nothing about cards, files or clocks: only durations in ns and payloads in bytes.
//!
//! Two layers:
//!
//! 1. One pass, fixed memory, integers only, on any core: [`Latencies`] (minimum, maximum, mean, percentiles),
//!    [`Stalls`] (stalls above a threshold and the bytes between them).
//! 2. With the feature `alloc`, over a whole trace on the host: [`sustained`] (the exact sustained rate for a
//!    given buffer size), [`backlog`] (buffer fill level over time), [`tail`] (peak backlogs) and [`cadence`]
//!    (sampling audit of a recording's time column).
//!
//! # Model of backlog and sustained rate
//!
//! A producer generates `r` bytes per second from t = 0. Write `i` carries `b_i` bytes and takes `s_i`. It
//! starts once its bytes are complete and the write before it has ended, and frees them when it ends:
//!
//! ```text
//! start_i = max(end_(i-1), (b_0 + ... + b_i) / r)      end_i = start_i + s_i
//! ```
//!
//! The buffer needed is the maximum number of bytes waiting, reached just before a write ends:
//! `B(r) = max_i (r*end_i - (b_0 + ... + b_(i-1)))`. In bytes this is a single recursion, used throughout this
//! crate:
//!
//! ```text
//! x_i = max(x_(i-1) - b_(i-1), b_i) + r*s_i            B(r) = max_i x_i
//! ```
//!
//! The sustained rate of a buffer of `B` bytes is the greatest `r`, not above the mean throughput, with
//! `B(r) <= B`.
#![no_std]

#[cfg(any(feature = "alloc", test))]
extern crate alloc;

#[cfg(any(feature = "alloc", test))]
pub mod backlog;
#[cfg(any(feature = "alloc", test))]
pub mod cadence;
mod histogram;
mod latencies;
mod stalls;
#[cfg(any(feature = "alloc", test))]
pub mod sustained;
#[cfg(any(feature = "alloc", test))]
pub mod tail;

pub use histogram::{Histogram, LinearBin, buckets_below};
pub use latencies::Latencies;
pub use stalls::{Stalls, default_threshold_ns};

/// A trace that can be replayed from its start as often as an analysis needs.
#[cfg(any(feature = "alloc", test))]
pub trait Replay {
    /// Passes every write to `pass`, in order; consecutive writes of equal payload form one run.
    fn replay_run(&self, pass: &mut impl Pass);

    /// Calls `each` with the duration in ns and the payload in bytes of every write, in order.
    fn replay(&self, each: impl FnMut(u64, u64)) {
        struct Each<F>(F);
        impl<F: FnMut(u64, u64)> Pass for Each<F> {
            fn take_run(&mut self, bytes: u64, durations_ns: impl Iterator<Item = u64>) {
                durations_ns.for_each(|ns| (self.0)(ns, bytes));
            }
        }
        self.replay_run(&mut Each(each));
    }
}

/// One pass over a trace. It takes whole runs of equal writes, so that its sums can stay in registers.
#[cfg(any(feature = "alloc", test))]
pub trait Pass {
    /// Takes a run of consecutive writes of `bytes` each, given as latencies in ns.
    fn take_run(&mut self, bytes: u64, durations_ns: impl Iterator<Item = u64>);

    /// Takes `count` consecutive writes of `bytes` and `ns` each; overridden where equal writes can be taken in one
    /// step.
    fn take_equal(&mut self, bytes: u64, ns: u64, count: u64) {
        self.take_run(bytes, (0..count).map(|_| ns));
    }
}

#[cfg(any(feature = "alloc", test))]
impl Replay for [(u64, u64)] {
    fn replay_run(&self, pass: &mut impl Pass) {
        for alike in self.chunk_by(|a, b| a.1 == b.1) {
            pass.take_run(alike[0].1, alike.iter().map(|write| write.0));
        }
    }
}
