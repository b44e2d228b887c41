//! Sockets: accepts connections, limits their number, and ends them.
//!
//! All connections share one thread. A connection that waits for its client, or for the storage device, costs
//! the others nothing.

use crate::socket::{Socket, Stream};
use cardiograph_server::{Buffers, Config, Instrument, Peer, Server, Storage, Timer};
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use socket2::SockRef;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::{pending, poll_fn};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::unconstrained;
use tokio::time::Instant;

/// Maximum number of connections.
const CONNECTIONS_MAX: usize = 256;
/// Maximum number of connections from one address, so that no client holds the last one.
const CONNECTIONS_PER_ADDRESS_MAX: usize = 192;
/// Maximum number of event streams.
const EVENT_STREAMS_MAX: u8 = 96;
const _: () = assert!(EVENT_STREAMS_MAX as usize <= CONNECTIONS_PER_ADDRESS_MAX / 2);
/// Interval between checks for a stop request.
const STOP_POLL: Duration = Duration::from_millis(50);
/// Time that connections have to end after a stop request.
const GRACE: Duration = Duration::from_secs(1);
/// Threads for operations that wait for the storage device.
const HELPERS_MAX: usize = 8;
/// Time that a client has to read the last response before its socket is closed.
const LINGER: Duration = Duration::from_secs(1);
/// Maximum number of reads that discard what a client sends during this time.
const LINGER_READS_MAX: usize = 1024;
/// Pause after a failed accept, for example because no file descriptor is left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Response to a connection above the limit.
const TOO_MANY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\
    Connection: close\r\n\r\n";

/// Settings of the server.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Refuses every change.
    pub is_read_only: bool,
    /// Credentials that every request must contain: base64 of `user:password`.
    pub basic_auth: Option<String>,
    /// Host names of this computer that clients may use, in lower case.
    pub names: Vec<String>,
    /// Addresses of proxies whose header fields say which name and scheme a client used.
    pub proxies: Vec<IpAddr>,
    /// Space of a card that clients leave free, in bytes; `None` for 64 MiB, or an eighth of a small card. A directory has
    /// its own setting.
    pub keep_free_bytes: Option<u64>,
}

/// A socket that accepts connections.
pub struct Listener {
    socket: std::net::TcpListener,
}

impl Listener {
    /// Binds an address, and raises the limit of file descriptors of this process. Port 0 selects a free port.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn bind(address: SocketAddr) -> io::Result<Listener> {
        #[cfg(target_os = "linux")]
        crate::descriptors::raise_limit();
        let socket = std::net::TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        Ok(Listener { socket })
    }

    /// Returns another listener at the same address, to serve again after this one has ended.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn try_clone(&self) -> io::Result<Listener> {
        let socket = self.socket.try_clone()?;
        Ok(Listener { socket })
    }

    /// Closes the connections that wait to be accepted, as a device without power does not answer.
    pub fn refuse_waiting(&self) {
        while self.socket.accept().is_ok() {}
    }

    /// Returns the bound address.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves until `is_stopped` returns true, then gives connections a second to end. Calls `is_stopped` every
    /// 50 ms.
    ///
    /// # Errors
    /// Errors of the operating system, at the start only.
    pub fn serve<S: Storage, I: Instrument>(
        self,
        storage: &S,
        instrument: &I,
        settings: &Settings,
        is_stopped: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        self.serve_with(storage, instrument, settings, is_stopped, pending())
    }

    /// Serves as [`serve`](Listener::serve) does, and runs another task in the same thread, whose end is an error.
    ///
    /// # Errors
    /// The error of that task, and errors of the operating system, at the start only.
    pub fn serve_with<S: Storage, I: Instrument>(
        self,
        storage: &S,
        instrument: &I,
        settings: &Settings,
        is_stopped: &dyn Fn() -> bool,
        task: impl Future<Output = io::Error>,
    ) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(HELPERS_MAX)
            .build()?;
        runtime.block_on(async {
            let socket = TcpListener::from_std(self.socket)?;
            let names: Vec<&str> = settings.names.iter().map(String::as_str).collect();
            let config = Config {
                names: &names,
                is_read_only: settings.is_read_only,
                basic_auth: settings.basic_auth.as_deref(),
                secret: RandomState::new().build_hasher().finish(),
                event_streams_max: EVENT_STREAMS_MAX,
            };
            let clock = Clock(Instant::now());
            let server = &Server::new(storage, instrument, &clock, config);
            let proxies = &settings.proxies;
            let accepting = pin!(accept(&socket, proxies, is_stopped, |stream, is_proxy| {
                serve_one(server, stream, is_proxy)
            }));
            match select(accepting, pin!(task)).await {
                Either::Left(_) => Ok(()),
                Either::Right((error, _)) => Err(error),
            }
        })
    }
}

