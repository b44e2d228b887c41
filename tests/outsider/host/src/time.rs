//! Virtual time, which passes only while every task waits.

use embedded_hal_async::delay::DelayNs;
use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;

thread_local! {
    static NOW_NS: Cell<u64> = const { Cell::new(0) };
}

pub fn now_us() -> u64 {
    NOW_NS.get() / 1000
}

/// Lets time pass.
pub fn advance_us(us: u64) {
    NOW_NS.set(NOW_NS.get() + us * 1000);
}

/// Waits until virtual time has passed.
pub struct Delay;

impl DelayNs for Delay {
    async fn delay_ns(&mut self, ns: u32) {
        let end = NOW_NS.get() + u64::from(ns);
        poll_fn(|_| match NOW_NS.get() >= end {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }
}
