//! A card that a workload and a download share.
//!
//! ```text
//!   workload  open ····· write ····· close ──────── pause ────────┤··· open
//!   server    ···· piece ····· piece ····· piece send piece send piece ····
//! ```
//!
//! One lock holds the card for one library call, and who waits gets it in turn. Sending needs no card. A
//! pause ends on time even where a piece is under way: the call after it waits.

use crate::download::{Download, DownloadError, Downloaded, Server};
use cardiograph_workload::{Clock, Flush, Store};
use std::cell::RefCell;

/// A store and its virtual clock, shared by a workload and a download.
pub struct SharedCard<'a, S: Store, C>(RefCell<Shared<'a, S, C>>);

/// The card as the workload sees it.
pub struct SharedStore<'a, 'b, S: Store, C>(&'b RefCell<Shared<'a, S, C>>);

/// The clock as the workload sees it.
pub struct SharedClock<'a, 'b, S: Store, C>(&'b RefCell<Shared<'a, S, C>>);

struct Shared<'a, S: Store, C> {
    store: &'a mut S,
    clock: &'a mut C,
    server: Server<S>,
    /// The workload's time, where a piece begun in its pause holds the card for longer than the pause.
    workload_ns: Option<u64>,
}

impl<'a, S: Store, C: Clock> SharedCard<'a, S, C> {
    /// Makes the file that is downloaded and begins with it at once.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn new(
        store: &'a mut S,
        clock: &'a mut C,
        download: Download,
    ) -> Result<SharedCard<'a, S, C>, S::Error> {
        let server = Server::start(store, clock, download)?;
        Ok(SharedCard(RefCell::new(Shared {
            store,
            clock,
            server,
            workload_ns: None,
        })))
    }

    /// The workload's store.
    pub fn store(&self) -> SharedStore<'a, '_, S, C> {
        SharedStore(&self.0)
    }

    /// The workload's clock.
    pub fn clock(&self) -> SharedClock<'a, '_, S, C> {
        SharedClock(&self.0)
    }

    /// Ends the download and closes its file, which stays on the card.
    ///
    /// # Errors
    /// [`DownloadError`] if a piece could not be read or was wrong, or the file cannot be closed.
    pub fn finish(self) -> Result<Downloaded, DownloadError<S::Error>> {
        let Shared {
            store,
            clock,
            server,
            ..
        } = self.0.into_inner();
        server.finish(store, clock)
    }
}

impl<S: Store, C: Clock> Shared<'_, S, C> {
    /// The workload's time.
    fn now_ns(&mut self) -> u64 {
        self.workload_ns.unwrap_or_else(|| self.clock.now_ns())
    }

    /// Advances the card's clock, unless it is past that already.
    fn advance_to(&mut self, to_ns: u64) {
        let left_ns = to_ns.saturating_sub(self.clock.now_ns());
        self.clock.pause_ns(left_ns);
    }

    /// A pause of the workload: the server reads whatever falls due in it.
    fn pause_ns(&mut self, ns: u64) {
        let end_ns = self.now_ns() + ns;
        while let Some(due_ns) = self.server.due_ns {
            let next_ns = due_ns.max(self.clock.now_ns());
            if next_ns >= end_ns {
                break;
            }
            self.advance_to(next_ns);
            self.server.read_if_due(self.store, self.clock);
        }
        self.advance_to(end_ns);
        self.workload_ns = (self.clock.now_ns() > end_ns).then_some(end_ns);
    }
}

impl<S: Store, C: Clock> SharedStore<'_, '_, S, C> {
    /// A library call of the workload, for which it waits until the server's is over.
    fn call<T>(&self, act: impl FnOnce(&mut S) -> T) -> T {
        let shared = &mut *self.0.borrow_mut();
        shared.workload_ns = None;
        shared.server.read_if_due(shared.store, shared.clock);
        act(shared.store)
    }
}

impl<S: Store, C: Clock> Store for SharedStore<'_, '_, S, C> {
    type File = S::File;
    type Error = S::Error;

    fn has_long_names(&self) -> bool {
        self.0.borrow().store.has_long_names()
    }

    fn mkdir(&mut self, path: &str) -> Result<bool, S::Error> {
        self.call(|store| store.mkdir(path))
    }

    fn create(&mut self, path: &str) -> Result<S::File, S::Error> {
        self.call(|store| store.create(path))
    }

    fn append(&mut self, path: &str) -> Result<S::File, S::Error> {
        self.call(|store| store.append(path))
    }

    fn open(&mut self, path: &str, writable: bool) -> Result<S::File, S::Error> {
        self.call(|store| store.open(path, writable))
    }

    fn write(
        &mut self,
        file: &mut S::File,
        offset_bytes: u64,
        data: &[u8],
    ) -> Result<(), S::Error> {
        self.call(|store| store.write(file, offset_bytes, data))
    }

    fn read(
        &mut self,
        file: &mut S::File,
        offset_bytes: u64,
        buffer: &mut [u8],
    ) -> Result<usize, S::Error> {
        self.call(|store| store.read(file, offset_bytes, buffer))
    }

    fn flush(&mut self, file: &mut S::File, how: Flush) -> Result<(), S::Error> {
        self.call(|store| store.flush(file, how))
    }

    fn close(&mut self, file: S::File) -> Result<(), S::Error> {
        self.call(|store| store.close(file))
    }

    fn remove(&mut self, path: &str) -> Result<(), S::Error> {
        self.call(|store| store.remove(path))
    }
}

impl<S: Store, C: Clock> Clock for SharedClock<'_, '_, S, C> {
    fn now_ns(&mut self) -> u64 {
        self.0.borrow_mut().now_ns()
    }

    fn pause_ns(&mut self, ns: u64) {
        self.0.borrow_mut().pause_ns(ns);
    }
}
