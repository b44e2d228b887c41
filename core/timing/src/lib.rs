//! What write times mean.
//!
//! A card's write times come in one at a time; this crate turns them into the figures a recorder is
//! designed by. It knows no card, no file and no clock: only durations in ns and payloads in bytes.
//!
//! Two layers:
//!
//! 1. One pass, fixed memory, integers only, on any core: [`WriteTimes`] (least, greatest, mean,
//!    percentiles), [`Peaks`] (stalls above a threshold and the bytes between them), [`RateGrid`]
//!    (how much RAM each of a fixed grid of data rates needs).
//! 2. With the feature `alloc`, over a whole trace on a computer: [`frontier`] (the exact lossless
//!    rate for a given RAM), [`backlog`] (bytes waiting over time), [`tail`] (how high they rise) and
//!    [`cadence`] (the audit of a recording's time column).
//!
//! # The model behind backlog and lossless rate
//!
//! A producer makes `r` bytes a second from t = 0. Write `i` carries `b_i` bytes and takes `s_i`. It
//! starts when its bytes are there and the write before it has ended, and frees them when it ends:
//!
//! ```text
//! start_i = max(end_(i-1), (b_0 + ... + b_i) / r)      end_i = start_i + s_i
//! ```
//!
//! The RAM needed is the greatest number of bytes ever waiting, reached just before a write ends:
//! `B(r) = max_i (r*end_i - (b_0 + ... + b_(i-1)))`. In bytes this is one recursion, used everywhere
//! in this crate:
//!
//! ```text
//! x_i = max(x_(i-1) - b_(i-1), b_i) + r*s_i            B(r) = max_i x_i
//! ```
//!
//! The lossless rate for a RAM of `B` bytes is the greatest `r`, not above the average, with
//! `B(r) <= B`.
#![no_std]

#[cfg(any(feature = "alloc", test))]
extern crate alloc;

#[cfg(any(feature = "alloc", test))]
pub mod backlog;
#[cfg(any(feature = "alloc", test))]
pub mod cadence;
#[cfg(any(feature = "alloc", test))]
pub mod frontier;
mod histogram;
mod peaks;
mod rate_grid;
#[cfg(any(feature = "alloc", test))]
pub mod tail;
mod write_times;

pub use histogram::{Histogram, LinearBin, buckets_below};
pub use peaks::{Peaks, chosen_threshold_ns};
pub use rate_grid::RateGrid;
pub use write_times::WriteTimes;

/// A trace that can be played from its start as often as an analysis needs.
#[cfg(any(feature = "alloc", test))]
pub trait Replay {
    /// Hands every write to `pass`, in order, those in a row with the same payload together.
    fn replay_alike(&self, pass: &mut impl Pass);

    /// Calls `each` with the duration in ns and the payload in bytes of every write, in order.
    fn replay(&self, each: impl FnMut(u64, u64)) {
        struct Each<F>(F);
        impl<F: FnMut(u64, u64)> Pass for Each<F> {
            fn take_alike(&mut self, bytes: u64, durations_ns: impl Iterator<Item = u64>) {
                durations_ns.for_each(|ns| (self.0)(ns, bytes));
            }
        }
        self.replay_alike(&mut Each(each));
    }
}

/// What takes in a trace. With many writes at a time, it can keep its sums in registers.
#[cfg(any(feature = "alloc", test))]
pub trait Pass {
    /// Takes in writes of `bytes` each, given by their durations in ns.
    fn take_alike(&mut self, bytes: u64, durations_ns: impl Iterator<Item = u64>);
}

#[cfg(any(feature = "alloc", test))]
impl Replay for [(u64, u64)] {
    fn replay_alike(&self, pass: &mut impl Pass) {
        for alike in self.chunk_by(|a, b| a.1 == b.1) {
            pass.take_alike(alike[0].1, alike.iter().map(|write| write.0));
        }
    }
}
