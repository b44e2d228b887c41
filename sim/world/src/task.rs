//! Tasks, and the queue of ready tasks.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

pub(crate) type Name = Cow<'static, str>;
pub(crate) type TaskFuture = Pin<Box<dyn Future<Output = ()>>>;

/// A task's slot with a unique number: a waker that outlives its task does not wake the next task in the
/// same slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskId {
    slot: usize,
    serial: u64,
}

/// Tasks to poll, in the order in which they were woken.
///
/// The queue is behind a lock because a [`Waker`] must be `Send`; in a world, the queue never leaves its
/// thread.
#[derive(Default)]
struct Ready(Mutex<VecDeque<TaskId>>);

impl Ready {
    fn queue(&self) -> MutexGuard<'_, VecDeque<TaskId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Wakeup {
    id: TaskId,
    /// True if the task is in the queue already: a task that is woken twice is polled once.
    queued: AtomicBool,
    ready: Arc<Ready>,
}

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            self.ready.queue().push_back(self.id);
        }
    }
}

/// Part of a task that is taken out of its slot while the task is polled.
pub(crate) struct Body {
    /// Future of the task; `None` for a `block_on`, whose future stays with the caller.
    pub(crate) future: Option<TaskFuture>,
    pub(crate) waker: Waker,
    wakeup: Arc<Wakeup>,
}

struct Entry {
    serial: u64,
    name: Name,
    /// Body of the task; `None` while the task is polled.
    body: Option<Body>,
    /// Number of polls of the task at the time `instant_ns`.
    polls: u32,
    instant_ns: u64,
}

/// All tasks of a world.
#[derive(Default)]
pub(crate) struct Tasks {
    slots: Vec<Option<Entry>>,
    free: Vec<usize>,
    ready: Arc<Ready>,
    spawned: u64,
}

impl Tasks {
    /// Adds a task at the end of the queue.
    pub(crate) fn add(&mut self, name: Name, future: Option<TaskFuture>) -> TaskId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let id = TaskId {
            slot,
            serial: self.spawned,
        };
        self.spawned += 1;
        let wakeup = Arc::new(Wakeup {
            id,
            queued: AtomicBool::new(true),
            ready: Arc::clone(&self.ready),
        });
        self.ready.queue().push_back(id);
        self.slots[slot] = Some(Entry {
            serial: id.serial,
            name,
            body: Some(Body {
                future,
                waker: Waker::from(Arc::clone(&wakeup)),
                wakeup,
            }),
            polls: 0,
            instant_ns: 0,
        });
        id
    }

    /// Removes tasks from the front of the queue up to the first one that still exists; returns this task.
    pub(crate) fn next(&mut self) -> Option<TaskId> {
        let mut queue = self.ready.queue();
        while let Some(id) = queue.pop_front() {
            let entry = self.slots.get(id.slot).and_then(Option::as_ref);
            if entry.is_some_and(|entry| entry.serial == id.serial) {
                return Some(id);
            }
        }
        None
    }

    /// Returns true if a task was woken and has not been polled since.
    pub(crate) fn is_any_ready(&self) -> bool {
        !self.ready.queue().is_empty()
    }

    /// Takes a task out of its slot to poll it; from now on the task can be woken again.
    pub(crate) fn take(&mut self, id: TaskId, now_ns: u64) -> Option<Body> {
        let entry = self.slots[id.slot].as_mut()?;
        if entry.instant_ns != now_ns {
            (entry.instant_ns, entry.polls) = (now_ns, 0);
        }
        entry.polls += 1;
        let body = entry.body.take()?;
        body.wakeup.queued.store(false, Ordering::Release);
        Some(body)
    }

    /// Puts back a task that has not completed.
    pub(crate) fn put_back(&mut self, id: TaskId, body: Body) {
        if let Some(entry) = &mut self.slots[id.slot] {
            entry.body = Some(body);
        }
    }

    /// Removes a task. Its future must have been dropped, or be dropped by the caller.
    pub(crate) fn remove(&mut self, id: TaskId) {
        self.slots[id.slot] = None;
        self.free.push(id.slot);
    }

    /// Takes all futures, in the order in which they were spawned.
    pub(crate) fn take_all(&mut self) -> Vec<Body> {
        let mut entries: Vec<Entry> = self.slots.iter_mut().filter_map(Option::take).collect();
        entries.sort_by_key(|entry| entry.serial);
        entries.into_iter().filter_map(|entry| entry.body).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.len() == self.free.len()
    }

    /// Returns the names of all tasks in the order of spawning.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut entries: Vec<&Entry> = self.slots.iter().flatten().collect();
        entries.sort_by_key(|entry| entry.serial);
        let names = entries.iter().map(|entry| entry.name.to_string());
        names.collect()
    }

    /// Returns the name of the task with the most polls at the time `now_ns`.
    pub(crate) fn busiest(&self, now_ns: u64) -> Option<String> {
        let now = |entry: &&Entry| entry.instant_ns == now_ns;
        let entries = self.slots.iter().flatten().filter(now);
        let busiest = entries.max_by_key(|entry| (entry.polls, std::cmp::Reverse(entry.serial)));
        busiest.map(|entry| entry.name.to_string())
    }
}
