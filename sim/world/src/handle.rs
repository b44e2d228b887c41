//! Access of a task to its world.

use crate::task::{Name, Tasks};
use crate::timer::{Sleep, Timers};
use crate::{Clock, Seed};
use embedded_hal_async::delay::DelayNs;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

/// State shared by the world and its handles.
pub(crate) struct Core {
    pub(crate) clock: Clock,
    pub(crate) seed: Seed,
    pub(crate) tasks: RefCell<Tasks>,
    pub(crate) timers: RefCell<Timers>,
    /// Time up to which the world is being run.
    pub(crate) until_ns: Cell<u64>,
    /// True once the world has been dropped; it then accepts no more tasks.
    pub(crate) closed: Cell<bool>,
}

/// A handle to a world for its tasks; clones are equivalent.
///
/// A handle may outlive its world: time then stands still, and spawned tasks are dropped.
#[derive(Clone)]
pub struct Handle {
    pub(crate) core: Rc<Core>,
}

impl Handle {
    pub(crate) fn new(seed: Seed, clock: Clock) -> Handle {
        let core = Core {
            clock,
            seed,
            tasks: RefCell::default(),
            timers: RefCell::default(),
            until_ns: Cell::new(u64::MAX),
            closed: Cell::new(false),
        };
        Handle {
            core: Rc::new(core),
        }
    }

    /// Returns the world's clock.
    pub fn clock(&self) -> &Clock {
        &self.core.clock
    }

    /// Returns the world's seed.
    pub fn seed(&self) -> Seed {
        self.core.seed
    }

    /// Returns the time since the start of the simulation, in ns.
    pub fn now_ns(&self) -> u64 {
        self.core.clock.now_ns()
    }

    /// Adds a task, which runs after all tasks that are ready. [`Stuck`](crate::Stuck) reports contain its
    /// name.
    pub fn spawn(&self, name: impl Into<Name>, future: impl Future<Output = ()> + 'static) {
        if !self.core.closed.get() {
            let future = Box::pin(future);
            let mut tasks = self.core.tasks.borrow_mut();
            tasks.add(name.into(), Some(future));
        }
    }

    /// Sleeps for `ns`, counted from this call.
    pub fn sleep_ns(&self, ns: u64) -> Sleep {
        self.sleep_until_ns(self.now_ns().saturating_add(ns))
    }

    /// Sleeps until the clock shows `ns`.
    pub fn sleep_until_ns(&self, ns: u64) -> Sleep {
        Sleep::new(self.clone(), ns)
    }

    /// Advances the clock by `ns` at once and returns true, if nothing else is due within that time and the world is
    /// being run for at least that long. Otherwise returns false, and the caller has to sleep. The effect is that of a
    /// sleep, at a lower cost.
    pub fn skip_ns(&self, ns: u64) -> bool {
        let until_ns = self.now_ns().saturating_add(ns);
        let next_ns = self.core.timers.borrow().next_ns();
        let is_free = ns > 0
            && until_ns <= self.core.until_ns.get()
            && next_ns.is_none_or(|next_ns| next_ns > until_ns)
            && !self.core.tasks.borrow().is_any_ready();
        if is_free {
            self.core.clock.advance_to_ns(until_ns);
        }
        is_free
    }

    /// Lets every other ready task run, without advancing time.
    pub async fn yield_now(&self) {
        let mut yielded = false;
        poll_fn(|context| {
            if yielded {
                return Poll::Ready(());
            }
            yielded = true;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Waits for a future for at most `ns`, counted from this call; then drops the future.
    ///
    /// At the deadline, the future is polled once more before it is dropped.
    ///
    /// # Errors
    /// [`TimedOut`] if the future did not complete in time.
    pub fn with_timeout<F: Future>(
        &self,
        ns: u64,
        future: F,
    ) -> impl Future<Output = Result<F::Output, TimedOut>> + use<F> {
        let mut sleep = self.sleep_ns(ns);
        async move {
            let mut future = pin!(future);
            poll_fn(|context| {
                if let Poll::Ready(output) = future.as_mut().poll(context) {
                    return Poll::Ready(Ok(output));
                }
                Pin::new(&mut sleep).poll(context).map(|()| Err(TimedOut))
            })
            .await
        }
    }
}

/// A future did not complete in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedOut;

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("timed out")
    }
}

impl std::error::Error for TimedOut {}

/// Lets drivers written for devices sleep in virtual time.
impl DelayNs for Handle {
    async fn delay_ns(&mut self, ns: u32) {
        self.sleep_ns(ns.into()).await;
    }

    async fn delay_us(&mut self, us: u32) {
        self.sleep_ns(u64::from(us) * 1_000).await;
    }

    async fn delay_ms(&mut self, ms: u32) {
        self.sleep_ns(u64::from(ms) * 1_000_000).await;
    }
}
