//! Lets virtual time follow the clock of this computer.

use cardiograph_sim_device::{DeviceFuture, Ended};
use cardiograph_sim_world::{Run, Stuck, World};
use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

/// Interval at which the device runs if no client wakes it earlier.
const TICK: Duration = Duration::from_millis(1);
/// Maximum virtual time between two checks of the sockets.
const SLICE_NS: u64 = 10_000_000;
/// If the computer is slower than the device by more than this, virtual time falls behind.
const LAG_NS_MAX: u64 = 500_000_000;
/// Maximum virtual time that is skipped.
const SKIPPED_NS_MAX: u64 = 60_000_000_000;

/// A device that runs in real time.
pub struct Pace<'w, 'b> {
    world: &'w mut World,
    run: Run<DeviceFuture<'b, 1>>,
    /// Virtual time at `since`, in ns.
    origin_ns: u64,
    since: Instant,
    /// The result, once the device has ended.
    end: Option<Result<Ended<1>, Stuck>>,
}

impl<'w, 'b> Pace<'w, 'b> {
    pub fn new(world: &'w mut World, device: DeviceFuture<'b, 1>) -> Self {
        Pace {
            run: world.start(device),
            origin_ns: world.now_ns(),
            since: Instant::now(),
            world,
            end: None,
        }
    }

    /// Runs the device as fast as possible until a condition holds, it ends, or a minute of its time has passed.
    pub fn skip_until(&mut self, is_reached: impl Fn() -> bool) {
        let end_ns = self.world.now_ns() + SKIPPED_NS_MAX;
        while !is_reached() && self.end.is_none() && self.world.now_ns() < end_ns {
            self.advance_to(self.world.now_ns() + SLICE_NS);
        }
        (self.origin_ns, self.since) = (self.world.now_ns(), Instant::now());
    }

    /// Runs the device until it ends, or loses its power.
    pub async fn run(&mut self, has_power: impl Fn() -> bool) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        poll_fn(|context| {
            while ticks.poll_tick(context).is_ready() {}
            if !has_power() {
                return Poll::Ready(());
            }
            let is_current = self.advance();
            if self.end.is_some() {
                return Poll::Ready(());
            }
            if !is_current {
                context.waker().wake_by_ref();
            }
            Poll::Pending
        })
        .await;
    }

    /// Runs a slice; returns true if virtual time has reached the clock of this computer.
    fn advance(&mut self) -> bool {
        let now_ns = self.world.now_ns();
        let elapsed_ns = u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let target_ns = self.origin_ns.saturating_add(elapsed_ns);
        if target_ns > now_ns.saturating_add(LAG_NS_MAX) {
            (self.origin_ns, self.since) = (now_ns, Instant::now());
            return false;
        }
        let until_ns = target_ns.min(now_ns.saturating_add(SLICE_NS));
        self.advance_to(until_ns);
        until_ns == target_ns
    }

    fn advance_to(&mut self, ns: u64) {
        match self.world.advance(&mut self.run, ns) {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(end)) => self.end = Some(Ok(end)),
            Err(stuck) => self.end = Some(Err(stuck)),
        }
    }

    /// Returns true if the device has ended.
    pub fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Returns the result of the device; a device that is still running is switched off.
    pub fn end(self) -> Result<Ended<1>, Stuck> {
        self.end.unwrap_or(Ok(None))
    }
}
