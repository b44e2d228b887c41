//! The executor: polls tasks, advances time, and reports stuck tasks.

use crate::handle::{Core, Handle};
use crate::task::{Name, TaskId};
use crate::{Clock, Seed};
use std::fmt;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

/// Number of polls without progress of time that counts as a livelock.
pub const POLLS_MAX: u32 = 1_000_000;

/// A clock, tasks and timers; runs in the calling thread.
///
/// ```text
///                 woken
///         ┌──────────────────────┐
///         v                      │            Before each poll, all due timers wake
///   ┌───────────┐  poll   ┌──────┴──────┐     their tasks. If no task is ready, the
///   │ ready     │ ──────> │ waiting     │     clock advances to the next timer; with
///   │ (a queue) │ ──┐     │ (for timer, │     no timer either, the world is idle.
///   └───────────┘   │     │ packet, ..) │
///                   v     └─────────────┘
///                completed
/// ```
///
/// A panic of a task propagates to the caller that runs the world; the world must then be dropped.
pub struct World {
    handle: Handle,
    /// Number of polls of all tasks at the time `instant_ns`.
    polls: u32,
    instant_ns: u64,
}

impl World {
    /// Creates an empty world at time 0.
    pub fn new(seed: Seed) -> World {
        World::on_clock(seed, Clock::default())
    }

    /// Creates an empty world that continues at the time of `clock`: a restart after a power cut.
    pub fn on_clock(seed: Seed, clock: Clock) -> World {
        World {
            handle: Handle::new(seed, clock),
            polls: 0,
            instant_ns: 0,
        }
    }

    /// Returns a handle for the tasks.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Returns the time since the start of the simulation, in ns.
    pub fn now_ns(&self) -> u64 {
        self.handle.now_ns()
    }

    /// Adds a task; see [`Handle::spawn`].
    pub fn spawn(&self, name: impl Into<Name>, future: impl Future<Output = ()> + 'static) {
        self.handle.spawn(name, future);
    }

    /// Runs until every task has completed. If tasks wait or tick forever by design, use
    /// [`World::block_on`] or [`World::run_until`] instead.
    ///
    /// # Errors
    /// [`Stuck`] if tasks wait for something that never happens, or run forever without time
    /// passing.
    pub fn run_until_idle(&mut self) -> Result<(), Stuck> {
        self.run_polls(u64::MAX)?;
        if self.core().tasks.borrow().is_empty() {
            Ok(())
        } else {
            Err(self.deadlock())
        }
    }

    /// Runs all tasks and timers up to and including `ns`; the clock then shows `ns`, or later if a task
    /// advanced it.
    ///
    /// # Errors
    /// [`Stuck::Livelock`].
    pub fn run_until(&mut self, ns: u64) -> Result<(), Stuck> {
        self.core().until_ns.set(ns);
        while let Some(id) = self.next(ns) {
            self.poll_task(id)?;
        }
        self.core().clock.advance_to_ns(ns);
        Ok(())
    }

    /// Polls tasks at most `polls` times; returns the number of polls. A lower number means that nothing is
    /// left to do.
    ///
    /// # Errors
    /// [`Stuck::Livelock`].
    pub fn run_polls(&mut self, polls: u64) -> Result<u64, Stuck> {
        self.core().until_ns.set(u64::MAX);
        for done in 0..polls {
            match self.next(u64::MAX) {
                Some(id) => self.poll_task(id)?,
                None => return Ok(done),
            }
        }
        Ok(polls)
    }

    /// Runs until `future` completes; other tasks may still be waiting. The future may borrow.
    ///
    /// # Errors
    /// [`Stuck`] if the future waits for something that never happens, or a task runs forever without time
    /// passing.
    pub fn block_on<F: Future>(&mut self, future: F) -> Result<F::Output, Stuck> {
        let mut future = pin!(future);
        let main = Main::new(&self.handle);
        match self.run_main(&main, future.as_mut(), u64::MAX)? {
            Poll::Ready(output) => Ok(output),
            Poll::Pending => Err(self.deadlock()),
        }
    }

    /// Prepares a future that runs piecewise, with [`World::advance`]. The future may borrow.
    pub fn start<F: Future>(&self, future: F) -> Run<F> {
        Run {
            future: Box::pin(future),
            main: Main::new(&self.handle),
        }
    }

    /// Runs all tasks, and a future, up to and including `ns`, or until the future completes. If the future has not
    /// completed, the clock then shows `ns`, or later if a task advanced it.
    ///
    /// # Errors
    /// [`Stuck::Livelock`].
    pub fn advance<F: Future>(
        &mut self,
        run: &mut Run<F>,
        ns: u64,
    ) -> Result<Poll<F::Output>, Stuck> {
        let polled = self.run_main(&run.main, run.future.as_mut(), ns)?;
        if polled.is_pending() {
            self.core().clock.advance_to_ns(ns);
        }
        Ok(polled)
    }

