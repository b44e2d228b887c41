//! A card shared by a workload and a download.
//!
//! ```text
//!   workload  open ····· write ····· close ──────── pause ────────┤··· open
//!   server    ···· piece ····· piece ····· piece send piece send piece ····
//! ```
//!
//! A library call locks the card; workload and server take turns when both are waiting. Sending does not
//! need the card. A pause of the workload ends on time even if the server is reading; the call after the
//! pause waits.

use crate::download::{Download, DownloadError, Downloaded, Server};
use cardiograph_workload::{Clock, Flush, Store};
use std::cell::RefCell;

/// A store and its virtual clock, shared by a workload and a download.
pub struct SharedCard<'a, S: Store, C>(RefCell<Shared<'a, S, C>>);

/// Store of the workload.
pub struct SharedStore<'a, 'b, S: Store, C>(&'b RefCell<Shared<'a, S, C>>);

/// Clock of the workload.
pub struct SharedClock<'a, 'b, S: Store, C>(&'b RefCell<Shared<'a, S, C>>);

struct Shared<'a, S: Store, C> {
    store: &'a mut S,
    clock: &'a mut C,
    server: Server<S>,
    /// Time of the workload, if this time is behind the card's clock: a read begun during the workload's
    /// pause took longer than the pause.
    workload_ns: Option<u64>,
}

impl<'a, S: Store, C: Clock> SharedCard<'a, S, C> {
    /// Creates the file to download; the download starts immediately.
    ///
    /// # Errors
    /// If the file cannot be created.
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

    /// Returns the workload's store.
    pub fn store(&self) -> SharedStore<'a, '_, S, C> {
        SharedStore(&self.0)
    }

    /// Returns the workload's clock.
    pub fn clock(&self) -> SharedClock<'a, '_, S, C> {
        SharedClock(&self.0)
    }

    /// Ends the download and closes its file, which remains on the card.
    ///
    /// # Errors
    /// [`DownloadError`] if a piece was unreadable or wrong, or if closing the file fails.
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
    /// Returns the workload's time.
    fn now_ns(&mut self) -> u64 {
        self.workload_ns.unwrap_or_else(|| self.clock.now_ns())
    }

    /// Advances the card's clock to `to_ns`, unless that time has passed.
    fn advance_to(&mut self, to_ns: u64) {
        let left_ns = to_ns.saturating_sub(self.clock.now_ns());
        self.clock.pause_ns(left_ns);
    }

    /// Pauses the workload; meanwhile the server makes the reads that are due.
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
    /// Makes a library call of the workload, after a read of the server if one is due.
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
