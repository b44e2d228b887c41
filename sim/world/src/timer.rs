//! Timers: wakers ordered by deadline.

use crate::handle::Handle;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Wakers by deadline; wakers with equal deadlines are in the order of registration.
///
/// A tree instead of a heap, because most timers are timeouts that never fire: a timer must be removed when
/// it is dropped, or an otherwise empty world would wait for it.
#[derive(Default)]
pub(crate) struct Timers {
    queue: BTreeMap<(u64, u64), Waker>,
    registration: u64,
}

impl Timers {
    /// Returns the earliest deadline, in ns.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.queue.first_key_value().map(|(key, _)| key.0)
    }

    /// Removes and returns the first timer with a deadline up to `now_ns`.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Option<Waker> {
        if self.next_ns()? > now_ns {
            return None;
        }
        self.queue.pop_first().map(|(_, waker)| waker)
    }

    fn add(&mut self, deadline_ns: u64, waker: Waker) -> u64 {
        let registration = self.registration;
        self.registration += 1;
        self.queue.insert((deadline_ns, registration), waker);
        registration
    }
}

/// Sleeps until a deadline. Dropping the future removes the timer.
///
/// The future yields at least once, even if the deadline has passed, so that a loop of sleeps of 0 ns can be
/// detected as a livelock.
#[must_use = "a sleep does nothing unless awaited"]
pub struct Sleep {
    handle: Handle,
    deadline_ns: u64,
    /// Position of the timer among timers with the same deadline; set by the first poll.
    registration: Option<u64>,
}

impl Sleep {
    pub(crate) fn new(handle: Handle, deadline_ns: u64) -> Sleep {
        Sleep {
            handle,
            deadline_ns,
            registration: None,
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let core = self.handle.core.clone();
        let mut timers = core.timers.borrow_mut();
        let Some(registration) = self.registration else {
            self.registration = Some(timers.add(self.deadline_ns, context.waker().clone()));
            return Poll::Pending;
        };
        match timers.queue.get_mut(&(self.deadline_ns, registration)) {
            None => Poll::Ready(()),
            Some(waker) => {
                waker.clone_from(context.waker());
                Poll::Pending
            }
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(registration) = self.registration {
            let key = (self.deadline_ns, registration);
            let waker = self.handle.core.timers.borrow_mut().queue.remove(&key);
            drop(waker);
        }
    }
}