    fn run_main<F: Future>(
        &mut self,
        main: &Main,
        mut future: Pin<&mut F>,
        until_ns: u64,
    ) -> Result<Poll<F::Output>, Stuck> {
        self.core().until_ns.set(until_ns);
        while let Some(id) = self.next(until_ns) {
            if id != main.id {
                self.poll_task(id)?;
            } else if let Poll::Ready(output) = self.poll_main(id, future.as_mut())? {
                return Ok(Poll::Ready(output));
            }
        }
        Ok(Poll::Pending)
    }

    fn core(&self) -> &Core {
        &self.handle.core
    }

    /// Returns the task to poll next, no later than `until_ns`; advances time when no task is ready.
    fn next(&self, until_ns: u64) -> Option<TaskId> {
        let core = self.core();
        loop {
            let now_ns = core.clock.now_ns();
            if now_ns > until_ns {
                return None;
            }
            // Timers are woken outside the borrow, because a waker may run arbitrary code.
            while let Some(waker) = { core.timers.borrow_mut().take_due(now_ns) } {
                waker.wake();
            }
            if let Some(id) = core.tasks.borrow_mut().next() {
                return Some(id);
            }
            let next_ns = core.timers.borrow().next_ns()?;
            if next_ns > until_ns {
                return None;
            }
            core.clock.advance_to_ns(next_ns);
        }
    }

    fn poll_task(&mut self, id: TaskId) -> Result<(), Stuck> {
        let core = self.core();
        let taken = core.tasks.borrow_mut().take(id, self.now_ns());
        let Some(mut body) = taken else {
            return Ok(());
        };
        let mut context = Context::from_waker(&body.waker);
        let future = body.future.as_mut().map(Pin::as_mut);
        match future.map(|future| future.poll(&mut context)) {
            Some(Poll::Ready(())) => {
                // The task is dropped outside the borrow, because its destructor may spawn or wake tasks.
                drop(body);
                core.tasks.borrow_mut().remove(id);
            }
            _ => core.tasks.borrow_mut().put_back(id, body),
        }
        self.count_poll()
    }

    fn poll_main<F: Future>(
        &mut self,
        id: TaskId,
        future: Pin<&mut F>,
    ) -> Result<Poll<F::Output>, Stuck> {
        let core = self.core();
        let taken = core.tasks.borrow_mut().take(id, self.now_ns());
        let Some(body) = taken else {
            return Ok(Poll::Pending);
        };
        let polled = future.poll(&mut Context::from_waker(&body.waker));
        core.tasks.borrow_mut().put_back(id, body);
        if polled.is_pending() {
            self.count_poll()?;
        }
        Ok(polled)
    }

    fn count_poll(&mut self) -> Result<(), Stuck> {
        let now_ns = self.now_ns();
        if self.instant_ns != now_ns {
            (self.instant_ns, self.polls) = (now_ns, 0);
        }
        self.polls += 1;
        if self.polls < POLLS_MAX {
            return Ok(());
        }
        let task = self.core().tasks.borrow().busiest(now_ns);
        Err(Stuck::Livelock {
            at_ns: now_ns,
            task: task.unwrap_or_default(),
        })
    }

    fn deadlock(&self) -> Stuck {
        Stuck::Deadlock {
            at_ns: self.now_ns(),
            tasks: self.core().tasks.borrow().names(),
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.core().closed.set(true);
        let bodies = self.core().tasks.borrow_mut().take_all();
        drop(bodies);
    }
}

/// A future that runs piecewise in a world.
pub struct Run<F> {
    future: Pin<Box<F>>,
    main: Main,
}

/// The slot of a main future among the tasks; it is freed when the future is dropped.
struct Main {
    handle: Handle,
    id: TaskId,
}

impl Main {
    fn new(handle: &Handle) -> Main {
        let id = handle.core.tasks.borrow_mut().add("block_on".into(), None);
        let handle = handle.clone();
        Main { handle, id }
    }
}

impl Drop for Main {
    fn drop(&mut self) {
        self.handle.core.tasks.borrow_mut().remove(self.id);
    }
}

/// Error: a world that cannot make progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// Tasks wait, and neither a timer nor another task will wake them.
    Deadlock {
        /// Time at which the world got stuck, in ns.
        at_ns: u64,
        /// Names of the waiting tasks, in the order of spawning; the future of a `block_on` has the name
        /// `block_on`.
        tasks: Vec<String>,
    },
    /// [`POLLS_MAX`] polls did not advance time.
    Livelock {
        /// Time at which the world got stuck, in ns.
        at_ns: u64,
        /// Name of the task with the most polls at that time.
        task: String,
    },
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stuck::Deadlock { at_ns, tasks } => {
                let tasks = tasks.join("`, `");
                write!(
                    f,
                    "deadlock at {at_ns} ns: nothing will wake the tasks `{tasks}`"
                )
            }
            Stuck::Livelock { at_ns, task } => write!(
                f,
                "livelock at {at_ns} ns: task `{task}` keeps running; time did not advance in {POLLS_MAX} polls"
            ),
        }
    }
}

impl std::error::Error for Stuck {}
