//! Time, from the caller.

use crate::limits::SLOW_MS;
use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::task::Poll;

/// A source of time.
#[expect(
    async_fn_in_trait,
    reason = "connections share one thread, so that futures need not be Send"
)]
pub trait Timer {
    /// Returns the time since a fixed moment, in ms. It never decreases.
    fn now_ms(&self) -> u64;

    /// Returns the time since a fixed moment, in us, if the clock is fine enough to time single writes. `POST /bench` needs
    /// it.
    fn now_us(&self) -> Option<u64> {
        None
    }

    /// Returns the period in which a client must take 10 KiB of a response, in ms: the longest time that a client with
    /// large buffers may seem to take nothing.
    fn patience_ms(&self) -> u32 {
        SLOW_MS
    }

    /// Waits.
    async fn sleep_ms(&self, ms: u32);
}

/// Polls a future for at most `ms`; returns `None` if the time ran out.
pub(crate) async fn within<F: Future, T: Timer>(
    timer: &T,
    ms: u32,
    mut future: Pin<&mut F>,
) -> Option<F::Output> {
    let mut sleep = pin!(timer.sleep_ms(ms));
    poll_fn(|context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        sleep.as_mut().poll(context).map(|()| None)
    })
    .await
}
