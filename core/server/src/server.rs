//! The server, and the path of a request through it.

#[cfg(not(feature = "webdav"))]
use crate::Error;
use crate::body::Body;
use crate::dav::locks::Locks;
#[cfg(feature = "computer")]
use crate::direct::Peer;
use crate::guard::{self, Credentials};
use crate::head::{self, Head, Method};
use crate::limits::{DRAIN_BYTES_MAX, DRAIN_MS, HEAD_BYTES_MAX, OUT_BYTES, WRONG_CREDENTIALS_MS};
use crate::operations::archive::Source;
use crate::operations::condition::Changes;
use crate::operations::index::Grouping;
use crate::route::{Operation, Route, route};
use crate::status::{Closed, Fault, Refused, Status};
use crate::wire::{Length, Received, Wire};
use crate::{Instrument, Storage, Timer};
use core::cell::{Cell, RefCell};
use core::ops::Range;
use embedded_io_async::{Read, Write};

/// The other end of a connection, of which a board knows nothing.
#[cfg(not(feature = "computer"))]
type Peer<'c> = core::marker::PhantomData<&'c ()>;

/// Settings of a server.
#[derive(Clone, Copy, Debug)]
pub struct Config<'a> {
    /// Host names that clients may use besides IP addresses and `localhost`, in lower case without port.
    pub names: &'a [&'a str],
    /// Refuses every change with 403.
    pub is_read_only: bool,
    /// Credentials that every request needs: base64 of `user:password`. `None` lets everybody in.
    pub basic_auth: Option<&'a str>,
    /// Random number, new at each start of the device, from which the keys of confirmation pages are derived.
    pub secret: u64,
    /// Maximum number of event streams at the same time; at most half of the sockets.
    pub event_streams_max: u8,
}

/// A server. [`serve`](Server::serve) handles one connection; any number of connections share the server in one
/// thread.
pub struct Server<'a, S, I, T> {
    pub(crate) storage: &'a S,
    pub(crate) instrument: &'a I,
    pub(crate) timer: &'a T,
    pub(crate) config: Config<'a>,
    pub(crate) event_streams: Cell<u8>,
    /// A test of the storage's writes is in progress.
    pub(crate) is_testing: Cell<bool>,
    pub(crate) changes: Cell<Changes>,
    pub(crate) locks: RefCell<Locks>,
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

/// Adds to a total.
pub(crate) fn add(counter: &Cell<u64>, more: u64) {
    counter.set(counter.get().wrapping_add(more));
}

/// Buffers of one connection.
pub struct Buffers {
    head: [u8; HEAD_BYTES_MAX],
    out: [u8; OUT_BYTES],
}

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

impl<'a, S: Storage, I: Instrument, T: Timer> Server<'a, S, I, T> {
    /// Creates a server.
    pub fn new(storage: &'a S, instrument: &'a I, timer: &'a T, config: Config<'a>) -> Self {
        Server {
            storage,
            instrument,
            timer,
            config,
            event_streams: Cell::new(0),
            is_testing: Cell::new(false),
            changes: Cell::default(),
            locks: RefCell::default(),
            counters: Counters::default(),
        }
    }

    /// Serves one connection until either side closes it or a time limit ends it. The caller then closes the
    /// socket. The buffers are the caller's, so that they can be static on a device.
    ///
    /// Time limits drop reads and writes of the socket that have not finished. Both therefore have to be cancel-safe: a
    /// dropped one must have transferred nothing.
    pub fn serve<C: Read + Write>(
        &self,
        socket: &mut C,
        buffers: &mut Buffers,
    ) -> impl Future<Output = ()> {
        self.connection(socket, buffers, Peer::default())
    }

    /// Serves a connection as [`serve`](Server::serve) does, of a client of which more is known.
    #[cfg(feature = "computer")]
    pub fn serve_peer<C: Read + Write>(
        &self,
        socket: &mut C,
        buffers: &mut Buffers,
        peer: Peer<'_>,
    ) -> impl Future<Output = ()> {
        self.connection(socket, buffers, peer)
    }

    async fn connection<C: Read + Write>(
        &self,
        socket: &mut C,
        buffers: &mut Buffers,
        peer: Peer<'_>,
    ) {
        add(&self.counters.connections, 1);
        let Buffers { head, out } = buffers;
        let (mut filled, mut is_first) = (0, true);
        loop {
            let mut wire = Wire::new(socket, self.timer, out, &self.counters);
            #[cfg(feature = "computer")]
            wire.set_direct(peer.direct);
            let received = wire.receive_head(head, &mut filled, is_first).await;
            let rest = match received {
                Received::Closed => return,
                Received::Refused(refused) => {
                    if wire.refuse(&refused).await.is_ok() {
                        wire.drain(DRAIN_BYTES_MAX, DRAIN_MS).await;
                    }
                    return;
                }
                Received::Head(bytes) => {
                    let (head, tail) = head.split_at_mut(bytes);
                    let request = self.request(&mut wire, head, tail, filled - bytes, peer);
                    match request.await {
                        Ok(rest) => rest.start + bytes..rest.end + bytes,
                        Err(Closed) => return,
                    }
                }
            };
            (filled, is_first) = (rest.len(), false);
            head.copy_within(rest, 0);
        }
    }

