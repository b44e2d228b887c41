//! Wakers of tasks that wait for the same event.

use core::task::{Context, Waker};

/// Number of tasks that can wait without being polled again.
const TASKS_MAX: usize = 8;

/// Wakers of tasks that wait for the same event; the event wakes all of them.
pub(crate) struct WakerQueue {
    wakers: [Option<Waker>; TASKS_MAX],
}

impl WakerQueue {
    pub(crate) const fn new() -> Self {
        WakerQueue {
            wakers: [const { None }; TASKS_MAX],
        }
    }

    /// Adds a task, unless it is already in the queue.
    pub(crate) fn push(&mut self, context: &Context) {
        let is_same = |waker: &Waker| waker.will_wake(context.waker());
        let mut places = self.wakers.iter_mut();
        match places.find(|place| place.as_ref().is_none_or(is_same)) {
            Some(place) => *place = Some(context.waker().clone()),
            // The queue is full: the task has to poll again.
            None => context.waker().wake_by_ref(),
        }
    }

    pub(crate) fn take(&mut self) -> impl Iterator<Item = Waker> + use<> {
        core::mem::take(&mut self.wakers).into_iter().flatten()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use core::sync::atomic::{AtomicU32, Ordering};
    use std::sync::Arc;
    use std::task::Wake;

    /// Counts how often it is woken.
    #[derive(Default)]
    pub(crate) struct Wakes(AtomicU32);

    impl Wakes {
        pub(crate) fn count(&self) -> u32 {
            self.0.load(Ordering::Relaxed)
        }
    }

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}
