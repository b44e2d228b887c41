//! Connections to the server.
//!
//! A board has few sockets, so every wait for a client ends: the server limits those in which it is served, and this module
//! the others. A client that answers nothing, not even keep-alive packets, has disappeared.

use cardiograph_server::{Buffers, Instrument, Server, Storage, Timer};
use embassy_net::Stack;
use embassy_net::tcp::TcpSocket;
use embassy_time::{Duration, Instant, with_timeout};

/// Time after which a silent client has to confirm that it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// Time after which a client that confirms nothing counts as gone.
const GONE: Duration = Duration::from_secs(20);
/// Time in which a client has to receive the rest of a response.
const CLOSE: Duration = Duration::from_secs(5);
/// Time to send a reset.
const RESET: Duration = Duration::from_millis(100);

/// Memory of a connection.
pub struct Connection<const RECEIVE_BYTES: usize, const SEND_BYTES: usize> {
    receive: [u8; RECEIVE_BYTES],
    send: [u8; SEND_BYTES],
    buffers: Buffers,
}

impl<const RECEIVE_BYTES: usize, const SEND_BYTES: usize> Connection<RECEIVE_BYTES, SEND_BYTES> {
    /// Returns unused memory.
    pub const fn new() -> Self {
        Connection {
            receive: [0; RECEIVE_BYTES],
            send: [0; SEND_BYTES],
            buffers: Buffers::new(),
        }
    }
}

impl<const RECEIVE_BYTES: usize, const SEND_BYTES: usize> Default
    for Connection<RECEIVE_BYTES, SEND_BYTES>
{
    fn default() -> Self {
        Connection::new()
    }
}

/// Waits for a client, and serves it until its connection ends.
pub async fn serve_next<S, I, const RECEIVE_BYTES: usize, const SEND_BYTES: usize>(
    stack: Stack<'_>,
    port: u16,
    server: &Server<'_, S, I, Clock>,
    memory: &mut Connection<RECEIVE_BYTES, SEND_BYTES>,
) where
    S: Storage,
    I: Instrument,
{
    let mut socket = TcpSocket::new(stack, &mut memory.receive, &mut memory.send);
    socket.set_keep_alive(Some(KEEP_ALIVE));
    socket.set_timeout(Some(GONE));
    if socket.accept(port).await.is_ok() {
        server.serve(&mut socket, &mut memory.buffers).await;
        socket.close();
    }
    if with_timeout(CLOSE, socket.flush()).await.is_err() {
        socket.abort();
        let _ = with_timeout(RESET, socket.flush()).await;
    }
}

/// The clock of the server.
pub struct Clock;

impl Timer for Clock {
    fn now_ms(&self) -> u64 {
        Instant::now().as_millis()
    }

    fn now_us(&self) -> Option<u64> {
        Some(Instant::now().as_micros())
    }

    async fn sleep_ms(&self, ms: u32) {
        embassy_time::Timer::after(Duration::from_millis(u64::from(ms))).await;
    }
}
