//! Timers: who wakes when.

use crate::handle::Handle;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Wakers by deadline; the same deadline by who asked first.
///
/// A tree and no heap, because most timers are time-outs that never fire: they must go when they are
/// dropped, or an empty world would wait for them.
#[derive(Default)]
pub(crate) struct Timers {
    queue: BTreeMap<(u64, u64), Waker>,
    asked: u64,
}

impl Timers {
    /// The earliest deadline, in ns.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.queue.first_key_value().map(|(key, _)| key.0)
    }

    /// Takes out the first timer with a deadline up to `now_ns`.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Option<Waker> {
        if self.next_ns()? > now_ns {
            return None;
        }
        self.queue.pop_first().map(|(_, waker)| waker)
    }

    fn add(&mut self, deadline_ns: u64, waker: Waker) -> u64 {
        let asked = self.asked;
        self.asked += 1;
        self.queue.insert((deadline_ns, asked), waker);
        asked
    }
}

/// Sleeps until a time; dropping it takes the timer back.
///
/// It gives way at least once, even where the time is past: a loop of sleeps of 0 ns can be found to
/// be one.
#[must_use = "a sleep does nothing unless awaited"]
pub struct Sleep {
    handle: Handle,
    deadline_ns: u64,
    /// Its place among timers with the same deadline, from the first poll on.
    asked: Option<u64>,
}

impl Sleep {
    pub(crate) fn new(handle: Handle, deadline_ns: u64) -> Sleep {
        Sleep {
            handle,
            deadline_ns,
            asked: None,
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let core = self.handle.core.clone();
        let mut timers = core.timers.borrow_mut();
        let Some(asked) = self.asked else {
            self.asked = Some(timers.add(self.deadline_ns, context.waker().clone()));
            return Poll::Pending;
        };
        match timers.queue.get_mut(&(self.deadline_ns, asked)) {
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
        if let Some(asked) = self.asked {
            let key = (self.deadline_ns, asked);
            let waker = self.handle.core.timers.borrow_mut().queue.remove(&key);
            drop(waker);
        }
    }
}
