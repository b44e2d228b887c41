//! Everything that connections share.

use crate::{Instrument, Storage};
use core::cell::Cell;

/// A source of time.
#[expect(
    async_fn_in_trait,
    reason = "connections share one thread, so that futures need not be Send"
)]
pub trait Timer {
    /// Returns the time since a fixed moment, in ms. It never decreases.
    fn now_ms(&self) -> u64;

    /// Waits.
    async fn sleep_ms(&self, ms: u32);
}

/// Settings of a server.
#[derive(Clone, Copy, Debug)]
pub struct Config<'a> {
    /// Host names that clients may use besides IP addresses and `localhost`, in lower case without port.
    pub names: &'a [&'a str],
    /// Refuses every change with 403.
    pub is_read_only: bool,
    /// Credentials that every request needs: base64 of `user:password`. `None` lets everybody in.
    pub basic_auth: Option<&'a str>,
    /// Random number of this start of the device, the source of the keys of confirmation pages.
    pub secret: u64,
    /// Maximum number of event streams at the same time; at most half of the sockets.
    pub event_streams_max: u8,
}

/// A server: [`serve`](Server::serve) handles one connection, and any number of connections share the server
/// in one thread.
pub struct Server<'a, S, I, T> {
    pub(crate) storage: &'a S,
    pub(crate) instrument: &'a I,
    pub(crate) timer: &'a T,
    pub(crate) config: Config<'a>,
    pub(crate) event_streams: Cell<u8>,
    pub(crate) counters: Counters,
}

/// Totals since the start, for `/metrics`.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) connections: Cell<u64>,
    pub(crate) requests: Cell<u64>,
    pub(crate) refused: Cell<u64>,
    pub(crate) sent_bytes: Cell<u64>,
    pub(crate) received_bytes: Cell<u64>,
}

impl<'a, S: Storage, I: Instrument, T: Timer> Server<'a, S, I, T> {
    /// Creates a server.
    pub fn new(storage: &'a S, instrument: &'a I, timer: &'a T, config: Config<'a>) -> Self {
        Server {
            storage,
            instrument,
            timer,
            config,
            event_streams: Cell::new(0),
            counters: Counters::default(),
        }
    }

    /// Serves one connection until either side closes it or a time limit ends it. The caller then closes the
    /// socket. The buffers are the caller's, so that they can be static on a device.
    ///
    /// ```ignore
    /// let mut buffers = Buffers::new();
    /// server.serve(&mut socket, &mut buffers).await;
    /// ```
    pub async fn serve<C>(&self, _socket: &mut C, _buffers: &mut Buffers)
    where
        C: embedded_io_async::Read + embedded_io_async::Write,
    {
    }
}

/// Buffers of one connection.
pub struct Buffers {
    pub(crate) head: [u8; HEAD_BYTES_MAX],
    pub(crate) out: [u8; OUT_BYTES],
}

/// Maximum length of a request head, in bytes.
pub const HEAD_BYTES_MAX: usize = 1536;
/// Buffer for generated text: lists, events, rows and pages.
pub(crate) const OUT_BYTES: usize = 1024;

impl Buffers {
    /// Creates empty buffers.
    pub const fn new() -> Buffers {
        Buffers {
            head: [0; HEAD_BYTES_MAX],
            out: [0; OUT_BYTES],
        }
    }
}

impl Default for Buffers {
    fn default() -> Self {
        Buffers::new()
    }
}