/// Accepts connections and drives them all until a stop request.
async fn accept<F: Future<Output = ()>>(
    socket: &TcpListener,
    proxies: &[IpAddr],
    is_stopped: &dyn Fn() -> bool,
    serve: impl Fn(TcpStream, bool) -> F,
) {
    let mut connections = FuturesUnordered::new();
    let mut per_address: HashMap<IpAddr, usize> = HashMap::new();
    let mut poll = tokio::time::interval(STOP_POLL);
    loop {
        // Unconstrained: connections that are always ready would use up the budget of the task, so that the server would
        // neither accept others nor notice a stop request.
        let mut next = pin!(unconstrained(poll_fn(|context| {
            while poll.poll_tick(context).is_ready() {
                if is_stopped() {
                    return Poll::Ready(None);
                }
            }
            socket.poll_accept(context).map(Some)
        })));
        let accepted = poll_fn(|context| {
            while let Poll::Ready(Some(address)) = connections.poll_next_unpin(context) {
                leave(&mut per_address, address);
            }
            next.as_mut().poll(context)
        });
        match accepted.await {
            None => break,
            Some(Ok((stream, peer))) => {
                let address = peer.ip().to_canonical();
                let count = per_address.entry(address).or_default();
                // All clients of a proxy have its address.
                let is_proxy = proxies.contains(&address);
                let is_below = is_proxy || *count < CONNECTIONS_PER_ADDRESS_MAX;
                if connections.len() < CONNECTIONS_MAX && is_below && has_descriptor(&stream) {
                    *count += 1;
                    let served = serve(stream, is_proxy);
                    connections.push(async move {
                        served.await;
                        address
                    });
                } else {
                    // The socket's buffer is empty, so this does not wait.
                    let _ = stream.try_write(TOO_MANY);
                }
            }
            // For example, no file descriptor is left; connections that end release some.
            Some(Err(_)) => {
                let drive = async { while connections.next().await.is_some() {} };
                let _ = tokio::time::timeout(ACCEPT_PAUSE, drive).await;
            }
        }
    }
    let drive = async { while connections.next().await.is_some() {} };
    let _ = tokio::time::timeout(GRACE, drive).await;
}

/// Returns true unless the socket is one of the last that the process can open.
#[cfg(target_os = "linux")]
fn has_descriptor(stream: &TcpStream) -> bool {
    crate::descriptors::permits_socket(std::os::fd::AsFd::as_fd(stream))
}

/// Returns true: only Linux limits descriptors so strictly.
#[cfg(not(target_os = "linux"))]
fn has_descriptor(_: &TcpStream) -> bool {
    true
}

/// Removes a connection from the count of its address.
fn leave(per_address: &mut HashMap<IpAddr, usize>, address: IpAddr) {
    if let Entry::Occupied(mut count) = per_address.entry(address) {
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }
}

/// Serves a connection and closes it.
async fn serve_one<S: Storage, I: Instrument>(
    server: &Server<'_, S, I, Clock>,
    stream: TcpStream,
    is_proxy: bool,
) {
    // A response is written in a few large pieces; waiting for more data would only delay it.
    let _ = stream.set_nodelay(true);
    let stream = Stream(stream);
    let mut buffers = Box::new(Buffers::new());
    let peer = Peer {
        is_proxy,
        direct: Some(&stream),
    };
    let mut socket = Socket::new(&stream.0);
    server.serve_peer(&mut socket, &mut buffers, peer).await;
    drop(buffers);
    let _ = tokio::time::timeout(LINGER, linger(&stream.0)).await;
}

/// Ends the connection so that the client receives the response: closing a socket with unread bytes would
/// discard the response.
async fn linger(stream: &TcpStream) -> io::Result<()> {
    SockRef::from(stream).shutdown(Shutdown::Write)?;
    let mut unread = [0; 1024];
    for _ in 0..LINGER_READS_MAX {
        stream.readable().await?;
        match stream.try_read(&mut unread) {
            Ok(0) => break,
            Ok(_) => (),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => (),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Period in which a client must take 10 KiB of a response. The system of a client whose receive buffer is full takes
/// nothing until a sixteenth of it is free; `curl --limit-rate` reads several MB at once and then pauses.
const PATIENCE_MS: u32 = 120_000;

/// The clock of the server.
struct Clock(Instant);

impl Timer for Clock {
    fn patience_ms(&self) -> u32 {
        PATIENCE_MS
    }

    fn now_ms(&self) -> u64 {
        self.0.elapsed().as_millis() as u64
    }

    fn now_us(&self) -> Option<u64> {
        Some(self.0.elapsed().as_micros() as u64)
    }

    async fn sleep_ms(&self, ms: u32) {
        tokio::time::sleep(Duration::from_millis(ms.into())).await;
    }
}