    /// Responds to one request, whose body begins in `tail[..ahead]`. Returns the range of bytes in `tail` that belong
    /// to the next request, or an error if the connection ends.
    async fn request<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        bytes: &[u8],
        tail: &mut [u8],
        ahead: usize,
        peer: Peer<'_>,
    ) -> Result<Range<usize>, Closed> {
        add(&self.counters.requests, 1);
        let head = match self.parse(bytes, peer) {
            Ok(head) => head,
            Err(refused) => {
                wire.refuse(&refused).await?;
                wire.drain(DRAIN_BYTES_MAX, DRAIN_MS).await;
                return Err(Closed);
            }
        };
        let mut body = Body::new(&head, tail, ahead);
        wire.respond_to(&head, &body);
        match self.respond(wire, &head, &mut body).await {
            Ok(()) => (),
            Err(Fault::Closed) => return Err(Closed),
            Err(Fault::Refused(refused)) => wire.refuse(&refused).await?,
        }
        if wire.closes {
            if !body.is_held_back() {
                let bytes = body.missing_bytes().min(DRAIN_BYTES_MAX);
                wire.drain(bytes, DRAIN_MS).await;
            }
            return Err(Closed);
        }
        Ok(body.rest())
    }

    #[cfg(feature = "computer")]
    fn parse<'b>(&self, bytes: &'b [u8], peer: Peer<'_>) -> Result<Head<'b>, Refused> {
        let mut head = head::parse(bytes)?;
        if peer.is_proxy {
            guard::believe(&mut head, &self.config)?;
        }
        Ok(head)
    }

    #[cfg(not(feature = "computer"))]
    fn parse<'b>(&self, bytes: &'b [u8], _: Peer<'_>) -> Result<Head<'b>, Refused> {
        head::parse(bytes)
    }

    async fn respond<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        head: &Head<'_>,
        body: &mut Body<'_>,
    ) -> Result<(), Fault> {
        guard::admit(head, &self.config)?;
        // Finder looks for WebDAV before it logs in.
        if head.method != Method::Options {
            self.authenticate(head).await?;
        }
        let Route {
            operation,
            mut path,
        } = route(head, &self.config)?;
        match operation {
            Operation::Read(reading) => self.read(wire, head, &mut path, &reading).await,
            Operation::List => self.list(wire, &path).await,
            Operation::ConfirmRemoval => self.confirm_removal(wire, &path).await,
            Operation::RemoveWithKey => self.remove_with_key(wire, head, body, &path).await,
            Operation::Create => self.create(wire, head, &path).await,
            Operation::Remove => self.remove(wire, head, &path).await,
            Operation::Put => self.put(wire, head, body, &path).await,
            Operation::Upload { boundary } => {
                self.upload(wire, head, body, boundary, &mut path).await
            }
            Operation::MakeDirectory => self.make_directory(wire, head, &path).await,
            Operation::Move { to } => self.rename(wire, head, &mut path, to).await,
            #[cfg(feature = "webdav")]
            Operation::Copy { to } => self.copy(wire, head, &mut path, to).await,
            #[cfg(feature = "webdav")]
            Operation::Propfind(depth) => self.propfind(wire, body, &path, depth).await,
            #[cfg(feature = "webdav")]
            Operation::Proppatch => self.proppatch(wire, head, body, &path).await,
            #[cfg(feature = "webdav")]
            Operation::Lock => self.lock(wire, head, body, &path).await,
            #[cfg(feature = "webdav")]
            Operation::Unlock => self.unlock(wire, head, &path).await,
            // The parser of heads does not know their methods.
            #[cfg(not(feature = "webdav"))]
            Operation::Copy { .. }
            | Operation::Propfind(_)
            | Operation::Proppatch
            | Operation::Lock
            | Operation::Unlock => Err(Refused::from(Error::Forbidden).into()),
            Operation::Tar => {
                let source = Source::Folder(path.len());
                self.archive(wire, head, source, &mut path).await
            }
            Operation::Sessions => self.groups(wire, Grouping::Session).await,
            Operation::Session(name) => {
                self.archive(wire, head, Source::Session(name), &mut path)
                    .await
            }
            Operation::Days => self.groups(wire, Grouping::Day).await,
            Operation::Day(day) => self.archive(wire, head, Source::Day(day), &mut path).await,
            Operation::Record(query) => self.record(wire, body, query).await,
            Operation::Clock(query) => self.clock(wire, body, query).await,
            Operation::Bench(query) => self.bench(wire, body, query).await,
            Operation::Options => {
                wire.start(Status::NoContent).await?;
                wire.text(format_args!("Allow: {METHODS}\r\n")).await?;
                #[cfg(feature = "webdav")]
                wire.bytes(b"DAV: 1, 2\r\nMS-Author-Via: DAV\r\n").await?;
                wire.body(Length::None).await?;
                Ok(wire.finish().await?)
            }
            Operation::Status => self.status(wire).await,
            Operation::Gaps { since } => self.gaps(wire, since).await,
            Operation::Metrics => self.metrics(wire).await,
            #[cfg(feature = "page")]
            Operation::Page(asset) => self.asset(wire, head, asset).await,
            Operation::Live(live) => self.live(wire, &live, &mut path).await,
        }
    }

    async fn authenticate(&self, head: &Head<'_>) -> Result<(), Refused> {
        let refused = Refused::new(Status::Unauthorized, "user name and password are needed");
        match guard::credentials(head, &self.config)? {
            Credentials::Right => Ok(()),
            Credentials::Missing => Err(refused),
            Credentials::Wrong => {
                self.timer.sleep_ms(WRONG_CREDENTIALS_MS).await;
                Err(refused)
            }
        }
    }
}

/// Methods that the server implements.
#[cfg(feature = "webdav")]
pub(crate) const METHODS: &str =
    "GET, HEAD, POST, PUT, DELETE, OPTIONS, PROPFIND, PROPPATCH, MKCOL, COPY, MOVE, LOCK, UNLOCK";
/// Methods that the server implements.
#[cfg(not(feature = "webdav"))]
pub(crate) const METHODS: &str = "GET, HEAD, POST, PUT, DELETE, MKCOL, MOVE, OPTIONS";
