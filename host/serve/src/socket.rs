//! Sockets that share the thread of the server.

use embedded_io_adapters::tokio_1::FromTokio;
use embedded_io_async::{ErrorType, Read, Write};
use socket2::SockRef;
use std::io;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::yield_now;
use tokio::time::timeout;

/// Bytes that a connection may transfer before it yields to the others.
const TURN_BYTES: usize = 64 << 10;
/// Cost of a call, in bytes.
const CALL_BYTES: usize = 2 << 10;
/// Interval at which a blocked write is tried again.
const RETRY: Duration = Duration::from_millis(250);

/// A socket that yields to other connections, even if it is always ready.
pub struct Socket {
    socket: FromTokio<TcpStream>,
    /// Bytes transferred in the current turn, plus the cost of its calls.
    used: usize,
}

impl Socket {
    pub fn new(stream: TcpStream) -> Socket {
        Socket {
            socket: FromTokio::new(stream),
            used: 0,
        }
    }

    pub fn into_inner(self) -> TcpStream {
        self.socket.into_inner()
    }

    /// Yields if the turn is used up. Runs before a transfer, so that a call dropped while it yields has
    /// transferred nothing.
    async fn turn(&mut self) {
        if self.used >= TURN_BYTES {
            self.used = 0;
            yield_now().await;
        }
    }
}

impl ErrorType for Socket {
    type Error = io::Error;
}

impl Read for Socket {
    async fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.turn().await;
        let read = self.socket.read(bytes).await?;
        self.used += read + CALL_BYTES;
        Ok(read)
    }
}

impl Write for Socket {
    async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.turn().await;
        // The system reports a full buffer as writable only after a third of it, up to 1.3 MB, has drained. Until then, a
        // slow reader would look like one that has stopped.
        let written = loop {
            if let Ok(written) = timeout(RETRY, self.socket.write(bytes)).await {
                break written?;
            }
            match send_now(self.socket.inner(), bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => (),
                sent => break sent?,
            }
        };
        self.used += written + CALL_BYTES;
        Ok(written)
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.socket.flush().await
    }
}

/// Sends what fits into the system's buffer, even if the system does not report the socket as writable.
fn send_now(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    SockRef::from(stream).send(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::io::Read as _;
    use std::pin::pin;
    use tokio::net::TcpListener;

    /// All bytes fit in the system's socket buffers, so no write has to wait.
    #[test]
    fn a_socket_that_is_always_ready_leaves_turns_to_others() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let stream = TcpStream::connect(address).await.unwrap();
            let _peer = listener.accept().await.unwrap();
            let mut socket = Socket::new(stream);
            let mut send = pin!(async {
                for _ in 0..100 {
                    assert_eq!(socket.write(b"x").await.unwrap(), 1);
                }
            });
            let mut turns = 0;
            poll_fn(|context| {
                turns += 1;
                send.as_mut().poll(context)
            })
            .await;
            // The first write may wait for the system once.
            assert!((4..=5).contains(&turns), "{turns}");
        });
    }

    /// Receive buffer of the reader, in bytes: with a small one, the sender notices what was read at once.
    const READER_BYTES: usize = 16 << 10;
    /// Limit for a wait that ends at once if the socket is right.
    const PATIENCE: Duration = Duration::from_secs(30);

    /// A reader takes a small part of what the system has buffered, and then nothing: the next write sends as much, the
    /// one after it blocks.
    #[test]
    fn what_a_slow_reader_takes_is_noticed_before_the_buffer_has_drained() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let setting = SockRef::from(&listener);
            setting.set_recv_buffer_size(READER_BYTES).unwrap();
            let address = listener.local_addr().unwrap();
            let stream = TcpStream::connect(address).await.unwrap();
            let setting = SockRef::from(&stream);
            setting.set_send_buffer_size(1 << 20).unwrap();
            let (mut reader, _) = listener.accept().unwrap();
            let mut socket = Socket::new(stream);
            let bytes = [b'x'; 1 << 16];
            let mut sent = 0;
            while let Ok(more) = timeout(4 * RETRY, socket.write(&bytes)).await {
                sent += more.unwrap();
            }
            let mut taken = vec![0; sent / 8];
            assert!(taken.len() > 2 * READER_BYTES, "{sent} B are buffered");
            reader.read_exact(&mut taken).unwrap();
            let written = timeout(PATIENCE, socket.write(&bytes)).await;
            assert!(written.expect("the write still blocks").unwrap() > 0);
            let mut more = 0;
            while let Ok(written) = timeout(4 * RETRY, socket.write(&bytes)).await {
                more += written.unwrap();
            }
            assert!(more <= 2 * taken.len(), "{more} B after {} B", taken.len());
        });
    }
}
