//! A card and its FAT library, shared by the tasks of a world.
//!
//! The library blocks: a call advances the card's clock. Here, the calling task then sleeps in the world for
//! the same time, with the card locked, so that other tasks continue during the call.

use cardiograph_sim_card::Clock;
use cardiograph_sim_world::{Handle, Stuck, World};
use cardiograph_workload::{self as workload, Flush, Store};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// A store whose calls take turns.
pub(super) struct SharedCard<S> {
    handle: Handle,
    store: RefCell<S>,
    card_clock: Clock,
    lock: Lock,
}

impl<S: Store> SharedCard<S> {
    /// Wraps a store that advances `card_clock`.
    pub(super) fn new(handle: &Handle, store: S, card_clock: Clock) -> SharedCard<S> {
        SharedCard {
            handle: handle.clone(),
            store: RefCell::new(store),
            card_clock,
            lock: Lock::default(),
        }
    }

    pub(super) fn into_store(self) -> S {
        self.store.into_inner()
    }

    /// Makes a library call. Calls run in the order in which they began to wait.
    ///
    /// The future must be polled until it completes; it may be dropped only together with its world.
    pub(super) async fn call<T>(&self, act: impl FnOnce(&mut S) -> T) -> T {
        self.lock.take().await;
        self.card_clock.advance_to_ns(self.handle.now_ns());
        let result = act(&mut self.store.borrow_mut());
        self.handle.sleep_until_ns(self.card_clock.now_ns()).await;
        self.lock.release();
        result
    }
}

/// A lock that waiting tasks get in the order in which they asked for it.
#[derive(Default)]
struct Lock {
    /// Ticket number of the task that holds the lock, or will take it next.
    serving: Cell<u64>,
    next_ticket: Cell<u64>,
    /// Wakers of the waiting tasks, by ticket.
    waiting: RefCell<VecDeque<(u64, Waker)>>,
}

impl Lock {
    async fn take(&self) {
        let ticket = self.next_ticket.get();
        self.next_ticket.set(ticket + 1);
        poll_fn(|context| {
            if self.serving.get() == ticket {
                return Poll::Ready(());
            }
            let mut waiting = self.waiting.borrow_mut();
            waiting.retain(|(other, _)| *other != ticket);
            waiting.push_back((ticket, context.waker().clone()));
            Poll::Pending
        })
        .await;
    }

    fn release(&self) {
        self.serving.set(self.serving.get() + 1);
        let next = self
            .waiting
            .borrow()
            .iter()
            .find_map(|(ticket, waker)| (*ticket == self.serving.get()).then(|| waker.clone()));
        if let Some(waker) = next {
            waker.wake();
        }
    }
}

/// The shared card as the store of a workload, which runs the world while it waits.
pub(super) struct WriterStore<'a, S> {
    card: &'a SharedCard<S>,
    world: &'a RefCell<World>,
}

/// The world's time, as the clock of the workload.
pub(super) struct WorldClock<'a>(&'a RefCell<World>);

/// Error of the store, or of the world.
#[derive(Debug)]
pub(super) enum WriterError<E> {
    Store(E),
    Stuck(Stuck),
}

impl<E: fmt::Display> fmt::Display for WriterError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriterError::Store(error) => error.fmt(f),
            WriterError::Stuck(stuck) => stuck.fmt(f),
        }
    }
}

impl<'a, S: Store> WriterStore<'a, S> {
    pub(super) fn new(card: &'a SharedCard<S>, world: &'a RefCell<World>) -> WriterStore<'a, S> {
        WriterStore { card, world }
    }

    fn call<T>(
        &self,
        act: impl FnOnce(&mut S) -> Result<T, S::Error>,
    ) -> Result<T, WriterError<S::Error>> {
        let mut world = self.world.borrow_mut();
        let result = world.block_on(self.card.call(act));
        result
            .map_err(WriterError::Stuck)?
            .map_err(WriterError::Store)
    }
}

impl<'a> WorldClock<'a> {
    pub(super) fn new(world: &'a RefCell<World>) -> WorldClock<'a> {
        WorldClock(world)
    }
}

impl workload::Clock for WorldClock<'_> {
    fn now_ns(&mut self) -> u64 {
        self.0.borrow().now_ns()
    }

    fn pause_ns(&mut self, ns: u64) {
        let mut world = self.0.borrow_mut();
        let until_ns = world.now_ns() + ns;
        // An error is not lost: if the world is stuck, the next call of the store reports it.
        let _ = world.run_until(until_ns);
    }
}

impl<S: Store> Store for WriterStore<'_, S> {
    type File = S::File;
    type Error = WriterError<S::Error>;

    fn has_long_names(&self) -> bool {
        self.card.store.borrow().has_long_names()
    }

    fn mkdir(&mut self, path: &str) -> Result<bool, Self::Error> {
        self.call(|store| store.mkdir(path))
    }

    fn create(&mut self, path: &str) -> Result<S::File, Self::Error> {
        self.call(|store| store.create(path))
    }

    fn append(&mut self, path: &str) -> Result<S::File, Self::Error> {
        self.call(|store| store.append(path))
    }

    fn open(&mut self, path: &str, writable: bool) -> Result<S::File, Self::Error> {
        self.call(|store| store.open(path, writable))
    }

    fn write(
        &mut self,
        file: &mut S::File,
        offset_bytes: u64,
        data: &[u8],
    ) -> Result<(), Self::Error> {
        self.call(|store| store.write(file, offset_bytes, data))
    }

    fn read(
        &mut self,
        file: &mut S::File,
        offset_bytes: u64,
        buffer: &mut [u8],
    ) -> Result<usize, Self::Error> {
        self.call(|store| store.read(file, offset_bytes, buffer))
    }

    fn flush(&mut self, file: &mut S::File, how: Flush) -> Result<(), Self::Error> {
        self.call(|store| store.flush(file, how))
    }

    fn close(&mut self, file: S::File) -> Result<(), Self::Error> {
        self.call(|store| store.close(file))
    }

    fn remove(&mut self, path: &str) -> Result<(), Self::Error> {
        self.call(|store| store.remove(path))
    }
}
